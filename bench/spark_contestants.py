"""The same updates as someone would write them in PySpark: no catalog, no digest, no versions, no late data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.contestants import parquet
from bench.losses import COLUMNS, part_start
from bench.window_strategies import Combine, list_steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HELPER = "src INT, dest INT, ct BIGINT, sum_loss BIGINT"
STATE = "src INT, dest INT, value BIGINT, n BIGINT"


class SparkFolder:
    """Parts of a view as directories of Parquet files below one directory."""

    def __init__(self, spark: SparkSession, parts: Sequence[str], directory: Path) -> None:
        self.spark, self.parts, self.directory = spark, parts, directory

    def answer(self, number: int) -> str | None:
        return parquet(self.path(f"view{number}"))

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def read(self, schema: str, *paths: str) -> DataFrame:
        return self.spark.read.schema(schema).parquet(*paths)

    def write(self, rows: DataFrame, name: str) -> None:
        rows.write.mode("overwrite").parquet(self.path(name))


class PatternByHand(SparkFolder):
    """The paper's helper and view, from part `begin` on."""

    def __init__(self, spark: SparkSession, parts: Sequence[str], directory: Path, begin: int) -> None:
        super().__init__(spark, parts, directory)
        self.begin = begin

    def update(self, number: int) -> None:
        from pyspark.sql import functions as f

        rows = self.read(COLUMNS, self.parts[number]).where("loss > 10")
        if number > self.begin:
            before = self.read(HELPER, self.path(f"helper{number - 1}"))
            rows = rows.join(before, ["src", "dest"], "left")
            ct, total = f.coalesce("ct", f.lit(0)) + 1, f.coalesce("sum_loss", f.lit(0)) + f.col("loss")
        else:
            ct, total = f.lit(1), f.col("loss")
        helper = rows.select("src", "dest", ct.cast("bigint").alias("ct"), total.cast("bigint").alias("sum_loss"))
        self.write(helper, f"helper{number}")
        self.write(self.read(HELPER, self.path(f"helper{number}")).where("ct >= 4"), f"view{number}")


class PatternNaive(SparkFolder):
    """The streaks that reach the newest part, from the rows of the last `scope` parts, by window functions."""

    def __init__(self, spark: SparkSession, parts: Sequence[str], directory: Path, scope: int) -> None:
        super().__init__(spark, parts, directory)
        self.scope = scope

    def update(self, number: int) -> None:
        numbers = range(max(0, number - self.scope + 1), number + 1)
        rows = self.read(COLUMNS, *(self.parts[index] for index in numbers))
        rows.createOrReplaceTempView("naive_rows")
        answer = self.spark.sql("""
            SELECT src, dest, COUNT(*) AS ct, SUM(loss) AS sum_loss
            FROM (
              SELECT *, SUM(CASE WHEN loss > 10 THEN 0 ELSE 1 END)
                        OVER (PARTITION BY src, dest ORDER BY ts DESC) AS breaks
              FROM naive_rows)
            WHERE breaks = 0
            GROUP BY src, dest
            HAVING COUNT(*) >= 4
        """)
        self.write(answer, f"view{number}")


class Floor(SparkFolder):
    """Read every value of the inputs, and write a part as large as the output, by copying one. Nothing is computed."""

    def __init__(
        self,
        spark: SparkSession,
        parts: Sequence[str],
        directory: Path,
        schema: str,
        inputs: Callable[[int], Sequence[str]],
        output: Callable[[int], str],
    ) -> None:
        super().__init__(spark, parts, directory)
        self.schema, self.inputs, self.output = schema, inputs, output

    def update(self, number: int) -> None:
        self.read(COLUMNS, self.parts[number]).selectExpr("max(ts)", "max(src)", "max(dest)", "max(loss)").collect()
        for path in self.inputs(number):
            rows = self.read(self.schema, path)
            rows.selectExpr(*(f"max({name})" for name in rows.columns)).collect()
        self.write(self.read(self.schema, self.output(number)), f"view{number}")


