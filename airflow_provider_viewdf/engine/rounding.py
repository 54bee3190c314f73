"""Rows that are the same but for the last digits of floating-point numbers: Spark adds these up in whatever order they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_viewdf.definitions import Column
from airflow_provider_viewdf.engine.digests import hash_row, quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Of the greater of two numbers.
TOLERANCE = "1e-9D"

_FLOATS = ("float", "double")


def find_floats(columns: Sequence[Column]) -> list[str]:
    """The names of the columns of floating-point numbers, as Spark SQL."""
    return [quote_name(column.name) for column in columns if column.type.lower() in _FLOATS]


def differ_only_by_rounding(one: DataFrame, other: DataFrame, columns: Sequence[Column]) -> bool:
    """Whether the rows pair up: equal in all other columns, and close in these."""
    floats = find_floats(columns)
    if not floats:
        return False
    exact = [name for column in columns if (name := quote_name(column.name)) not in floats]
    key = hash_row(one.selectExpr(*exact).schema) if exact else "0L"

    def number(rows: DataFrame, side: str) -> DataFrame:
        values = [f"{name} AS __{side}{place}" for place, name in enumerate(floats)]
        order = f"row_number() OVER (PARTITION BY {key} ORDER BY {', '.join(floats)})"
        return rows.selectExpr(f"{key} AS __key", f"{order} AS __number", f"true AS __{side}", *values)

    pairs = number(one, "one").join(number(other, "other"), ["__key", "__number"], "full_outer")
    close = " AND ".join(_is_close(f"__one{place}", f"__other{place}") for place in range(len(floats)))
    return pairs.where(f"NOT coalesce(__one AND __other AND {close}, false)").isEmpty()


def _is_close(one: str, other: str) -> str:
    apart = f"abs({one} - {other})"
    near = f"{apart} <= {TOLERANCE} * greatest(abs({one}), abs({other})) AND {apart} < double('infinity')"
    return f"({one} <=> {other} OR coalesce({near}, false))"
