"""What an update costs when its part has ten times the rows: patterns over UNIQUE rows, and a SUM by the delta strategy.

Small and large parts are updated in the same rounds, so that the ratio between them has no other noise in it than any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_viewdf.warehouse import Warehouse
from bench.contestants import Contestant, ViewDF, check_same
from bench.losses import FIRST, load_parts, part_start, write_stream
from bench.measure import Timing, console, measure, ratio_of, show
from bench.patterns import ROW as PATTERN_ROW
from bench.patterns import VIEW
from bench.results import Figure, Result, Series, goal_of
from bench.sessions import bench_directory, open_spark
from bench.spark_contestants import PatternByHand, WindowByHand
from bench.windows import ROW as WINDOW_ROW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = 10
PATTERN, PATTERN_BY_HAND = "pattern: ViewDF, unique rows", "pattern: by hand in PySpark"
SUM, SUM_BY_HAND = "SUM: ViewDF delta", "SUM: delta by hand in PySpark"

# Short, since what delta costs does not depend on it (see the windows), and each part of it has to be loaded.
WINDOW = 4
# The first part with a whole window behind it, and a streak that a pattern finds.
BEGIN = WINDOW
WARM_UP = 2

WINDOW_VIEW = (
    "CREATE VIEW {view} AS SELECT src, dest, sum(loss) AS value, count(*) AS n "
    f"FROM {{stream}} [WINDOW {WINDOW} minutes] GROUP BY src, dest "
    f"STARTING '{part_start(BEGIN).isoformat()}' WITH (strategy = 'delta');\n"
)


class Site:
    """Parts of one size, and the contestants that work on them."""

    def __init__(self, spark: SparkSession, wh: Warehouse, rows: int, end: int, directory: Path) -> None:
        unique, many = f"U{rows}", f"M{rows}"
        pattern, window = f"Pattern{rows}", f"Sum{rows}"
        start = part_start(0).isoformat()
        script = write_stream(unique, unique=True) + write_stream(many)
        script += VIEW.format(view=pattern, stream=unique, start=start)
        wh.apply(script + WINDOW_VIEW.format(view=window, stream=many))
        pairs = load_parts(wh, spark, unique, end, rows, rows)
        tens = load_parts(wh, spark, many, end, rows, rows // 10)
        self.patterns: dict[str, Contestant] = {
            PATTERN: ViewDF(wh, pattern),
            PATTERN_BY_HAND: PatternByHand(spark, pairs, directory / f"pattern{rows}", 0),
        }
        self.windows: dict[str, Contestant] = {
            SUM: ViewDF(wh, window),
            SUM_BY_HAND: WindowByHand(spark, tens, directory / f"sum{rows}", WINDOW, "SUM", "delta"),
        }

    @property
    def contestants(self) -> dict[str, Contestant]:
        return {**self.patterns, **self.windows}

    def warm_up(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            for name, item in self.contestants.items():
                if name != SUM or number >= BEGIN:
                    item.update(number)

    def check(self, number: int) -> None:
        check_same(self.patterns, number, PATTERN_ROW)
        check_same(self.windows, number, WINDOW_ROW)


def measure_sizes(spark: SparkSession, sizes: Sequence[int], repeats: int) -> list[Series]:
    first = BEGIN + WARM_UP
    rounds = range(first, first + repeats)
    with bench_directory() as directory, Warehouse.open(directory / "wh", spark=spark) as wh:
        sites = {rows: Site(spark, wh, rows, rounds.stop, directory) for rows in sizes}
        for rows, site in sites.items():
            console.print(f"  warming up with {first} parts of {rows:,} rows", style="dim")
            site.warm_up(range(first))
            site.check(first - 1)
        updates = {(rows, name): item.update for rows, site in sites.items() for name, item in site.contestants.items()}
        timings = measure({f"{rows} {name}": update for (rows, name), update in updates.items()}, rounds)
        for site in sites.values():
            site.check(rounds[-1])
    found: dict[int, dict[str, Timing]] = {rows: {} for rows in sizes}
    for rows, name in updates:
        found[rows][name] = timings[f"{rows} {name}"]
    for rows in sizes:
        show(f"Updates of {rows:,} rows a part", found[rows], PATTERN_BY_HAND)
    return [Series(rows, found[rows]) for rows in sizes]


def run(rows: int = 100_000, repeats: int = 7, *, full: bool = False) -> Result:
    """`rows` are those of the small parts. Full: 1,000,000 and 10,000,000."""
    rows = 1_000_000 if full else rows
    small, large = measure_sizes(open_spark(), (rows, rows * TIMES), repeats)
    result = Result("large_parts", {"rows": rows, "times": TIMES, "window": WINDOW, "repeats": repeats, "first": FIRST})
    result.figures.append(Figure("Updates by rows per part", "rows per part", [small, large]))
    for name in (PATTERN, SUM):
        ratio = ratio_of(large.timings[name], small.timings[name])
        what = f"{name}, {large.x:,.0f} rows a part / {small.x:,.0f} rows"
        result.goals.append(goal_of(what, ratio, TIMES, at_most=True))
    result.goals += [
        goal_of(f"{ours} / by hand, {large.x:,.0f} rows a part", large.ratio(ours, hand), 1.1, at_most=True)
        for ours, hand in ((PATTERN, PATTERN_BY_HAND), (SUM, SUM_BY_HAND))
    ]
    return result
