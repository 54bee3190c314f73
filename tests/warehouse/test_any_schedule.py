"""Whatever the order of loads, corrections, late rows and refreshes: the views equal the same queries from scratch."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from network import minute

from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k INT, x INT) PARTITION LENGTH 60;
CREATE VIEW Chain AS
  INITIALIZE Chain[i] AS SELECT k, CAST(sum(x) AS BIGINT) AS total FROM S[i] GROUP BY k
  UPDATE Chain[j] AS
    SELECT k, CAST(sum(total) AS BIGINT) FROM (
      SELECT k, CAST(x AS BIGINT) AS total FROM S[j] UNION ALL SELECT k, total FROM Chain[j-1]) GROUP BY k
  PARTITION LENGTH 60;
CREATE VIEW Third AS
  INITIALIZE Third[i] AS SELECT CAST(coalesce(sum(x), 0) AS BIGINT) AS total FROM S[i]
  UPDATE Third[j] AS
    SELECT CAST(coalesce((SELECT sum(x) FROM S[j]), 0) + (SELECT max(total) FROM Third[j-3]) AS BIGINT)
  PARTITION LENGTH 60;
CREATE VIEW Long AS
  INITIALIZE Long[i] AS SELECT k, count(*) AS ct FROM S[i*5 .. i*5+4] GROUP BY k
  UPDATE Long[j] AS SELECT k, count(*) AS ct FROM S[j*5 .. j*5+4] GROUP BY k
  PARTITION LENGTH 300;
CREATE VIEW Short AS
  INITIALIZE Short[i] AS SELECT s.k, s.x, l.ct FROM S[i] s JOIN Long[i/5] l ON s.k = l.k
  UPDATE Short[j] AS SELECT s.k, s.x, l.ct FROM S[j] s JOIN Long[j/5] l ON s.k = l.k
  PARTITION LENGTH 60;
"""

FIRST = 23668440  # 2015-01-01 10:00 in minutes
Rows = list[tuple[int, int, int]]  # minute, k, x

minutes = st.integers(0, 11)
rows = st.lists(st.tuples(minutes, st.integers(0, 1), st.integers(-2, 3)), max_size=4)
loads = st.tuples(st.just("load"), st.sampled_from("abcd"), minutes, st.integers(1, 6), rows)
refreshes = st.tuples(
    st.just("refresh"),
    st.sets(st.sampled_from(["Chain", "Third", "Long", "Short"]), min_size=1),
    minutes,
    st.integers(1, 12),
)