class WindowByHand(SparkFolder):
    """A window by one of the strategies, over partial aggregates of each part. `merge` is SUM or MAX."""

    def __init__(
        self, spark: SparkSession, parts: Sequence[str], directory: Path, window: int, merge: str, strategy: str
    ) -> None:
        super().__init__(spark, parts, directory)
        self.window, self.merge, self.strategy = window, merge, strategy

    def update(self, number: int) -> None:
        self.read(COLUMNS, self.parts[number]).createOrReplaceTempView("by_hand_rows")
        sql = f"SELECT src, dest, {self.merge}(loss) AS value, COUNT(*) AS n FROM by_hand_rows GROUP BY src, dest"
        self.write(self.spark.sql(sql).selectExpr("src", "dest", "CAST(value AS BIGINT) AS value", "n"), f"p{number}")
        for step in list_steps(self.strategy, self.window, number):
            self._combine(step)

    def _combine(self, step: Combine) -> None:
        self.read(STATE, *(self.path(item) for item in step.plus)).createOrReplaceTempView("by_hand_plus")
        rows = "SELECT * FROM by_hand_plus"
        if step.minus is not None:
            self.read(STATE, self.path(step.minus)).createOrReplaceTempView("by_hand_minus")
            rows += " UNION ALL SELECT src, dest, -value, -n FROM by_hand_minus"
        sql = f"SELECT src, dest, {self.merge}(value) AS value, SUM(n) AS n FROM ({rows}) GROUP BY src, dest"
        self.write(self.spark.sql(f"{sql} HAVING SUM(n) > 0"), step.name)


class WindowNaive(SparkFolder):
    """The aggregate over all rows of the window (the thesis's Direct)."""

    def __init__(self, spark: SparkSession, parts: Sequence[str], directory: Path, window: int, merge: str) -> None:
        super().__init__(spark, parts, directory)
        self.window, self.merge = window, merge

    def update(self, number: int) -> None:
        self.read(COLUMNS, *self.parts[max(0, number - self.window + 1) : number + 1]).createOrReplaceTempView("naive")
        sql = f"SELECT src, dest, {self.merge}(loss) AS value, COUNT(*) AS n FROM naive GROUP BY src, dest"
        self.write(self.spark.sql(sql), f"view{number}")


class Streaming(SparkFolder):
    """Structured Streaming over the same files, a trigger for each part, with a sliding window of event time.

    Its answer for a part is complete once the watermark has passed; here every update of a window is written, and the one that
    ends with the part is taken.
    """

    def __init__(self, spark: SparkSession, parts: Sequence[str], directory: Path, window: int, merge: str) -> None:
        super().__init__(spark, parts, directory)
        self.window, self.merge = window, merge
        (directory / "in").mkdir(parents=True)

    def take_in(self, numbers: Sequence[int]) -> None:
        """Put parts where the stream looks for new files."""
        for number in numbers:
            for file in Path(self.parts[number]).glob("*.parquet"):
                (self.directory / "in" / f"{number}-{file.name}").hardlink_to(file)

    def update(self, number: int) -> None:
        from pyspark.sql import functions as f

        self.take_in([number])
        end = f"timestamp_seconds({int(part_start(number + 1).timestamp())})"
        rows = self.spark.readStream.schema(COLUMNS).parquet(self.path("in")).withWatermark("ts", "1 minute")
        grouped = rows.groupBy(f.window("ts", f"{self.window} minutes", "1 minute"), "src", "dest")
        states = grouped.agg(f.expr(f"{self.merge}(loss)").alias("value"), f.count("*").alias("n"))

        def write(batch: DataFrame, _id: int) -> None:
            # Appended, since a last batch without rows follows, which only moves the watermark.
            newest = batch.where(f"window.end = {end}").select("src", "dest", "value", "n")
            newest.write.mode("append").parquet(self.path(f"view{number}"))

        query = (
            states.writeStream.outputMode("update")
            .foreachBatch(write)
            .option("checkpointLocation", self.path("checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
