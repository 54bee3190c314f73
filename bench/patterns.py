"""One update of a pattern view: against the same written by hand, and against the pattern over the last parts."""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_viewdf.engine.sessions import open_session
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse
from bench.losses import FIRST, STREAM, measurements, part_start, part_urls
from bench.measure import Goal, console, measure, ratio_of, save, show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = """
CREATE VIEW View1 AS
  SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
  FROM M PATTERN [a, b, c, d+]
  WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
  GROUP BY src, dest;
"""

OURS, BY_HAND, NAIVE = "ViewDF", "by hand", "last 20 parts"


class ByHand:
    """The paper's helper and view as PySpark code with nothing around it: no catalog, no digest, no versions."""

    def __init__(self, spark: SparkSession, parts: list[str], directory: Path) -> None:
        self.spark, self.parts, self.directory = spark, parts, directory

    def update(self, number: int) -> None:
        from pyspark.sql import functions as f

        rows = self._read(self.parts[number], "ts TIMESTAMP, src INT, dest INT, loss INT").where("loss > 10")
        if number:
            before = self._read(
                str(self.directory / f"helper{number - 1}"), "src INT, dest INT, ct INT, sum_loss BIGINT"
            )
            rows = rows.join(before, ["src", "dest"], "left")
            ct, total = f.coalesce("ct", f.lit(0)) + 1, f.coalesce("sum_loss", f.lit(0)) + f.col("loss")
        else:
            ct, total = f.lit(1), f.col("loss").cast("bigint")
        helper = rows.select("src", "dest", ct.cast("int").alias("ct"), total.alias("sum_loss"))
        helper.write.mode("overwrite").parquet(str(self.directory / f"helper{number}"))
        written = self._read(str(self.directory / f"helper{number}"), "src INT, dest INT, ct INT, sum_loss BIGINT")
        written.where("ct >= 4").write.mode("overwrite").parquet(str(self.directory / f"view{number}"))

    def _read(self, path: str, schema: str) -> DataFrame:
        return self.spark.read.schema(schema).parquet(path)


def run_naive(spark: SparkSession, parts: list[str], number: int, scope: int, directory: Path) -> None:
    """The streaks that reach the newest part, from the rows of the last parts alone, by window functions."""
    frames = [
        spark.read.schema("ts TIMESTAMP, src INT, dest INT, loss INT")
        .parquet(parts[index])
        .selectExpr("src", "dest", "loss", f"{index} AS part")
        for index in range(max(0, number - scope + 1), number + 1)
    ]
    rows = frames[0]
    for frame in frames[1:]:
        rows = rows.unionAll(frame)
    rows.createOrReplaceTempView("bench_rows")
    spark.sql(f"""
        SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss
        FROM (
          SELECT *, SUM(CASE WHEN loss > 10 THEN 0 ELSE 1 END)
                    OVER (PARTITION BY src, dest ORDER BY part DESC) AS breaks
          FROM bench_rows)
        WHERE breaks = 0
        GROUP BY src, dest
        HAVING COUNT(*) >= 4 AND MAX(part) = {number}
    """).write.mode("overwrite").parquet(str(directory / "naive"))


def run(rows: int, repeats: int) -> None:
    scope = 20
    directory = Path(tempfile.mkdtemp(prefix="viewdf-bench-"))
    spark = open_session(master="local[2]")
    try:
        with Warehouse.open(directory / "wh", spark=spark) as wh:
            wh.apply(STREAM + VIEW)
            count = scope + repeats
            console.print(f"Loading {count} parts of {rows:,} rows")
            for number in range(count):
                start = part_start(number)
                wh.load(
                    "M", measurements(spark, number, rows, rows), f"b{number}", (start, start + timedelta(minutes=1))
                )
            parts = part_urls(wh)
            by_hand = ByHand(spark, parts, directory)

            def ours(number: int) -> None:
                wh.refresh(parts={"View1": PartSet.between(FIRST + number, FIRST + number)})

            console.print(f"Warming up with {scope} parts")
            for number in range(scope):
                ours(number)
                by_hand.update(number)
            run_naive(spark, parts, scope - 1, scope, directory)
            _check_same(spark, wh, directory, scope - 1)
            contestants = {
                OURS: ours,
                BY_HAND: by_hand.update,
                NAIVE: lambda number: run_naive(spark, parts, number, scope, directory),
            }
            timings = measure(contestants, range(scope, count))
            _check_same(spark, wh, directory, count - 1)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    show(f"Pattern [a, b, c, d+], {rows:,} rows a part, one a pair, 10% over the threshold", timings, BY_HAND)
    goals = [
        Goal("update / the same by hand in PySpark", ratio_of(timings, OURS, BY_HAND), 1.1, at_most=True),
        Goal("pattern over the last 20 parts / update", ratio_of(timings, NAIVE, OURS), 10, at_most=False),
    ]
    for goal in goals:
        console.print(str(goal))
    console.print(f"Saved in {save('patterns', {'rows': rows, 'scope': scope}, {'update': timings}, goals).name}")


def _check_same(spark: SparkSession, wh: Warehouse, directory: Path, number: int) -> None:
    """All contestants must have come to the same answer, or their times mean nothing."""
    found = wh.query(f"SELECT src, dest, ct, sum_loss FROM View1[{FIRST + number}]")
    others = [spark.read.parquet(str(directory / name)) for name in (f"view{number}", "naive")]
    for other in others:
        other = other.selectExpr("src", "dest", "CAST(ct AS BIGINT) AS ct", "sum_loss")
        ours = found.selectExpr("src", "dest", "CAST(ct AS BIGINT) AS ct", "sum_loss")
        if ours.exceptAll(other).count() or other.exceptAll(ours).count():
            raise AssertionError(f"The contestants differ in part {number}.")
