"""One update of a sliding-window sum, by each strategy: against the naive query, and against the same written by hand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.engine.sessions import open_session
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse
from bench.losses import FIRST, STREAM, measurements, part_start, part_urls
from bench.measure import Goal, Timing, console, measure, save, show

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES = ("delta", "prefix", "dyadic", "merge")
BY_HAND = ("delta", "prefix", "dyadic")
WINDOWS = (10, 60)
SOURCE = "ts TIMESTAMP, src INT, dest INT, loss INT"
STATE = "src INT, dest INT, total BIGINT, n BIGINT"


def write_script() -> str:
    views = [
        f"CREATE VIEW {strategy}{window} AS SELECT src, dest, sum(loss) AS total, count(*) AS n "
        f"FROM M [WINDOW {window} minutes] GROUP BY src, dest WITH (strategy = '{strategy}');"
        for strategy in STRATEGIES
        for window in WINDOWS
    ]
    return STREAM + "\n".join(views)


class ByHand:
    """The strategies as someone would write them in PySpark, each over partial sums of a part that are made once."""

    def __init__(self, spark: SparkSession, parts: list[str], directory: Path) -> None:
        self.spark, self.parts, self.directory = spark, parts, directory

    def partials(self, number: int) -> None:
        self._view("rows", self.parts[number], SOURCE)
        self._write(
            f"partials{number}",
            "SELECT src, dest, SUM(loss) AS total, COUNT(*) AS n FROM by_hand_rows GROUP BY src, dest",
        )

    def delta(self, window: int, number: int) -> None:
        if number < window:
            self._merge(
                f"delta{window}_{number}",
                [f"partials{index}" for index in range(max(0, number - window + 1), number + 1)],
            )
        else:
            self._subtract(
                f"delta{window}_{number}",
                [f"delta{window}_{number - 1}", f"partials{number}"],
                f"partials{number - window}",
            )
        self._copy(f"delta{window}_{number}", f"delta{window}_view{number}")

    def prefix(self, window: int, number: int) -> None:
        if number == 0:
            self._merge(f"prefix{window}_0", ["partials0"])
        else:
            self._merge(f"prefix{window}_{number}", [f"prefix{window}_{number - 1}", f"partials{number}"])
        if number >= window:
            self._subtract(
                f"prefix{window}_view{number}", [f"prefix{window}_{number}"], f"prefix{window}_{number - window}"
            )

    def dyadic(self, window: int, number: int) -> None:
        size = 1
        while size * 2 <= window:
            if number - 2 * size + 1 >= 0:
                self._merge(
                    f"block{window}_{size * 2}_{number}",
                    [self._block(window, size, number), self._block(window, size, number - size)],
                )
            size *= 2
        if number < window - 1:
            return
        blocks, end, size = [], number, 1 << (window.bit_length() - 1)
        while size:
            if window & size:
                blocks.append(self._block(window, size, end))
                end -= size
            size //= 2
        self._merge(f"dyadic{window}_view{number}", blocks)

    def naive(self, window: int, number: int) -> None:
        paths = self.parts[number - window + 1 : number + 1]
        self.spark.read.schema(SOURCE).parquet(*paths).createOrReplaceTempView("by_hand_window")
        self._write(
            f"naive{window}_view{number}",
            "SELECT src, dest, SUM(loss) AS total, COUNT(*) AS n FROM by_hand_window GROUP BY src, dest",
        )

    def _block(self, window: int, size: int, number: int) -> str:
        return f"partials{number}" if size == 1 else f"block{window}_{size}_{number}"

    def _merge(self, name: str, inputs: list[str]) -> None:
        self._subtract(name, inputs, None)

    def _subtract(self, name: str, plus: list[str], minus: str | None) -> None:
        self.spark.read.schema(STATE).parquet(*(str(self.directory / item) for item in plus)).createOrReplaceTempView(
            "by_hand_plus"
        )
        rows = "SELECT * FROM by_hand_plus"
        if minus is not None:
            self._view("minus", str(self.directory / minus), STATE)
            rows += " UNION ALL SELECT src, dest, -total, -n FROM by_hand_minus"
        self._write(
            name,
            f"SELECT src, dest, SUM(total) AS total, SUM(n) AS n FROM ({rows}) GROUP BY src, dest HAVING SUM(n) > 0",
        )

    def _copy(self, source: str, target: str) -> None:
        self._view("source", str(self.directory / source), STATE)
        self._write(target, "SELECT src, dest, total, n FROM by_hand_source")

    def _view(self, name: str, path: str, schema: str) -> None:
        self.spark.read.schema(schema).parquet(path).createOrReplaceTempView(f"by_hand_{name}")

    def _write(self, name: str, sql: str) -> None:
        self.spark.sql(sql).write.mode("overwrite").parquet(str(self.directory / name))


def run(rows: int, repeats: int) -> None:
    directory = Path(tempfile.mkdtemp(prefix="viewdf-bench-"))
    spark = open_session(master="local[2]")
    first = max(WINDOWS)
    try:
        with Warehouse.open(directory / "wh", spark=spark) as wh:
            wh.apply(write_script())
            count = first + repeats
            console.print(f"Loading {count} parts of {rows:,} rows, {rows // 10:,} groups")
            for number in range(count):
                start = part_start(number)
                frame = measurements(spark, number, rows, rows // 10)
                wh.load("M", frame, f"b{number}", (start, start + timedelta(minutes=1)))
            by_hand = ByHand(spark, part_urls(wh), directory)
            partials = _find_partials(wh)

            def ours(view: str) -> Callable[[int], object]:
                return lambda number: wh.refresh(parts={view: PartSet.between(FIRST + number, FIRST + number)})

            contestants: dict[str, Callable[[int], object]] = {
                "partials": ours(partials),
                "partials by hand": by_hand.partials,
            }
            for window in WINDOWS:
                for strategy in STRATEGIES:
                    contestants[f"{strategy} {window}"] = ours(f"{strategy}{window}")
                for strategy in BY_HAND:
                    update = getattr(by_hand, strategy)
                    contestants[f"{strategy} {window} by hand"] = lambda number, w=window, f=update: f(w, number)
                contestants[f"naive {window}"] = lambda number, w=window: by_hand.naive(w, number)
            console.print(f"Warming up with {first} parts")
            for number in range(first):
                for name, update in contestants.items():
                    if not name.startswith("naive"):
                        update(number)
            timings = measure(contestants, range(first, count), pinned=2)
            _check_same(spark, wh, directory, count - 1)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    _report(rows, timings)


def _report(rows: int, timings: list[Timing]) -> None:
    """The cost of an update is that of the partial sums and that of what a strategy makes of them."""
    by_name = {timing.name: timing for timing in timings}
    costs = {}
    for name, timing in by_name.items():
        if name.startswith(("naive", "partials")):
            costs[name] = timing
        else:
            base = by_name["partials by hand" if name.endswith("by hand") else "partials"]
            costs[name] = Timing(
                name,
                timing.median + base.median,
                timing.fastest + base.fastest,
                timing.slowest + base.slowest,
                timing.runs,
            )
    show(f"SUM and COUNT, {rows:,} rows a part, {rows // 10:,} groups", list(costs.values()), "naive 60")
    seconds = {name: timing.median for name, timing in costs.items()}
    goals = [
        *(
            Goal(f"naive / {name}, W=60", seconds["naive 60"] / seconds[f"{name} 60"], 10, at_most=False)
            for name in ("delta", "prefix", "dyadic")
        ),
        *(
            Goal(
                f"{name}: cost at W=60 / cost at W=10",
                seconds[f"{name} 60"] / seconds[f"{name} 10"],
                bound,
                at_most=True,
            )
            for name, bound in (("delta", 1.2), ("prefix", 1.2), ("dyadic", 1.5))
        ),
        *(
            Goal(
                f"{name}, W=60 / the same by hand",
                seconds[f"{name} 60"] / seconds[f"{name} 60 by hand"],
                1.1,
                at_most=True,
            )
            for name in BY_HAND
        ),
    ]
    for goal in goals:
        console.print(str(goal))
    console.print(f"Saved in {save('windows', {'rows': rows}, {'update': list(costs.values())}, goals).name}")


def _find_partials(wh: Warehouse) -> str:
    """The one helper view that reads the stream, for all windows."""
    (name,) = [
        item.name for item in wh.definitions() if item.helper_of and any(fold(r.table) == "m" for r in item.references)
    ]
    return name


def _check_same(spark: SparkSession, wh: Warehouse, directory: Path, number: int) -> None:
    """All contestants must have come to the same answer, or their times mean nothing."""
    for window in WINDOWS:
        expected = spark.read.schema(STATE).parquet(str(directory / f"naive{window}_view{number}"))
        answers = [
            wh.query(f"SELECT src, dest, total, n FROM {strategy}{window}[{FIRST + number}]") for strategy in STRATEGIES
        ]
        answers += [
            spark.read.schema(STATE).parquet(str(directory / f"{strategy}{window}_view{number}"))
            for strategy in BY_HAND
        ]
        for answer in answers:
            if answer.exceptAll(expected).count() or expected.exceptAll(answer).count():
                raise AssertionError(f"The contestants differ in part {number}.")
