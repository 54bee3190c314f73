"""Rows of one part that are alike in what is UNIQUE: found in what a load has written, and taken out of its batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_viewdf.engine.batch_writes import PART_OF_DIRECTORY
from airflow_provider_viewdf.engine.digests import quote_name
from airflow_provider_viewdf.engine.engine import PART_COLUMN, Engine, write_json
from airflow_provider_viewdf.engine.spark_errors import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_viewdf.definitions import Column


@dataclass(frozen=True, slots=True)
class RepeatedRows:
    """How many rows of a part have the same values, which are given as JSON."""

    index: int
    values: str
    rows: int


def find_repeated(
    engine: Engine, columns: Sequence[Column], unique: Sequence[str], written: str, limit: int
) -> tuple[list[RepeatedRows], int]:
    """The first of the values that several rows of a part have, and how many such values there are.

    `written` has the parts' new rows, below `__part=<index>`.
    """
    with translated():
        repeated = _find(engine, columns, unique, written)
        found = repeated.orderBy(PART_COLUMN, "__values").limit(limit).collect()
        count = len(found) if len(found) < limit else repeated.count()
    return [RepeatedRows(row[PART_COLUMN], row["__values"], row["__rows"]) for row in found], count


def take_out_repeated(
    engine: Engine, columns: tuple[Column, ...], unique: Sequence[str], written: str, staging: str, kept: str
) -> list[tuple[int, str]]:
    """Write the staged rows whose values are not repeated to `kept`; return the others as JSON, with their parts."""
    from pyspark.sql import functions

    names = [quote_name(name) for name in unique]
    with engine.cleaning_up(kept), translated():
        repeated = _find(engine, columns, unique, written).alias("r")
        staged = engine.read_staging(staging, columns).alias("s")
        same = functions.expr(" AND ".join(f"s.{name} <=> r.{name}" for name in (PART_COLUMN, *names)))
        staged.join(repeated, same, "left_anti").write.parquet(engine.files.url(kept))
        others = staged.join(repeated, same, "left_semi")
        found = (
            others.selectExpr(PART_COLUMN, f"{write_json(columns)} AS __row").orderBy(PART_COLUMN, "__row").collect()
        )
    return [(row[0], row[1]) for row in found]


def _find(engine: Engine, columns: Sequence[Column], unique: Sequence[str], written: str) -> DataFrame:
    names = [quote_name(name) for name in unique]
    rows = engine.read_directory(columns, written).selectExpr(*names, f"{PART_OF_DIRECTORY} AS {PART_COLUMN}")
    counted = rows.groupBy(PART_COLUMN, *unique).agg({"*": "count"}).withColumnRenamed("count(1)", "__rows")
    values = ", ".join(names)
    return counted.where("__rows > 1").selectExpr(
        "*", f"to_json(struct({values}), map('ignoreNullFields', 'false')) AS __values"
    )
