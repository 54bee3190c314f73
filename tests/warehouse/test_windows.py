"""Window views against the naive query, by every strategy, with late rows, on every part."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from network import minute
from window_oracle import (
    AGGREGATES,
    FIRST,
    HOLISTIC,
    STREAM,
    Aggregate,
    Naive,
    ask_spark,
    find_difference,
    make_row,
    select_list,
)

from airflow_provider_viewdf.warehouse import Warehouse

SUBTRACTABLE = [item for item in AGGREGATES if item.is_subtractable]
# A decimal average has six digits behind the point in Spark, and is a double in DuckDB.
DIGITS = 5


def view_sql(name: str, aggregates: Sequence[Aggregate], strategy: str, window: str, tail: str) -> str:
    columns = ("k, " if "GROUP BY k" in tail else "") + select_list(aggregates)
    return f"CREATE VIEW {name} AS SELECT {columns} FROM S [WINDOW {window}] {tail} WITH (strategy = '{strategy}');\n"


def read_view(warehouse: Warehouse, name: str) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {index: [] for index in warehouse.existing_parts(name)}
    for row in warehouse.query(f"SELECT PART AS part, * FROM {name}").collect():
        found[row[0]].append(tuple(row[1:]))
    return found


def check_view(
    warehouse: Warehouse, naive: Naive, name: str, aggregates: Sequence[Aggregate], tail: str, spans: dict[int, Any]
) -> None:
    """Every part of a view equals the query over its span, and there are no other parts."""
    check_found(read_view(warehouse, name), naive, name, aggregates, tail, spans)


def check_found(
    found: dict[int, list[tuple[Any, ...]]],
    naive: Naive,
    name: str,
    aggregates: Sequence[Aggregate],
    tail: str,
    spans: dict[int, Any],
) -> None:
    keys = "k, " if "GROUP BY k" in tail else ""
    query = f"SELECT {keys}{select_list(aggregates, is_duck=True)} FROM {{rows}} {tail}"
    assert sorted(found) == sorted(spans), name
    for part, (low, high) in spans.items():
        expected = naive.ask(query, low, high)
        difference = find_difference(found[part], expected, keys=1 if keys else 0, digits=DIGITS)
        assert difference is None, (name, part, difference)


def random_rows(choose: random.Random, count: int, groups: int) -> list[dict[str, Any]]:
    """Rows of six parts, few for each group, so that groups vanish from a window and come back."""
    return [
        make_row(
            choose.randint(0, 5),
            choose.randint(0, 2),
            k=choose.choice([None, *range(groups)]),
            s=choose.choice(["a", "b", None]),
            x=choose.choice([None, -3, 0, 0, 1, 3, 2**31 - 1, -(2**31)]),
            big=choose.choice([None, -3, 0, 3, 2**52, -(2**52)]),
            m=choose.choice([None, Decimal("0"), Decimal("-1.25"), Decimal("2.50"), Decimal("99999999.99")]),
            d=choose.choice([None, 0.0, -1.5, 0.1, 1e6, -1e6]),
            b=choose.choice([True, False, None]),
        )
        for _ in range(count)
    ]


@contextmanager
def open_warehouse(spark: Any) -> Iterator[Warehouse]:
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        Warehouse.open(directory, spark=spark) as warehouse,
    ):
        yield warehouse


STRATEGIES = [
    ("W_delta", SUBTRACTABLE, "delta", "3 minutes", "GROUP BY k"),
    ("W_prefix", SUBTRACTABLE, "prefix", "3 minutes", "GROUP BY k"),
    ("W_dyadic", AGGREGATES, "dyadic", "3 minutes", "GROUP BY k"),
    ("W_merge", AGGREGATES, "merge", "2 minutes", "GROUP BY k"),
    ("W_recompute", [*AGGREGATES, *HOLISTIC], "recompute", "3 minutes", "GROUP BY k"),
]
EMPTY = (
    "(SELECT CAST(NULL AS TIMESTAMP) ts, 1 AS k, '' AS s, 1 AS x, CAST(1 AS BIGINT) big, CAST(1 AS DECIMAL(10,2)) m, 1D AS d, "
    "true AS b)"
)


# Spark plans a query of so many aggregates for longer than it runs it: the answer for a width is asked for once, for all views.
EVERYTHING = [*AGGREGATES, *HOLISTIC]
AGREED = [item for item in EVERYTHING if item.spark_agrees and "approx" not in item.text]


def check_strategies(spark: Any, seed: int) -> None:
    """Load, refresh, load late rows, refresh; then every view by every strategy is what the rows of its windows say."""
    choose = random.Random(seed)
    early, late = random_rows(choose, 60, 12), random_rows(choose, 6, 12)
    with open_warehouse(spark) as warehouse:
        warehouse.apply(STREAM + "".join(view_sql(*view) for view in STRATEGIES))
        warehouse.load("S", early, covers=(minute(0), minute(6)), batch_id="early")
        warehouse.refresh()
        warehouse.load("S", late, batch_id="late")
        warehouse.refresh()
        naive = Naive([*early, *late])
        types = dict(zip(AGREED, spark.sql(f"SELECT {select_list(AGREED)} FROM {EMPTY}").dtypes, strict=True))
        by_spark: dict[int, list[tuple[Any, ...]]] = {}
        exact: list[list[str]] = []
        for name, aggregates, _, window, tail in STRATEGIES:
            width = int(window.split()[0])
            spans = {FIRST + end: (FIRST + end - width + 1, FIRST + end) for end in range(width - 1, 6)}
            frame = warehouse.query(f"SELECT PART AS part, * FROM {name}")
            rows = [tuple(row) for row in frame.collect()]
            found: dict[int, list[tuple[Any, ...]]] = {index: [] for index in warehouse.existing_parts(name)}
            for row in rows:
                found[row[0]].append(row[1:])
            check_found(found, naive, name, aggregates, tail, spans)

            # Values and types are those of Spark's own aggregates, wherever Spark determines them.
            if width not in by_spark:
                query = f"SELECT window, k, {select_list(AGREED)} FROM {{rows}} GROUP BY window, k"
                by_spark[width] = ask_spark(spark, naive.rows, query, [(part, *span) for part, span in spans.items()])
            places = [number for number, item in enumerate(aggregates) if item in AGREED]
            expected = pick(by_spark[width], [AGREED.index(aggregates[number]) for number in places])
            difference = find_difference(pick(rows, places), _sorted_sets(expected), keys=2, digits=9)
            assert difference is None, (name, difference)
            kinds = [kind for _, kind in frame.dtypes][2:]
            assert [kinds[number] for number in places] == [types[aggregates[number]][1] for number in places]

            # No rounding here: what is exact is the same to the last digit, whatever way it was computed.
            if width == 3:
                columns = [number for number, item in enumerate(SUBTRACTABLE) if is_exact(item)]
                assert aggregates[: len(SUBTRACTABLE)] == SUBTRACTABLE
                exact.append(sorted(map(repr, pick(rows, columns))))
        assert len(exact) == 4
        assert all(answer == exact[0] for answer in exact)


def pick(rows: Iterable[tuple[Any, ...]], columns: Sequence[int]) -> list[tuple[Any, ...]]:
    """The part, the group, and these aggregates."""
    return [(*row[:2], *(row[2 + number] for number in columns)) for row in rows]


# One example has many groups, each with a history of its own, and takes many small jobs of Spark.
@pytest.mark.timeout(900)
@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_every_strategy_and_aggregate_equals_the_naive_query_on_every_part(
    seed: int, spark_kind: str, open_spark: Callable[[str], Any]
) -> None:
    check_strategies(open_spark(spark_kind), seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(20))
def test_every_strategy_and_aggregate_equals_the_naive_query_for_many_seeds(seed: int, spark: Any) -> None:
    check_strategies(spark, seed)


def is_exact(item: Aggregate) -> bool:
    """Spark's own variance is computed in doubles, and so is its average of large integers."""
    return not item.text.startswith(("var", "stddev", "avg(big)"))


