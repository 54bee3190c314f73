"""One update of the paper's pattern View1, against everything else that can do it (Figures 6 to 8).

Rows per part, how far back the naive query looks (its scope), and the share of rows over the threshold are varied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_viewdf.warehouse import Warehouse
from bench.contestants import Contestant, ViewDF, check_same
from bench.duckdb_contestants import DuckPattern, DuckPatternNaive
from bench.instruments import catalog_clock, without_digest
from bench.losses import FIRST, LONGEST_STREAK, load_parts, part_start, write_stream
from bench.measure import AGAIN, Timing, console, measure, show
from bench.postgres_contestants import PostgresLoader, PostgresPattern
from bench.results import Figure, Result, Series, goal_of
from bench.servers import postgres_server
from bench.sessions import CORES, bench_directory, open_spark
from bench.spark_contestants import HELPER, Floor, PatternByHand, PatternNaive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = """
CREATE VIEW {view} AS
  SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
  FROM {stream} PATTERN [a, b, c, d+]
  WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
  GROUP BY src, dest
  STARTING '{start}';
"""

OURS, OURS_UNIQUE, OURS_BARE = "ViewDF", "ViewDF, unique rows", "ViewDF, unique rows, digest and catalog apart"
BY_HAND, FLOOR = "by hand in PySpark", "floor"
DUCKDB, POSTGRES = "DuckDB by hand", "PostgreSQL, the paper's SQL"
# Said if the goal is missed.
WHY = (
    "what is written by hand has no digest (so no early cutoff), no catalog, and no views of its inputs to make and drop for each of "
    "the two steps; with digest and catalog apart see the line above"
)
PAIR, ROW = ("src", "dest"), ("src", "dest", "ct", "sum_loss")

# Parts that are made before anything is timed: enough for the longest streak, and for Java to have compiled what is hot.
WARM_UP = 8


def naive(scope: int) -> str:
    return f"naive, last {scope} parts"


def duckdb_naive(scope: int) -> str:
    return f"DuckDB naive, last {scope} parts"


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of the experiment."""

    rows: int
    scopes: Sequence[int]
    selectivity: float = 0.1


class BareViewDF(ViewDF):
    """A view whose parts are not digested. `seconds` is what the catalog took, update by update."""

    def __init__(self, wh: Warehouse, view: str) -> None:
        super().__init__(wh, view)
        self.seconds: list[float] = []

    def update(self, number: int) -> None:
        with without_digest(), catalog_clock() as clock:
            super().update(number)
        self.seconds.append(clock.seconds["catalog"])


@contextmanager
def prepared(spark: SparkSession, point: Point, repeats: int, directory: Path, postgres: str) -> Iterator[Site]:
    with Warehouse.open(directory / "wh", spark=spark) as wh:
        yield Site(spark, wh, point, repeats, directory, postgres)


class Site:
    """Loaded parts, and the contestants that work on them."""

    def __init__(
        self, spark: SparkSession, wh: Warehouse, point: Point, repeats: int, directory: Path, postgres: str
    ) -> None:
        self.point = point
        last = max(max(point.scopes), WARM_UP)
        self.begin, self.first, self.end = last - WARM_UP, last, last + repeats
        start = part_start(self.begin).isoformat()
        script = write_stream("M") + write_stream("U", unique=True)
        views = {OURS: "View1", OURS_UNIQUE: "View1u", OURS_UNIQUE + AGAIN: "View1v", OURS_BARE: "View1w"}
        for name, view in views.items():
            script += VIEW.format(view=view, stream="M" if name == OURS else "U", start=start)
        wh.apply(script)
        rows = point.rows
        parts = load_parts(wh, spark, "M", self.end, rows, rows, point.selectivity)
        load_parts(wh, spark, "U", self.end, rows, rows, point.selectivity)
        by_hand = PatternByHand(spark, parts, directory / "by_hand", self.begin)
        self.bare = BareViewDF(wh, views[OURS_BARE])
        self.loader = PostgresLoader(postgres, parts, directory)
        self.exact: dict[str, Contestant] = {
            **{name: ViewDF(wh, view) for name, view in views.items() if name != OURS_BARE},
            OURS_BARE: self.bare,
            BY_HAND: by_hand,
            BY_HAND + AGAIN: PatternByHand(spark, parts, directory / "by_hand_again", self.begin),
            DUCKDB: DuckPattern(parts, directory / "duckdb", CORES, self.begin),
            POSTGRES: PostgresPattern(postgres, directory / "postgres", self.begin),
        }
        self.naive: dict[str, Contestant] = {}
        for scope in point.scopes:
            self.naive[naive(scope)] = PatternNaive(spark, parts, directory / f"naive{scope}", scope)
            self.naive[duckdb_naive(scope)] = DuckPatternNaive(parts, directory / f"duck{scope}", CORES, scope)
        self.floor = Floor(
            spark,
            parts,
            directory / "floor",
            HELPER,
            lambda number: [by_hand.path(f"helper{number - 1}")],
            lambda number: by_hand.path(f"view{number - 1}"),
        )

    def run(self) -> dict[str, Timing]:
        console.print(f"  warming up with {WARM_UP} parts", style="dim")
        for number in range(self.begin, self.first):
            self.loader.load(number)
            for item in self.exact.values():
                item.update(number)
        for item in (*self.naive.values(), self.floor):
            item.update(self.first - 1)
        self.check(self.first - 1)
        self.bare.seconds.clear()
        contestants = {**self.exact, **self.naive, FLOOR: self.floor}
        updates = {name: item.update for name, item in contestants.items()}
        timings = measure(updates, range(self.first, self.end), pinned=0, prepare=self.loader.load)
        self.check(self.end - 1)
        whole = timings[OURS_BARE].seconds
        timings[OURS_BARE] = Timing(OURS_BARE, tuple(a - b for a, b in zip(whole, self.bare.seconds, strict=True)))
        return timings

    def check(self, number: int) -> None:
        """A naive query that does not look back far enough finds the right pairs, but cuts their streaks short."""
        check_same(self.exact, number, ROW)
        reference = {OURS: self.exact[OURS]}
        for scope in self.point.scopes:
            columns = ROW if scope >= LONGEST_STREAK and self.point.selectivity <= 0.5 else PAIR
            items = {name: self.naive[name] for name in (naive(scope), duckdb_naive(scope))}
            check_same({**reference, **items}, number, columns)


