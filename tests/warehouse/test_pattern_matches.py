"""Pattern views against a matcher in plain Python that tries every stretch of every sequence and every binding."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from network import minute
from pattern_oracle import Check, find_matches, write
from pattern_runs import run_views
from pattern_samples import NAMES, outputs_of, queries, write_outputs

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.warehouse import Warehouse

PARTS, GROUPS = 5, 40
Streams = dict[int | None, list[list[dict[str, Any]]]]


def make_streams(seed: int, most_rows: int) -> Streams:
    """For each group the rows of each part, in their order."""
    chance = random.Random(seed)
    streams: Streams = {}
    for group in range(GROUPS):
        parts: list[list[dict[str, Any]]] = []
        seq = 0
        for part in range(PARTS):
            count = chance.choice([0, *range(1, most_rows + 1), 1])
            rows = []
            for second in sorted(chance.sample(range(60), count)):
                seq += 1
                x, y = (chance.choice([None, 0, 1, 1, 2, 2, 3]) for _ in range(2))
                rows.append({"ts": minute(part, second), "k": group or None, "x": x, "y": y, "seq": seq})
            parts.append(rows)
        streams[group or None] = parts
    return streams


def write_view(name: str, query: Any, stream: str) -> str:
    pattern, checks, across, within = query
    names = tuple(name for name in NAMES if f"'{name}'" in str(pattern))
    gaps = " ACROSS GAPS" if across else ""
    limit = f" WITHIN '{within} seconds'" if within else ""
    where = " AND ".join(check.text for check in checks)
    return (
        f"CREATE VIEW {name} AS SELECT k, {write_outputs(names)} FROM {stream} PATTERN [{write(pattern)}]{gaps}{limit} "
        f"WHERE {where} GROUP BY k;\n"
    )


def expect(query: Any, streams: Streams) -> dict[int, Counter[tuple[Any, ...]]]:
    pattern, checks, across, within = query
    names = tuple(name for name in NAMES if f"'{name}'" in str(pattern))
    found: dict[int, Counter[tuple[Any, ...]]] = {part: Counter() for part in range(PARTS)}
    for group, parts in streams.items():
        answers = find_matches(pattern, checks, parts, across_gaps=across, within=within)
        for part, bound in enumerate(answers):
            if bound is not None:
                found[part][(group, *outputs_of(bound, names))] += 1
    return found


def stored(warehouse: Warehouse, view: str, first: datetime) -> dict[int, Counter[tuple[Any, ...]]]:
    found: dict[int, Counter[tuple[Any, ...]]] = {part: Counter() for part in range(PARTS)}
    for *values, time in warehouse.query(f"SELECT *, unix_timestamp(PART_TIMESTAMP) AS t FROM {view}").collect():
        found[int(time - first.timestamp()) // 60][tuple(values)] += 1
    return found


def check_queries(asked: list[Any], seed: int, most_rows: int, spark: Any) -> None:
    streams = make_streams(seed, most_rows)
    script = "CREATE STREAM S (ts TIMESTAMP ORDERED, k INT, x INT, y INT, seq INT) PARTITION LENGTH 60;\n"
    script += "".join(write_view(f"V{number}x", query, "S") for number, query in enumerate(asked))
    rows = [row for parts in streams.values() for part in parts for row in part]
    random.Random(seed).shuffle(rows)
    late = rows[: len(rows) // 10]
    with tempfile.TemporaryDirectory() as folder, Warehouse.open(folder, spark=spark) as warehouse:
        warehouse.apply(script)
        warehouse.load("S", rows[len(late) :], batch_id="rows", covers=(minute(0), minute(PARTS)))
        warehouse.refresh()
        warehouse.load("S", late, batch_id="late", covers=(minute(0), minute(PARTS)))
        report = warehouse.refresh()
        assert not report.blocked
        for number, query in enumerate(asked):
            assert stored(warehouse, f"V{number}x", minute(0)) == expect(query, streams), write_view("V", query, "S")


# How many rows a group has in a part at most, and whether the stream says that it is one.
MOST_ROWS = [(1, True), (1, False), (3, False), (4, False)]


def check_directly(query: Any, seed: int, most_rows: int, is_unique: bool, spark: Any) -> None:
    streams = make_streams(seed, most_rows)
    unique = ", UNIQUE (k)" if is_unique else ""
    script = f"CREATE STREAM S (ts TIMESTAMP ORDERED, k INT, x INT, y INT, seq INT{unique}) PARTITION LENGTH 60;\n"
    script += write_view("V", query, "S")
    first = int(minute(0).timestamp()) // 60
    parts: dict[int, list[tuple[Any, ...]]] = {}
    for part in range(PARTS):
        rows = [(*row.values(),) for group in streams.values() for row in group[part]]
        random.Random(seed).shuffle(rows)
        parts[first + part] = rows
    found = run_views(spark, parse_script(script), {"S": parts})["V"]
    assert {part - first: Counter(map(tuple, rows)) for part, rows in found.items()} == expect(query, streams), script


@pytest.mark.timeout(900)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(), seed=st.integers(0, 1000), most_rows=st.sampled_from(MOST_ROWS))
def test_any_pattern_over_any_stream_gives_the_matches_of_the_oracle(
    query: Any, seed: int, most_rows: tuple[int, bool], spark: Any
) -> None:
    check_directly(query, seed, *most_rows, spark)


@pytest.mark.timeout(900)
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked=st.lists(queries(), min_size=2, max_size=2), seed=st.integers(0, 1000))
def test_late_rows_are_found_in_their_places_by_any_pattern(asked: list[Any], seed: int, spark: Any) -> None:
    check_queries(asked, seed, 3, spark)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(), seed=st.integers(0, 10**6), most_rows=st.sampled_from(MOST_ROWS))
def test_hundreds_of_patterns_give_the_matches_of_the_oracle(
    query: Any, seed: int, most_rows: tuple[int, bool], spark: Any
) -> None:
    check_directly(query, seed, *most_rows, spark)


def test_a_long_sequence_keeps_one_run_per_state_and_loses_no_match(spark: Any) -> None:
    """Every row begins a run here, and each run can be at a, at b, or both; but only the earliest start can be reported."""
    script = (
        "CREATE STREAM S (ts TIMESTAMP ORDERED, k INT, x INT) PARTITION LENGTH 60;\n"
        "CREATE VIEW V AS SELECT k, count(*) AS n, count(a.*) AS n_a FROM S PATTERN [a+, b+] "
        "WHERE a.x > 0 AND b.x > 1 GROUP BY k"
    )
    first = int(minute(0).timestamp()) // 60
    parts = {first + part: [(minute(part, second), 1, 1 + second % 2) for second in range(40)] for part in range(3)}
    found = run_views(spark, parse_script(script), {"S": parts})
    assert [tuple(row) for rows in found["V"].values() for row in rows] == [(1, 40 * n, 40 * n - 1) for n in (1, 2, 3)]
    assert all(len(row.runs) <= 2 for rows in found["V_runs"].values() for row in rows)


def test_the_oracle_knows_the_example_of_the_paper() -> None:
    losses = [6, 12, 15, 24, 20, 16, 7]
    parts = [[{"ts": minute(0) + timedelta(minutes=number), "x": loss}] for number, loss in enumerate(losses)]
    pattern = ("seq", ("a",), ("b",), ("c",), ("rep", ("d",), 1, None))
    checks = [Check(f"{v}.x > 10", v, lambda b: b.rows[-1]["x"] > 10) for v in "abcd"]
    answers = find_matches(pattern, checks, parts)
    figures = [(len(bound.rows), sum(row["x"] for row in bound.rows)) if bound else None for bound in answers]
    assert figures == [None, None, None, None, (4, 71), (5, 87), None]