def _sorted_sets(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(sorted(value) if isinstance(value, list) else value for value in row) for row in found]


@pytest.mark.timeout(900)
def test_partial_sliding_and_ungrouped_windows_equal_the_naive_query_also_when_history_comes_later(
    open_spark: Callable[[str], Any],
) -> None:
    few = [_find("sum(x)"), _find("count(*)"), _find("avg(m)"), _find("stddev(x)")]
    more = [*few, _find("sum(d)"), _find("max(m)"), _find("count(DISTINCT x)"), _find("min_by(s, x)")]
    grouped, all_rows = "WHERE b IS NOT NULL GROUP BY k HAVING count(*) > 1", "WHERE b IS NOT NULL"
    views = [
        ("P_delta", few, "delta", "3 minutes PARTIAL", grouped),
        ("P_prefix", few, "prefix", "3 minutes PARTIAL", all_rows),
        ("P_dyadic", more, "dyadic", "3 minutes PARTIAL", all_rows),
        ("P_recompute", more, "recompute", "3 minutes PARTIAL", grouped),
        ("All_delta", few, "delta", "2 minutes", all_rows),
        ("All_merge", more, "merge", "2 minutes", all_rows),
        ("Slide_merge", more, "merge", "4 minutes SLIDE 2 minutes", grouped),
        ("Slide_delta", few, "delta", "4 minutes SLIDE 2 minutes", all_rows),
        ("Odd_dyadic", more, "dyadic", "3 minutes SLIDE 2 minutes PARTIAL", grouped),
        ("Odd_prefix", few, "prefix", "3 minutes SLIDE 2 minutes", grouped),
    ]
    choose = random.Random(4)
    # Nothing at all in part 3, so that windows without GROUP BY have rows of no rows.
    rows = [row for row in random_rows(choose, 40, 4) if row["ts"].minute != 3]
    history = [row for row in rows if row["ts"] < minute(2)]
    with open_warehouse(open_spark("classic")) as warehouse:
        warehouse.apply(STREAM + "".join(view_sql(*view) for view in views))
        warehouse.load("S", [row for row in rows if row["ts"] >= minute(2)], covers=(minute(2), minute(6)))
        warehouse.refresh()
        naive = Naive([row for row in rows if row["ts"] >= minute(2)])
        check_all(warehouse, naive, views, 2)
        warehouse.load("S", history, covers=(minute(0), minute(2)))
        warehouse.refresh()
        check_all(warehouse, Naive(rows), views, 0)


def _find(text: str) -> Aggregate:
    return next(item for item in AGGREGATES if item.text == text)


def check_all(warehouse: Warehouse, naive: Naive, views: Sequence[Any], first: int) -> None:
    """Six minutes have been loaded, or all but the first of them."""
    for name, aggregates, _, window, tail in views:
        words = window.split()
        width, slide = int(words[0]), int(words[words.index("SLIDE") + 1]) if "SLIDE" in words else 1
        spans = {}
        for end in range(first + slide if slide > 1 else first + 1, 7, slide):
            low = end - width
            if low >= first or "PARTIAL" in words:
                spans[(FIRST + end) // slide - 1] = (FIRST + max(low, first), FIRST + end - 1)
        check_view(warehouse, naive, name, aggregates, tail, spans)
