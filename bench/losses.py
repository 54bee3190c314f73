"""Made-up loss measurements, as in the papers: the same ones for the same part, whoever asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_viewdf.parts import PartSet
from bench.measure import console

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_viewdf.warehouse import Warehouse

START = datetime(2015, 1, 1, tzinfo=UTC)
FIRST = 23667840  # the part of START, in minutes

COLUMNS = "ts TIMESTAMP, src INT, dest INT, loss INT"


def write_stream(name: str, *, unique: bool = False) -> str:
    """A stream for measurements. If it says that a part has one row for each pair, loading sees to it."""
    columns = COLUMNS.replace("TIMESTAMP", "TIMESTAMP ORDERED") + (", UNIQUE (src, dest)" if unique else "")
    return f"CREATE STREAM {name} ({columns}) PARTITION LENGTH 60;\n"


LONGEST_STREAK = 6


def part_start(number: int) -> datetime:
    return START + timedelta(minutes=number)


def part_set(number: int) -> PartSet:
    return PartSet.between(FIRST + number, FIRST + number)


def measurements(spark: SparkSession, number: int, rows: int, pairs: int, selectivity: float = 0.1) -> DataFrame:
    """`rows` rows of minute `number`, spread evenly over `pairs` pairs.

    So large a share of the pairs loses more than ten packets: each for six minutes in a row, beginning in different minutes.
    Up to a share of one half no streak is longer than that. Rows lie in the order of their times, in which the pairs are mixed: who
    groups rows that lie side by side, or come in the same order again and again, has an easier time than with real ones.
    """
    second = int(part_start(number).timestamp())
    lossy = round(selectivity * 1000)
    pair = f"id % {pairs}"
    streak = f"CAST(({number} + pmod(xxhash64({pair}, 7), 6)) / {LONGEST_STREAK} AS INT)"
    rows_of_minute = spark.range(0, rows, 1, 2).selectExpr(
        f"timestamp_micros({second}000000L + pmod(xxhash64(id, {number}, 1), 60000000)) AS ts",
        f"CAST({pair} / 1000 AS INT) AS src",
        f"CAST({pair} % 1000 AS INT) AS dest",
        f"""CAST(CASE WHEN (pmod(xxhash64({pair}), 1000) + {streak} * {lossy}) % 1000 < {lossy}
                      THEN 11 + pmod(xxhash64(id, {number}), 20)
                      ELSE pmod(xxhash64(id, {number}), 11) END AS INT) AS loss""",
    )
    return rows_of_minute.sortWithinPartitions("ts")


def load_parts(
    wh: Warehouse, spark: SparkSession, table: str, count: int, rows: int, pairs: int, selectivity: float = 0.1
) -> list[str]:
    """Load the first `count` minutes into a stream: the directory of each part."""
    console.print(f"  loading {count} parts of {rows:,} rows into {table}", style="dim")
    for number in range(count):
        start = part_start(number)
        frame = measurements(spark, number, rows, pairs, selectivity)
        wh.load(table, frame, f"b{number}", (start, start + timedelta(minutes=1)))
    return find_parts(wh, table)


def find_parts(wh: Warehouse, table: str) -> list[str]:
    """Where the files of each part are."""
    with wh._bench.catalog.snapshot() as reader:
        return [
            wh._bench.files.url(version.location).removeprefix("file://") for version in reader.current_versions(table)
        ]


def find_part(wh: Warehouse, view: str, number: int) -> str | None:
    """Where the files of one part are; None if it has no rows."""
    with wh._bench.catalog.snapshot() as reader:
        (version,) = reader.current_versions(view, part_set(number))
    return wh._bench.files.url(version.location).removeprefix("file://") if version.location else None
