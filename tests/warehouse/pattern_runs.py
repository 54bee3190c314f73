"""Runs views part by part on Spark without a warehouse: for many small cases, where files and a catalog would only take time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from airflow_provider_viewdf.compiler import compile_part
from airflow_provider_viewdf.definitions import Definition, Rule, fold

Rows = Sequence[Any]


def run_views(
    spark: Any, definitions: Sequence[Definition], streams: Mapping[str, Mapping[int, Rows]]
) -> dict[str, dict[int, Rows]]:
    """The rows of each part of each view. `streams` has the rows of each part of each stream, as dictionaries."""
    known = {fold(item.name): item for item in definitions}
    found: dict[str, dict[int, Rows]] = {}
    parts = sorted({part for rows in streams.values() for part in rows})
    schemas: dict[str, Any] = {}
    created: list[str] = []
    try:
        for position, part in enumerate(parts):
            for definition in definitions:
                rule: Rule = "initialize" if position == 0 else "update"
                if definition.kind == "stream":
                    _create(spark, definition, part, streams[definition.name][part], schemas, created)
                    continue
                compiled = compile_part(definition, rule, part, known)
                answer = spark.sql(compiled.sql)
                schemas.setdefault(definition.name, as_nullable(answer.schema))
                rows = answer.collect()
                found.setdefault(definition.name, {})[part] = rows
                _create(spark, definition, part, rows, schemas, created)
    finally:
        for name in created:
            spark.catalog.dropTempView(name)
    return found


def _create(
    spark: Any, definition: Definition, part: int, rows: Rows, schemas: dict[str, Any], created: list[str]
) -> None:
    text = ", ".join(f"{column.name} {column.type}" for column in definition.columns)
    name = f"{definition.name}_{part}"
    frame = spark.createDataFrame(list(rows), schemas.get(definition.name, text))
    frame.createOrReplaceTempView(name)
    created.append(name)


def as_nullable(type_: DataType) -> Any:
    """A type as it comes out of a file: everything in it can be NULL."""
    if isinstance(type_, StructType):
        return StructType([StructField(item.name, as_nullable(item.dataType), True) for item in type_.fields])
    if isinstance(type_, ArrayType):
        return ArrayType(as_nullable(type_.elementType), True)
    return type_
