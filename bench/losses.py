"""Made-up loss measurements as DataFrames: the same ones for the same part, whoever asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_viewdf.warehouse import Warehouse

START = datetime(2015, 1, 1, tzinfo=UTC)
FIRST = 23667840  # the part of START, in minutes

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src INT, dest INT, loss INT) PARTITION LENGTH 60;\n"


def part_start(number: int) -> datetime:
    return START + timedelta(minutes=number)


def measurements(spark: SparkSession, number: int, rows: int, pairs: int) -> DataFrame:
    """`rows` rows of minute `number`, spread evenly over `pairs` pairs. A tenth of the pairs loses more than ten packets,
    the same ones for six minutes in a row."""
    second = int(part_start(number).timestamp())
    return spark.range(0, rows, 1, 2).selectExpr(
        f"timestamp_micros({second}000000L + id % 60000000) AS ts",
        f"CAST(id % {pairs} / 1000 AS INT) AS src",
        f"CAST(id % {pairs} % 1000 AS INT) AS dest",
        f"""CAST(CASE WHEN pmod(xxhash64(id % {pairs}) + {number // 6}, 10) = 0
                      THEN 11 + pmod(xxhash64(id, {number}), 20)
                      ELSE pmod(xxhash64(id, {number}), 11) END AS INT) AS loss""",
    )


def part_urls(wh: Warehouse) -> list[str]:
    """Where the files of each part of M are."""
    with wh._bench.catalog.snapshot() as reader:
        return [wh._bench.files.url(version.location) for version in reader.current_versions("M")]
