"""The naive answer to window queries: the same query over the rows of each window, by DuckDB and by Spark itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
from network import minute

STREAM = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k INT, s STRING, x INT, big BIGINT, m DECIMAL(10,2), d DOUBLE, b BOOLEAN)
  PARTITION LENGTH 60;
"""
COLUMNS = ("ts", "k", "s", "x", "big", "m", "d", "b")
FIRST = 23668440


@dataclass(frozen=True)
class Aggregate:
    """An aggregate as it is written in a view, and the same in DuckDB. Without `spark_agrees`, Spark leaves it open."""

    text: str
    duck: str
    is_subtractable: bool = False
    spark_agrees: bool = True


def _of(text: str, duck: str = "", *, subtract: bool = False, spark: bool = True) -> Aggregate:
    return Aggregate(text, duck or text, subtract, spark)


AGGREGATES = [
    _of("count(*)", subtract=True),
    _of("count(x)", subtract=True),
    _of("sum(x)", subtract=True),
    _of("sum(big)", subtract=True),
    _of("sum(m)", subtract=True),
    _of("avg(x)", subtract=True),
    _of("avg(big)", subtract=True),
    _of("avg(m)", subtract=True),
    _of("var_pop(x)", subtract=True),
    _of("var_samp(m)", subtract=True),
    _of("stddev(x)", subtract=True),
    _of("stddev_pop(m)", subtract=True),
    _of("count_if(b)", "count(*) FILTER (WHERE b)", subtract=True),
    _of("sum(CAST(x AS BIGINT) * 2 + 1)", subtract=True),
    _of("sum(coalesce(x, 0)) FILTER (WHERE b)", subtract=True),
    _of("avg(m) FILTER (WHERE x > 0)", subtract=True),
    _of("sum(x) + 2 * count(m) - 1", subtract=True),
    _of("CASE WHEN sum(x) > 3 THEN 'much' ELSE 'little' END", subtract=True),
    _of("sum(d)"),
    _of("avg(d)"),
    _of("var_pop(d)"),
    _of("stddev(d)"),
    _of("var_samp(big)"),
    _of("min(x)"),
    _of("max(m)"),
    _of("max(s)"),
    _of("min(d)"),
    _of("bool_and(b)"),
    _of("every(b)", "bool_and(b)"),
    _of("bool_or(b)"),
    _of("some(b)", "bool_or(b)"),
    _of("any(x > 1)", "bool_or(x > 1)"),
    _of("first(x)", "(list(x ORDER BY ts, x NULLS FIRST))[1]", spark=False),
    _of("last_value(s)", "(list(s ORDER BY ts DESC, s DESC NULLS LAST))[1]", spark=False),
    _of("last(x) IGNORE NULLS", "(list(x ORDER BY ts DESC, x DESC) FILTER (WHERE x IS NOT NULL))[1]", spark=False),
    _of("first(x) FILTER (WHERE b)", "(list(x ORDER BY ts, x NULLS FIRST) FILTER (WHERE b))[1]", spark=False),
    _of("min_by(s, x)", "(list(s ORDER BY x, s NULLS FIRST) FILTER (WHERE x IS NOT NULL))[1]", spark=False),
    _of("max_by(x, m)", "(list(x ORDER BY m DESC, x DESC NULLS LAST) FILTER (WHERE m IS NOT NULL))[1]", spark=False),
    _of("count(DISTINCT x)"),
    _of("count(DISTINCT s, b)", "count(DISTINCT (s, b)) FILTER (WHERE s IS NOT NULL AND b IS NOT NULL)"),
    _of("collect_set(x)", "coalesce(list_sort(list(DISTINCT x) FILTER (WHERE x IS NOT NULL)), [])"),
    _of("approx_count_distinct(x)", "count(DISTINCT x)"),
    _of("approx_percentile(x, 0.5)", "quantile_disc(x, 0.5)"),
    _of("approx_percentile(m, 0.25)", "quantile_disc(m, 0.25)"),
]
HOLISTIC = [
    _of("median(x)", "CAST(median(x) AS DOUBLE)"),
    _of("percentile(m, 0.25)", "quantile_cont(CAST(m AS DOUBLE), 0.25)"),
    _of("sum(DISTINCT x)"),
]


