"""Where the time of one update goes: catalog, planning, Spark's planning, reading, computing, digest, writing, publishing.

A refresh is watched from outside. Its statements are then run again, without their digest, without being written, and only reading
their inputs: the differences are what each of these costs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_provider_viewdf.engine.engine import DimensionTable, Engine, InputTable
from airflow_provider_viewdf.warehouse import Warehouse
from bench.contestants import ViewDF
from bench.losses import FIRST, load_parts, part_start, write_stream
from bench.measure import Timing, console, show, stopwatch
from bench.patterns import VIEW, WARM_UP
from bench.phases import ANALYSIS, CATALOG, FILES, PLANNING, PUBLISHING, REST, VIEWS, watch
from bench.results import Figure, Goal, Result, Series
from bench.sessions import bench_directory, open_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHOLE = "whole update"
TINY = 100

# Variants of a statement.
PLAN, READ, COMPUTE, WRITE, DIGEST = "plan", "read", "compute", "write", "write with digest"


@dataclass(frozen=True, slots=True)
class Statement:
    """One call of the engine."""

    sql: str
    inputs: tuple[InputTable, ...]
    dimensions: tuple[DimensionTable, ...]
    columns: tuple[Any, ...]


@contextmanager
def remembered(statements: list[Statement]) -> Iterator[None]:
    """Keep the statements that the engine computes inside this block."""
    compute = Engine.compute

    def remember(engine: Engine, sql: str, inputs: Any, dimensions: Any, columns: Any, location: str) -> Any:
        statements.append(Statement(sql, tuple(inputs), tuple(dimensions), tuple(columns)))
        return compute(engine, sql, inputs, dimensions, columns, location)

    with patch.object(Engine, "compute", remember):
        yield


class Variants:
    """A statement, run only so far."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        self.engine, self.directory = engine, directory
        self._written = 0

    def run(self, name: str, statements: list[Statement]) -> None:
        for statement in statements:
            with self.engine.temporary_views(statement.inputs, statement.dimensions):
                getattr(self, f"_{name.split()[-1]}")(statement)

    def _plan(self, statement: Statement) -> None:
        self._rows(statement)._jdf.queryExecution().executedPlan()  # type: ignore[operator]

    def _read(self, statement: Statement) -> None:
        for table in statement.inputs:
            self.engine.spark.table(table.name).write.format("noop").mode("overwrite").save()

    def _compute(self, statement: Statement) -> None:
        self._rows(statement).write.format("noop").mode("overwrite").save()

    def _write(self, statement: Statement) -> None:
        self._rows(statement).write.parquet(self._new_place())

    def _digest(self, statement: Statement) -> None:
        self._written += 1
        self.engine._write(statement.sql, statement.columns, f"bench/digest{self._written}")

    def _rows(self, statement: Statement) -> DataFrame:
        return self.engine.spark.sql(statement.sql)

    def _new_place(self) -> str:
        self._written += 1
        return str(self.directory / f"written{self._written}")


def measure_phases(spark: SparkSession, rows: int, repeats: int) -> dict[str, Timing]:
    console.print(f"One pattern update of {rows:,} rows")
    with bench_directory() as directory, Warehouse.open(directory / "wh", spark=spark) as wh:
        wh.apply(write_stream("M") + VIEW.format(view="View1", stream="M", start=part_start(0).isoformat()))
        load_parts(wh, spark, "M", WARM_UP + repeats, rows, rows)
        view = ViewDF(wh, "View1")
        variants = Variants(wh._bench.open_engine(), directory)
        for number in range(WARM_UP):
            view.update(number)
        found: dict[str, list[float]] = {}
        for number in range(WARM_UP, WARM_UP + repeats):
            statements: list[Statement] = []
            gc.collect()
            with remembered(statements):
                _, phases = watch(lambda number=number: view.update(number))
            for name, seconds in {WHOLE: sum(phases.values()), **phases}.items():
                found.setdefault(name, []).append(seconds)
            for variant in (PLAN, READ, COMPUTE, WRITE, DIGEST):
                gc.collect()
                with stopwatch(found.setdefault(variant, [])):
                    variants.run(variant, statements)
            console.print(f"  round {number - WARM_UP + 1} of {repeats}", style="dim")
    return {name: Timing(name, tuple(seconds)) for name, seconds in found.items()}


def run(rows: int = 100_000, repeats: int = 7, *, full: bool = False) -> Result:
    rows = 1_000_000 if full else rows
    spark = open_spark()
    result = Result("where_time_goes", {"rows": rows, "tiny": TINY, "repeats": repeats, "first": FIRST})
    # The tiny one last, when Java has compiled what is hot.
    for size in (rows, TINY):
        timings = measure_phases(spark, size, repeats)
        show(f"One pattern update of {size:,} rows, helper and view", timings, WHOLE)
        result.figures.append(Figure(f"One pattern update of {size:,} rows", "rows per part", [Series(size, timings)]))
        result.tables[f"one update of {size:,} rows"] = _list_phases(timings)
        if size == TINY:
            goal = Goal("fixed cost of an update on a warm session", timings[WHOLE].median, 0.5, True, unit=" s")
            result.goals.append(goal)
    result.notes.append(
        "An update here is two steps, the helper view and the view; each has its own statement, job and publication. "
        "Reading and computing were timed as jobs of their own, so Spark's planning is in both, and the rows do not add up to the whole."
    )
    return result


def _list_phases(timings: dict[str, Timing]) -> list[dict[str, Any]]:
    median = {name: timing.median for name, timing in timings.items()}
    phases = {
        **{name: median[name] for name in (CATALOG, PLANNING, VIEWS, ANALYSIS)},
        "Spark: planning the job": median[PLAN],
        "Spark: reading": median[READ],
        "Spark: computing": median[COMPUTE] - median[READ],
        "Spark: writing": median[WRITE] - median[COMPUTE],
        "Spark: digest": median[DIGEST] - median[WRITE],
        FILES: median[FILES],
        PUBLISHING: median[PUBLISHING],
        REST: median[REST],
        WHOLE: median[WHOLE],
    }
    return [
        {"phase": name, "seconds": round(seconds, 4), "share": round(seconds / median[WHOLE], 3)}
        for name, seconds in phases.items()
    ]