class Oracle:
    """Plain Python: the rows that are loaded, and the definition of each view over them."""

    def __init__(self) -> None:
        self.batches: dict[str, Rows] = {}
        self.existing: set[int] = set()

    def load(self, batch: str, first: int, length: int, content: Rows) -> None:
        self.batches[batch] = content
        self.existing |= set(range(first, first + length)) | {row[0] for row in content}

    def stream(self, part: int) -> list[tuple[int, int]]:
        return [(k, x) for content in self.batches.values() for m, k, x in content if m == part]

    def expected(self) -> dict[str, dict[int, Counter[tuple[Any, ...]]]]:
        answer: dict[str, dict[int, Counter[tuple[Any, ...]]]] = {"Chain": {}, "Third": {}, "Long": {}, "Short": {}}
        if not self.existing:
            return answer
        first, last = min(self.existing), max(self.existing)
        for part in range(first, last + 1):
            if part not in self.existing:
                break
            totals: Counter[Any] = Counter()
            keys = set()
            for m in range(first, part + 1):
                for k, x in self.stream(m):
                    totals[k] += x
                    keys.add(k)
            answer["Chain"][part] = Counter((k, totals[k]) for k in keys)
        for part in range(first, last + 1):
            chain = list(range(part, first - 1, -3))
            if all(m in self.existing for m in chain):
                answer["Third"][part] = Counter([(sum(x for m in chain for _, x in self.stream(m)),)])
        base = FIRST // 5
        for long in range(-(-(FIRST + first) // 5), (FIRST + last) // 5 + 1):
            members = [m - FIRST for m in range(long * 5, long * 5 + 5)]
            if all(m in self.existing for m in members):
                counts = Counter(k for m in members for k, _ in self.stream(m))
                answer["Long"][long - base] = Counter((k, ct) for k, ct in counts.items())
                for m in members:
                    answer["Short"][m] = Counter((k, x, counts[k]) for k, x in self.stream(m))
        return answer


def stored(warehouse: Warehouse, view: str) -> dict[int, Counter[tuple[Any, ...]]]:
    base = FIRST // 5 if view == "Long" else FIRST
    found: dict[int, Counter[tuple[Any, ...]]] = {part - base: Counter() for part in warehouse.existing_parts(view)}
    for row in warehouse.query(f"SELECT *, PART FROM {view}").collect():
        *values, part = row
        found[part - base][tuple(values)] += 1
    return found


schedules: st.SearchStrategy[list[Any]] = st.lists(st.one_of(loads, loads, refreshes), min_size=2, max_size=7)


def check_schedule(events: list[Any], spark: Any, batch_limit: int | None = None) -> None:
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as folder, Warehouse.open(folder, spark=spark) as warehouse:
        warehouse.apply(SCRIPT)
        for event in events:
            if event[0] == "load":
                _, batch, first, length, content = event
                oracle.load(batch, first, length, content)
                dicts = [{"ts": minute(m, 5), "k": k, "x": x} for m, k, x in content]
                warehouse.load("S", dicts, batch_id=batch, covers=(minute(first), minute(first + length)))
            else:
                _, views, first, length = event
                warehouse.refresh(sorted(views), minute(first), minute(first + length), batch_limit=batch_limit)
        report = warehouse.refresh(batch_limit=batch_limit)
        assert warehouse.refresh().steps == ()
        for view, expected in oracle.expected().items():
            found = stored(warehouse, view)
            # A part that was there before a gap came to lie before it stays as it was, and is known to wait.
            base = FIRST // 5 if view == "Long" else FIRST
            waiting = {
                part - base
                for item in report.blocked
                if item.view == view
                for part in item.parts & PartSet.between(base, base + 100)
            }
            assert {part: rows for part, rows in found.items() if part not in waiting} == expected, view
            assert not waiting & set(expected), view


@pytest.mark.timeout(900)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=schedules, batch_limit=st.sampled_from([None, 1, 2]))
def test_views_equal_the_oracle_after_any_schedule(events: list[Any], batch_limit: int | None, spark: Any) -> None:
    check_schedule(events, spark, batch_limit)


@pytest.mark.timeout(900)
def test_a_first_part_that_moves_and_a_corrected_batch(spark: Any) -> None:
    check_schedule(
        [
            ("load", "a", 6, 6, [(6, 0, 1), (9, 1, 2), (11, 0, 3)]),
            ("refresh", {"Chain", "Third", "Long", "Short"}, 0, 12),
            ("load", "b", 0, 3, [(1, 0, 2), (2, 1, 3)]),
            ("refresh", {"Chain", "Short"}, 6, 3),
            ("load", "c", 3, 3, [(5, 1, -2)]),
            ("refresh", {"Third"}, 8, 1),
            ("load", "a", 6, 6, [(7, 0, 1), (9, 1, 2)]),
        ],
        spark,
    )


def test_nothing_is_made_from_parts_that_wait_for_a_past_that_is_not_loaded(spark: Any) -> None:
    check_schedule([("load", "a", 7, 3, []), ("refresh", {"Chain"}, 8, 1), ("load", "b", 0, 1, [])], spark)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(events=schedules, batch_limit=st.sampled_from([None, 1, 2]))
def test_views_equal_the_oracle_after_a_hundred_schedules(
    events: list[Any], batch_limit: int | None, spark: Any
) -> None:
    check_schedule(events, spark, batch_limit)