def select_list(aggregates: Sequence[Aggregate], *, is_duck: bool = False) -> str:
    return ", ".join(f"{item.duck if is_duck else item.text} AS c{number}" for number, item in enumerate(aggregates))


def make_row(part: int, second: int, **values: Any) -> dict[str, Any]:
    """A row of part `part`, counted from minute 0."""
    return {"ts": minute(part, second), **{name: values.get(name) for name in COLUMNS[1:]}}


def part_of(time: datetime) -> int:
    return FIRST + (time - minute(0)) // timedelta(minutes=1)


class Naive:
    """All rows that were loaded, and what a query over some of their parts gives."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.rows = rows
        self.database = duckdb.connect()
        self.database.execute("SET TimeZone = 'UTC'")
        self.database.execute(
            "CREATE TABLE s (part BIGINT, ts TIMESTAMPTZ, k INT, s VARCHAR, x INT, big BIGINT, m DECIMAL(10,2), "
            "d DOUBLE, b BOOLEAN)"
        )
        for row in rows:
            values = [part_of(row["ts"]), *(row[name] for name in COLUMNS)]
            self.database.execute("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def ask(self, query: str, low: int, high: int) -> list[tuple[Any, ...]]:
        """The rows of a query, in which {rows} stands for the rows of the parts low to high."""
        rows = f"(SELECT * FROM s WHERE part BETWEEN {low} AND {high}) AS s"
        return self.database.execute(query.format(rows=rows)).fetchall()


def ask_spark(spark: Any, rows: Sequence[dict[str, Any]], query: str, windows: Sequence[tuple[int, int, int]]) -> Any:
    """The same by Spark, for all windows (part, low, high) at once: {rows} are the rows of each, with their `window`."""
    schema = "part BIGINT, ts TIMESTAMP, k INT, s STRING, x INT, big BIGINT, m DECIMAL(10,2), d DOUBLE, b BOOLEAN"
    data = [(part_of(row["ts"]), *(row[name] for name in COLUMNS)) for row in rows]
    spark.createDataFrame(data, schema).createOrReplaceTempView("naive_rows")
    spark.createDataFrame(list(windows), "window BIGINT, low BIGINT, high BIGINT").createOrReplaceTempView(
        "naive_windows"
    )
    joined = "(SELECT * FROM naive_windows JOIN naive_rows ON part BETWEEN low AND high) AS s"
    try:
        return [tuple(row) for row in spark.sql(query.format(rows=joined)).collect()]
    finally:
        spark.catalog.dropTempView("naive_rows")
        spark.catalog.dropTempView("naive_windows")


def find_difference(
    found: Iterable[Sequence[Any]], expected: Iterable[Sequence[Any]], *, keys: int, digits: int
) -> str | None:
    """The first place where two answers differ, or nothing. Rows are told apart by their first columns, the keys.

    Numbers are compared, never rounded: two doubles a hair's breadth apart may round to different digits.
    """
    left, right = _by_keys(found, keys), _by_keys(expected, keys)
    if sorted(left, key=repr) != sorted(right, key=repr):
        return f"rows of {sorted(left, key=repr)} instead of {sorted(right, key=repr)}"
    for key, row in left.items():
        for number, (one, other) in enumerate(zip(row, right[key], strict=True)):
            if not _is_same(one, other, digits):
                return f"column c{number - keys} of {key}: {one!r} instead of {other!r}"
    return None


def _by_keys(rows: Iterable[Sequence[Any]], keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    all_rows = [tuple(row) for row in rows]
    answer = {row[:keys]: row for row in all_rows}
    assert len(answer) == len(all_rows), "two rows of one group"
    return answer


def _is_same(one: Any, other: Any, digits: int) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(_is_same(*pair, digits) for pair in zip(one, other))
    if isinstance(one, float) or isinstance(other, float):
        if one is None or other is None:
            return one is other
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        # What is left where doubles cancel each other out is as small as they were large.
        return math.isclose(one, other, rel_tol=10**-digits, abs_tol=1e-8)
    # Decimals that were rounded to different scales, as averages are, agree to the smaller one.
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        scale = max(one.as_tuple().exponent, other.as_tuple().exponent)
        return abs(one - other) * 2 <= Decimal(1).scaleb(scale) if one != other else True
    return bool(one == other)
