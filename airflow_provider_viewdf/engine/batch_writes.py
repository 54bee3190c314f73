"""Compute many parts of a view by one statement: written in one job, counted and digested in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_viewdf.engine.digests import hash_row, quote_name, read_digest, sum_hashes
from airflow_provider_viewdf.engine.spark_errors import translated
from airflow_provider_viewdf.errors import StepFailedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_viewdf.definitions import Column
    from airflow_provider_viewdf.engine.engine import DimensionTable, Engine, InputTable
    from airflow_provider_viewdf.versions import ContentDigest

PART_COLUMN = "__part"

_HASH = "__hash"
# Of <directory>/__part=<index>/<file>.
PART_OF_DIRECTORY = (
    "CAST(substring_index(substring_index(substring_index(_metadata.file_path, '/', -2), '/', 1), '=', -1) AS BIGINT)"
)

# A batch is many small parts: a task or two of work, which must not become a job for each exchange, nor a task for each of
# two hundred shuffle partitions.
_MOST_SHUFFLE_PARTITIONS = 16
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Beyond this many paths Spark starts a job to list them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}


@dataclass(frozen=True, slots=True)
class ValuesTable:
    """A temporary view of whole numbers."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]


def compute_batch(
    engine: Engine,
    sql: str,
    values: ValuesTable | None,
    inputs: Sequence[InputTable],
    dimensions: Sequence[DimensionTable],
    columns: tuple[Column, ...],
    out_location: str,
) -> dict[int, ContentDigest]:
    """Write the rows of a statement, by the part that its first column names, below `<out_location>/__part=<index>`.

    Parts without rows get no directory, and no digest. QueryRefusedError if Spark does not accept the statement,
    StepFailedError if it fails while it runs; either way nothing stays behind.
    """
    spark = engine.spark
    with engine.exclusively(), _settings(spark), _values(spark, values):
        with engine.temporary_views(inputs, dimensions), engine.cleaning_up(out_location), translated(sql):
            rows = _cast_columns(spark.sql(sql), columns)
            tasks = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
            engine.save(rows.repartition(tasks, PART_COLUMN).write.partitionBy(PART_COLUMN), out_location)
            if not engine.files.exists(out_location):
                return {}
            return _digest(engine.read_directory(columns, out_location))


def _cast_columns(rows: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    if len(rows.columns) != len(columns) + 1:
        raise StepFailedError(
            f"The statement yields {len(rows.columns) - 1} columns where {len(columns)} are declared: "
            "apply the view again."
        )
    places = [f"__{number}" for number in range(len(columns))]
    casts = [
        f"CAST({place} AS {column.type}) AS {quote_name(column.name)}"
        for place, column in zip(places, columns, strict=True)
    ]
    return rows.toDF(PART_COLUMN, *places).selectExpr(PART_COLUMN, *casts)


def _digest(rows: DataFrame) -> dict[int, ContentDigest]:
    from pyspark.sql import functions

    hashes = rows.selectExpr(f"{PART_OF_DIRECTORY} AS {PART_COLUMN}", f"{hash_row(rows.schema)} AS {_HASH}")
    figures = [functions.expr(figure) for figure in sum_hashes(_HASH)]
    found = hashes.groupBy(PART_COLUMN).agg(*figures).collect()
    return {row[PART_COLUMN]: read_digest(row.asDict()) for row in found}


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """Plan for many small parts, and leave the session as it was."""
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    wanted = {**_SETTINGS, "spark.sql.shuffle.partitions": str(min(tasks, _MOST_SHUFFLE_PARTITIONS))}
    before = {key: spark.conf.get(key, None) for key in wanted}
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            with suppress(Exception):  # the session may be gone, and its settings with it
                spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@contextmanager
def _values(spark: SparkSession, values: ValuesTable | None) -> Iterator[None]:
    if values is None:
        yield
        return
    rows = ", ".join(f"({', '.join(f'{number}L' for number in row)})" for row in values.rows)
    with translated():
        spark.sql(f"SELECT * FROM VALUES {rows} AS v({', '.join(values.columns)})").createTempView(values.name)
    try:
        yield
    finally:
        with suppress(Exception):
            spark.catalog.dropTempView(values.name)
