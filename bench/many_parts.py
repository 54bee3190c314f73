"""Many parts of a view at once against one job for each; and a late row whose effect ends after a few parts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_viewdf.reports import RefreshReport
from airflow_provider_viewdf.warehouse import Warehouse
from bench.losses import FIRST, load_parts, part_start, write_stream
from bench.measure import AGAIN, console, measure, show
from bench.patterns import VIEW
from bench.results import Figure, Goal, Result, Series, goal_of
from bench.sessions import bench_directory, open_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOGETHER, ONE_BY_ONE = "all parts at once", "one job for each part"

LATE_PARTS = 100
CHANGED_PARTS = 3


def run(rows: int = 2_000, repeats: int = 7, parts: int = 60, *, full: bool = False) -> Result:
    rows = 100_000 if full else rows
    spark = open_spark()
    result = Result("many_parts", {"rows": rows, "parts": parts, "repeats": repeats, "first": FIRST})
    _measure_backfill(spark, result, rows, parts, repeats)
    _measure_cutoff(spark, result, repeats)
    return result


def _measure_backfill(spark: SparkSession, result: Result, rows: int, parts: int, repeats: int) -> None:
    """Each round defines new views that have no parts yet."""
    console.print(f"{parts} parts of a view that does not read its own past, {rows:,} rows each")
    limits = {TOGETHER: None, TOGETHER + AGAIN: None, ONE_BY_ONE: 1}
    with bench_directory() as directory, Warehouse.open(directory / "wh", spark=spark) as wh:
        wh.apply(write_stream("M"))
        load_parts(wh, spark, "M", parts, rows, rows // 10)

        def define(number: int) -> None:
            # Different ones, as far as it goes: nothing may be found ready in a cache.
            wh.apply(
                "".join(
                    f"CREATE VIEW V{place}_{number} AS SELECT src, sum(loss) AS lost FROM M WHERE loss > {place} GROUP BY src;"
                    for place in range(len(limits))
                )
            )

        def refresh(place: int, limit: int | None) -> Any:
            return lambda number: _expect(wh.refresh(f"V{place}_{number}", batch_limit=limit), parts)

        updates = {name: refresh(place, limit) for place, (name, limit) in enumerate(limits.items())}
        define(0)
        for update in updates.values():
            update(0)
        timings = measure(updates, range(1, repeats + 1), prepare=define)
    show(f"{parts} parts of {rows:,} rows", timings, TOGETHER)
    series = Series(parts, timings)
    result.figures.append(Figure(f"{parts} parts of {rows:,} rows at once", "parts", [series]))
    ratio = series.ratio(ONE_BY_ONE, TOGETHER)
    result.goals.append(goal_of(f"{parts} parts: {ONE_BY_ONE} / {TOGETHER}", ratio, 3, at_most=False))
    result.notes.append(f"Noise: {TOGETHER} against itself {series.ratio(TOGETHER + AGAIN, TOGETHER)}.")


def _expect(report: RefreshReport, steps: int) -> None:
    if len(report.steps) != steps:
        raise AssertionError(f"{len(report.steps)} parts were computed, and {steps} had to be.")


def _measure_cutoff(spark: SparkSession, result: Result, repeats: int) -> None:
    """A late row makes a streak longer, which ends two minutes after it, a hundred minutes ago."""
    console.print(f"A late row {LATE_PARTS} parts back that changes {CHANGED_PARTS} parts of the helper view")
    start = part_start(0)
    end = part_start(LATE_PARTS)
    with bench_directory() as directory, Warehouse.open(directory / "wh", spark=spark) as wh:
        wh.apply(write_stream("M") + VIEW.format(view="View1", stream="M", start=start.isoformat()))
        rows = [_row(minute, pair, 20) for pair in range(repeats) for minute in (1, 2)]
        rows += [_row(minute, 1000, 20) for minute in range(LATE_PARTS)]
        wh.load("M", rows, "first", (start, end))
        wh.refresh()

        def load_late(pair: int) -> None:
            wh.load("M", [_row(0, pair, 20)], f"late{pair}", (start, start + timedelta(minutes=1)))

        reports: list[RefreshReport] = []
        late = {"late row": lambda _: reports.append(wh.refresh())}
        timings = measure(late, range(repeats), prepare=load_late)
    helper = [step for step in reports[-1].steps if step.view != "View1"]
    changed = sum(step.outcome == "published" for step in helper)
    computed = len(reports[-1].steps)
    result.figures.append(Figure("Late row", "parts back", [Series(LATE_PARTS, timings)]))
    result.goals += [
        Goal(
            f"late row {LATE_PARTS} parts back: parts of the helper view that change",
            changed,
            CHANGED_PARTS,
            at_most=True,
        ),
        Goal(
            f"late row {LATE_PARTS} parts back: parts computed, of both views, of {2 * LATE_PARTS}",
            computed,
            2 * (CHANGED_PARTS + 1),
            at_most=True,
        ),
    ]
    result.tables["late row"] = [
        {"view": step.view, "part": step.index - FIRST, "outcome": step.outcome, "because": step.reason}
        for step in reports[-1].steps
    ]


def _row(minute: int, pair: int, loss: int) -> dict[str, Any]:
    return {"ts": part_start(minute), "src": pair, "dest": pair, "loss": loss}
