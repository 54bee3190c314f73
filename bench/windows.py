"""One update of a sliding SUM or MAX by each strategy, against everything else that can do it (Figures 9 to 12).

Ten rows for each pair in a part. Rows per part and the size of the window are varied. The thesis's names: Direct is naive here,
DataCell is merge, Prefix is prefix, ViewDF_Sum is delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_viewdf.warehouse import Warehouse
from bench.contestants import Contestant, ViewDF, check_same
from bench.duckdb_contestants import DuckWindow, DuckWindowNaive
from bench.losses import FIRST, load_parts, part_start, write_stream
from bench.measure import AGAIN, Timing, console, measure, ratio_of, ratio_of_medians, show
from bench.postgres_contestants import PostgresLoader, PostgresWindow
from bench.results import Figure, Goal, Result, Series, goal_of
from bench.servers import postgres_server
from bench.sessions import CORES, bench_directory, open_spark
from bench.spark_contestants import STATE, Floor, Streaming, WindowByHand, WindowNaive
from bench.window_strategies import FANOUT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Dyadic and merge take as long for SUM as for MAX.
STRATEGIES = {"SUM": ("delta", "prefix", "merge"), "MAX": ("dyadic", "merge")}
# What the product chooses by itself is one of these; each is also written by hand.
BEST = {"SUM": "delta", "MAX": "dyadic"}
ROW = ("src", "dest", "value", "n")
# Which figures of the papers are repeated: by rows per part, and by size of the window.
FIGURES = {
    "SUM": ("Figure 11 of the paper, 5.4 of the thesis", "Figure 12 of the paper, 5.5 of the thesis"),
    "MAX": ("Figure 9 of the paper, 5.7 of the thesis", "Figure 10 of the paper, 5.8 of the thesis"),
}

NAIVE, FLOOR, STREAMING = "naive", "floor", "Structured Streaming"
DUCKDB, DUCKDB_NAIVE, POSTGRES = "DuckDB by hand", "DuckDB naive", "PostgreSQL, the paper's SQL"

# Said if what is written by hand is faster by more than the goal allows.
WHY = (
    "what is written by hand has no digest (so no early cutoff), no catalog, no count of values that are not NULL (so a SUM of which only NULLs "
    "are left would be 0), and no views of its inputs to make and drop for each step"
)

# How many parts are made, as they will be timed, before they are: one for each place in a block of the dyadic strategy, or those of
# its blocks that lie further back would be made while it is timed.
WARM_UP = FANOUT

# Wider windows are compared with narrower ones, and with nothing else unless it is a full run: it would take too long.
LONGEST_COMPARED = 60

# Beyond this, each row belongs to so many windows that Structured Streaming takes minutes.
LONGEST_STREAMED = 10


def ours(strategy: str) -> str:
    return f"ViewDF {strategy}"


def by_hand(strategy: str) -> str:
    return f"{strategy} by hand in PySpark"


@dataclass(frozen=True, slots=True, order=True)
class Query:
    """One of the windows of an experiment."""

    aggregate: str
    window: int
    is_compared: bool = True

    @property
    def strategies(self) -> tuple[str, ...]:
        return STRATEGIES[self.aggregate]

    @property
    def best(self) -> str:
        return BEST[self.aggregate]

    def view(self, strategy: str) -> str:
        return f"{self.aggregate}{self.window}_{strategy}"

    def write_views(self, begin: int) -> str:
        return "".join(self._write_view(item, begin) for item in self.strategies)

    def _write_view(self, strategy: str, begin: int) -> str:
        # Windows over the same rows share their helper views, and whoever is timed first would pay for all. So each has a
        # condition of its own, which every row meets.
        number = -self.window * 10 - self.strategies.index(strategy)
        return (
            f"CREATE VIEW {self.view(strategy)} AS SELECT src, dest, {self.aggregate}(loss) AS value, count(*) AS n "
            f"FROM M [WINDOW {self.window} minutes] WHERE loss > {number} GROUP BY src, dest "
            f"STARTING '{part_start(begin).isoformat()}' WITH (strategy = '{strategy}');\n"
        )


class QuerySite:
    """The contestants for one window."""

    def __init__(
        self, spark: SparkSession, wh: Warehouse, query: Query, parts: Sequence[str], directory: Path, postgres: str
    ) -> None:
        directory = directory / f"{query.aggregate}{query.window}".lower()
        self.query = query
        self.ours = {ours(item): ViewDF(wh, query.view(item)) for item in query.strategies}
        self.others: dict[str, Contestant] = {}
        self.naive: dict[str, Contestant] = {}
        self.floor: Contestant | None = None
        if query.is_compared:
            self._compare(spark, parts, directory, postgres)

    def _compare(self, spark: SparkSession, parts: Sequence[str], directory: Path, postgres: str) -> None:
        query, window, merge = self.query, self.query.window, self.query.aggregate
        hands = {
            by_hand(item): WindowByHand(spark, parts, directory / item, window, merge, item)
            for item in query.strategies
            if item != "merge"
        }
        best = hands[by_hand(query.best)]
        again = WindowByHand(spark, parts, directory / "again", window, merge, query.best)
        self.others = {
            **hands,
            by_hand(query.best) + AGAIN: again,
            DUCKDB: DuckWindow(parts, directory / "duckdb", CORES, window, merge, query.best),
            POSTGRES: PostgresWindow(postgres, directory / f"{merge}{window}".lower(), window, merge),
        }
        if window <= LONGEST_STREAMED:
            self.others[STREAMING] = Streaming(spark, parts, directory / "streaming", window, merge)
        self.naive = {
            NAIVE: WindowNaive(spark, parts, directory / "naive", window, merge),
            DUCKDB_NAIVE: DuckWindowNaive(parts, directory / "duckdb_naive", CORES, window, merge),
        }
        self.floor = Floor(
            spark, parts, directory / "floor", STATE, lambda _: [], lambda number: best.path(f"view{number - 1}")
        )

    @property
    def contestants(self) -> dict[str, Contestant]:
        return {**self.ours, **self.others, **self.naive, **({FLOOR: self.floor} if self.floor else {})}

    def warm_up(self, first: int) -> None:
        """Everything before part `first`. What was long ago is filled in quickly; the last parts are made as they will be."""
        for view in self.ours.values():
            view.wh.refresh(view.view, end=part_start(first))
        for item in self.others.values():
            if isinstance(item, Streaming):
                begin = max(0, first - self.query.window)
                item.take_in(range(begin, first - 1))
                begin = first - 1
            elif isinstance(item, WindowByHand):
                begin = first - WARM_UP
                for number in range(begin):
                    _fill(item, number)
            elif isinstance(item, PostgresWindow):
                begin = first - WARM_UP
                for number in range(begin):
                    item.make_helper(number)
            else:
                begin = 0
            for number in range(begin, first):
                item.update(number)
        for item in (*self.naive.values(), *([self.floor] if self.floor else [])):
            item.update(first - 1)

    def check(self, number: int) -> None:
        check_same({**self.ours, **self.others, **self.naive}, number, ROW)


def _fill(item: WindowByHand, number: int) -> None:
    """Make the files of a part as Spark would, by DuckDB, which is faster at that."""
    DuckWindow(item.parts, item.directory, CORES, item.window, item.merge, item.strategy).update(number)


class Site:
    """Loaded parts, and the contestants for several windows that work on them, all in the same rounds."""

    def __init__(
        self,
        spark: SparkSession,
        wh: Warehouse,
        rows: int,
        queries: Sequence[Query],
        repeats: int,
        directory: Path,
        postgres: str,
    ) -> None:
        self.first = max(query.window for query in queries) + WARM_UP
        self.end = self.first + repeats
        wh.apply(write_stream("M") + "".join(query.write_views(self.first - WARM_UP) for query in queries))
        parts = load_parts(wh, spark, "M", self.end, rows, rows // 10)
        self.loader = PostgresLoader(postgres, parts, directory)
        self.queries = {query: QuerySite(spark, wh, query, parts, directory, postgres) for query in queries}

    def run(self) -> dict[Query, dict[str, Timing]]:
        console.print(f"  warming up with {self.first} parts", style="dim")
        for number in range(self.first):
            self.loader.load(number)
        for site in self.queries.values():
            site.warm_up(self.first)
            site.check(self.first - 1)
        updates = {
            _full_name(query, name): item.update
            for query, site in self.queries.items()
            for name, item in site.contestants.items()
        }
        timings = measure(updates, range(self.first, self.end), prepare=self.loader.load)
        for site in self.queries.values():
            site.check(self.end - 1)
        return {
            query: {name: timings[_full_name(query, name)] for name in site.contestants}
            for query, site in self.queries.items()
        }


def _full_name(query: Query, name: str) -> str:
    return f"{query.aggregate} W={query.window}: {name}"


def measure_site(
    spark: SparkSession, rows: int, queries: Sequence[Query], repeats: int
) -> dict[Query, dict[str, Timing]]:
    console.print(f"{rows:,} rows a part, {rows // 10:,} groups")
    with (
        bench_directory() as directory,
        postgres_server() as server,
        Warehouse.open(directory / "wh", spark=spark) as wh,
    ):
        found = Site(spark, wh, rows, queries, repeats, directory, server.create_database()).run()
    for query, timings in found.items():
        title = f"{query.aggregate} over {query.window} parts, {rows:,} rows a part"
        show(title, timings, NAIVE if query.is_compared else ours(query.best))
    return found


def run(
    rows: int = 50_000,
    repeats: int = 7,
    windows: Sequence[int] = (10, 60, 100),
    *,
    aggregate: str,
    full: bool = False,
) -> Result:
    """SUM or MAX. Full: a million rows a part, and everything for the widest window too; ten million rows for a window of 10."""
    rows = 1_000_000 if full else rows
    sizes = [rows // 10, rows * 10] if full else [rows // 10]
    spark = open_spark()
    settings = {"rows": rows, "windows": list(windows), "repeats": repeats, "first": FIRST}
    result = Result(f"windows_{aggregate.lower()}", settings)
    queries = [Query(aggregate, window, full or window <= LONGEST_COMPARED) for window in windows]
    main = {query.window: found for query, found in measure_site(spark, rows, queries, repeats).items()}
    narrow = Query(aggregate, windows[0])
    by_size = [Series(size, measure_site(spark, size, [narrow], repeats)[narrow]) for size in sizes]
    by_window = [Series(window, main[window]) for window in windows]
    by_size = sorted([*by_size, Series(rows, by_window[0].timings)], key=lambda series: series.x)
    result.figures = [
        Figure(
            f"{aggregate} over {windows[0]} parts by rows per part", "rows per part", by_size, FIGURES[aggregate][0]
        ),
        Figure(
            f"{aggregate} by size of the window, {rows:,} rows per part",
            "parts in the window",
            by_window,
            FIGURES[aggregate][1],
        ),
    ]
    result.goals = _judge(aggregate, by_window, by_size)
    hand = by_hand(BEST[aggregate])
    result.notes = [
        f"Noise, {aggregate} over {series.x:g} parts: {hand} against itself {series.ratio(hand + AGAIN, hand)}."
        for series in by_window
        if hand in series.timings
    ]
    return result


def _judge(aggregate: str, by_window: Sequence[Series], by_size: Sequence[Series]) -> list[Goal]:
    compared = [series for series in by_window[1:] if NAIVE in series.timings]
    goals = [goal for series in compared for goal in _judge_window(aggregate, series)]
    narrow, wide = by_window[0], by_window[-1]
    for item in STRATEGIES[aggregate]:
        if item != "merge":
            bound = 1.1 if item in ("delta", "prefix") else 1.5
            # In the same rounds, since all windows are at one site.
            ratio = ratio_of(wide.timings[ours(item)], narrow.timings[ours(item)])
            what = f"{aggregate}: {ours(item)} at W={wide.x:g} / at W={narrow.x:g}"
            goals.append(goal_of(what, ratio, bound, at_most=True))
    small, large = by_size[-2:]
    best = ours(BEST[aggregate])
    ratio = ratio_of_medians(large.timings[best], small.timings[best])
    what = f"{aggregate}: {best}, {large.x:,.0f} rows a part / {small.x:,.0f} rows"
    return [*goals, goal_of(what, ratio, large.x / small.x, at_most=True)]


def _judge_window(aggregate: str, series: Series) -> list[Goal]:
    title, best = f"{aggregate}, W={series.x:g}", ours(BEST[aggregate])
    hand = by_hand(BEST[aggregate])
    by_floor, by_duckdb = series.ratio(hand, FLOOR), series.ratio(DUCKDB_NAIVE, hand)
    goals = [
        goal_of(
            f"{title}: DuckDB naive / {best}",
            series.ratio(DUCKDB_NAIVE, best),
            2,
            at_most=False,
            why=f"the same strategy by hand in PySpark has {by_duckdb} here: DuckDB groups rows several times faster than Spark, "
            "in one process and without jobs to plan",
        ),
        goal_of(
            f"{title}: {best} / floor",
            series.ratio(best, FLOOR),
            2.5,
            at_most=True,
            why=f"the same strategy by hand has {by_floor} here: most of it is Spark grouping the rows of the new part by pair",
        ),
    ]
    for item in STRATEGIES[aggregate]:
        bound = 15 if item in ("delta", "prefix") else 10
        why = ""
        if item != "merge":
            why = f"by hand in PySpark it is {series.ratio(NAIVE, by_hand(item))}"
        naive_by_ours = series.ratio(NAIVE, ours(item))
        goals.append(goal_of(f"{title}: naive / {ours(item)}", naive_by_ours, bound, at_most=False, why=why))
        if item != "merge":
            ratio = series.ratio(ours(item), by_hand(item))
            what = f"{title}: {ours(item)} / the same by hand"
            goals.append(goal_of(what, ratio, 1.1, at_most=True, why=WHY))
    return goals