def measure_point(spark: SparkSession, point: Point, repeats: int) -> dict[str, Timing]:
    console.print(f"{point.rows:,} rows a part, {point.selectivity:.0%} over the threshold")
    with bench_directory() as directory, postgres_server() as server:
        with prepared(spark, point, repeats, directory, server.create_database()) as site:
            timings = site.run()
    title = f"Pattern [a, b, c, d+], {point.rows:,} rows a part, {point.selectivity:.0%} over the threshold"
    show(title, timings, BY_HAND)
    return timings


def run(rows: int = 100_000, repeats: int = 7, *, full: bool = False) -> Result:
    """Full: the papers' sizes, a million rows a part and scopes up to 100."""
    rows = 1_000_000 if full else rows
    sizes = [rows // 100, rows // 10] if full else [rows // 10]
    scopes = [4, 20, 50, 100] if full else [4, 20]
    shares = [0.25, 0.5, 0.75, 1.0] if full else [1.0]
    spark = open_spark()
    settings = {"rows": rows, "scopes": scopes, "selectivities": [0.1, *shares], "repeats": repeats, "first": FIRST}
    main = measure_point(spark, Point(rows, scopes), repeats)
    by_size = [Series(size, measure_point(spark, Point(size, [20]), repeats)) for size in sizes]
    by_share = [Series(share, measure_point(spark, Point(rows, [4], share), repeats)) for share in shares]
    return _report(rows, settings, main, by_size, by_share, scopes)


def _report(
    rows: int,
    settings: dict[str, object],
    main: dict[str, Timing],
    by_size: list[Series],
    by_share: list[Series],
    scopes: list[int],
) -> Result:
    here = Series(rows, main)
    result = Result("patterns", settings)
    steady = [OURS, OURS_UNIQUE, BY_HAND, DUCKDB, POSTGRES, FLOOR]
    result.figures = [
        Figure(
            "Pattern update by rows per part",
            "rows per part",
            [_only(item, [*steady, naive(20), duckdb_naive(20)]) for item in [*by_size, here]],
            "Figure 6 of the paper, 5.1 of the thesis",
        ),
        Figure(
            f"Pattern update by scope of the naive query, {rows:,} rows per part",
            "parts that the naive query looks at",
            [_scope(main, scope, steady) for scope in scopes],
            "Figure 7 of the paper, 5.2 of the thesis",
        ),
        Figure(
            f"Pattern update by share of rows over the threshold, {rows:,} rows per part",
            "share over the threshold",
            [_only(item, [*steady, naive(4), duckdb_naive(4)]) for item in [Series(0.1, main), *by_share]],
            "Figure 8 of the paper, 5.3 of the thesis",
            is_logarithmic=False,
        ),
        Figure(f"Every contestant at {rows:,} rows per part", "rows per part", [here]),
    ]
    result.goals = [
        goal_of(
            "pattern: ViewDF, unique rows / by hand, digest and catalog apart",
            here.ratio(OURS_BARE, BY_HAND),
            1.05,
            at_most=True,
        ),
        goal_of(f"pattern: {OURS_UNIQUE} / by hand", here.ratio(OURS_UNIQUE, BY_HAND), 1.1, at_most=True, why=WHY),
        goal_of(f"pattern: {OURS_UNIQUE} / floor", here.ratio(OURS_UNIQUE, FLOOR), 2.5, at_most=True),
        goal_of(f"pattern: naive over 20 parts / {OURS_UNIQUE}", here.ratio(naive(20), OURS_UNIQUE), 10, at_most=False),
    ]
    result.notes = [
        f"Noise: ViewDF against itself {here.ratio(OURS_UNIQUE + AGAIN, OURS_UNIQUE)}, by hand against itself "
        f"{here.ratio(BY_HAND + AGAIN, BY_HAND)}.",
        "Structured Streaming is not among them: it has no SQL for a pattern, only code of one's own on its state.",
    ]
    return result


def _only(series: Series, names: Sequence[str]) -> Series:
    return Series(series.x, {name: series.timings[name] for name in names if name in series.timings})


def _scope(timings: dict[str, Timing], scope: int, steady: Sequence[str]) -> Series:
    """The timings with the naive queries of one scope, under names without it."""
    chosen = {name: timings[name] for name in steady if name in timings}
    return Series(scope, {**chosen, "naive": timings[naive(scope)], "DuckDB naive": timings[duckdb_naive(scope)]})
