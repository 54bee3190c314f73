"""What planning, status and publishing cost in a catalog that holds many parts: nothing here needs Spark.

Fifty views of the usual kinds get so many parts each, by bulk SQL into the catalog's own tables. Then one part of the stream
comes late, 100 parts before the end, and what follows is timed: as much as is touched, or as much as is stored?
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

from sqlalchemy import Connection, text

from airflow_provider_viewdf.actions.apply import make_record
from airflow_provider_viewdf.actions.workbench import Workbench, read_snapshot
from airflow_provider_viewdf.catalog import Catalog, DefinitionChange, open_catalog
from airflow_provider_viewdf.definitions import Column, Definition, fold
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Bounds
from airflow_provider_viewdf.versions import ContentDigest, InputRange, Publication
from airflow_provider_viewdf.warehouse import Warehouse
from bench.losses import FIRST, START, write_stream
from bench.measure import console, measure, ratio_of, show
from bench.results import Figure, Goal, Result, Series, goal_of
from bench.servers import postgres_server

NewDatabase = Callable[[], AbstractContextManager[str]]

LOAD = "load a late part"
LATE = 100  # parts before the end
COLUMNS = (Column("src", "int"), Column("dest", "int"), Column("n", "bigint"))


def write_script(views: int) -> str:
    """Patterns and windows until there are so many views, generated helper views included."""
    script, count = write_stream("M"), 0
    kinds = cycle((_write_pattern, _write_window))
    for number, write in enumerate(kinds):
        if count >= views:
            break
        view = write(number)
        script += view
        count += sum(item.kind == "view" for item in parse_script(write_stream("M") + view))
    return script


def _write_pattern(number: int) -> str:
    return (
        f"CREATE VIEW Pattern{number} AS SELECT src, dest, count(*) AS n FROM M PATTERN [a, b+] "
        f"WHERE a.loss > {number} AND b.loss > {number} GROUP BY src, dest;\n"
    )


def _write_window(number: int) -> str:
    return (
        f"CREATE VIEW Window{number} AS SELECT src, dest, sum(loss) AS n FROM M [WINDOW 60 minutes] "
        f"WHERE loss > {number} GROUP BY src, dest WITH (strategy = 'prefix');\n"
    )


def fill(catalog: Catalog, script: str, parts: int) -> list[Definition]:
    """Definitions, and `parts` current versions of each, from the first part on; M has a batch for each."""
    definitions = [replace(item, columns=item.columns or COLUMNS) for item in parse_script(script)]
    # As if all of it had been running since then.
    records = [make_record(item, None, START) for item in definitions]
    changes = [DefinitionChange(item, "keep") for item in records]
    catalog.save_definitions(changes, generation=0, produced_by="bench")
    # Each in a transaction of its own: SQLite writes a whole transaction twice, and keeps both until it ends.
    for item in definitions:
        with catalog._database.writing() as connection:
            _fill_parts(connection, item, _number_rows(connection, parts), parts)
    with catalog._database.writing() as connection:
        numbers = _number_rows(connection, parts)
        connection.execute(
            text(
                f"""
            INSERT INTO batches (table_key, batch_id, source, loaded_at, produced_by, declared_empty_because,
                                 late_taken, late_quarantined, late_ignored)
            SELECT 'm', 'b' || n, 'file.csv', {_end_of_part(connection)}, 'bench', '', 0, 0, 0 FROM {numbers}
            """.replace(":%", "\\:%")
            )
        )
        for statement in (
            f"INSERT INTO batch_covers SELECT 'm', 'b' || n, {FIRST} + n, {FIRST} + n FROM {numbers}",
            f"INSERT INTO batch_parts SELECT 'm', {FIRST} + n, 'b' || n, '10:1:1' FROM {numbers}",
        ):
            connection.execute(text(statement))
    with catalog._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    return definitions


def _number_rows(connection: Connection, count: int) -> str:
    """Something to select n = 0, 1, 2 ... from."""
    if connection.dialect.name == "postgresql":
        return f"(SELECT generate_series AS n FROM generate_series(0, {count - 1})) numbers"
    return f"(WITH RECURSIVE up(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n < {count - 1}) SELECT n FROM up) AS numbers"


def _fill_parts(connection: Connection, item: Definition, numbers: str, parts: int) -> None:
    key = fold(item.name)
    rule = "NULL" if item.kind == "stream" else f"CASE WHEN n < {_warm_up(item)} THEN 'initialize' ELSE 'update' END"
    reads = [reference.table for reference in item.references]
    inputs = ", ".join(f"""["{name}", ' || ({FIRST} + n) || ', ' || ({FIRST} + n) || ']""" for name in reads)
    connection.execute(
        text(
            f"""
        INSERT INTO part_versions (table_key, part_index, version, location, rows, digest, definition_digest, inputs,
                                   inputs_digest, rule, created_at, produced_by, files)
        SELECT '{key}', {FIRST} + n, 1, '{item.name}/' || ({FIRST} + n) || '/v1-0123456789ab', 10, '10:' || n || ':1',
               :digest, '[{inputs}]', :inputs_digest, {rule}, {_end_of_part(connection)}, 'network/scheduled__2015/{item.name} try 1', ''
        FROM {numbers}
        """.replace(":1'", "\\:1'").replace(":%", "\\:%")
        ),
        {"digest": item.digest, "inputs_digest": "0" * 64},
    )
    connection.execute(text(f"INSERT INTO parts SELECT '{key}', {FIRST} + n, 1, 1 FROM {numbers}"))
    connection.execute(text(f"INSERT INTO row_totals VALUES ('{key}', {10 * parts})"))
    connection.execute(text(f"INSERT INTO extents VALUES ('{key}', {FIRST}, {FIRST + parts - 1})"))


def _end_of_part(connection: Connection) -> str:
    """When part n was over, as the databases keep times."""
    seconds = f"({FIRST} + n + 1) * 60"
    if connection.dialect.name == "postgresql":
        return f"to_timestamp({seconds})"
    return f"strftime('%Y-%m-%d %H:%M:%S.000000', {seconds}, 'unixepoch')"


def _warm_up(item: Definition) -> int:
    """How many parts INITIALIZE makes."""
    return 1 if any(fold(reference.table) == fold(item.name) for reference in item.references) else 0


class Subject:
    """A filled catalog, and what is timed on it. A round makes a part of M late and ends with everything up to date."""

    def __init__(self, bench: Workbench, parts: int) -> None:
        self.bench = bench
        self.warehouse = Warehouse(bench, None)  # type: ignore[arg-type]  # nothing here reaches for Spark
        self.late = FIRST + parts - LATE
        with bench.catalog.snapshot() as reader:
            self.known = bench.read_known(reader)
            self.bounds = Bounds(read_snapshot(reader, self.known, self.known.definitions))
        self.view = next(item for item in self.known.definitions.values() if item.name == "Pattern0")
        self._content = 0

    def load(self, _round: int) -> None:
        """What a load asks of the catalog, and the publication of the late part with what becomes stale by it."""
        with self.bench.catalog.snapshot() as reader:
            part = PartSet.between(self.late, self.late)
            reader.batch("M", "late")
            reader.newest_part("M", "late")
            reader.batches_of_parts("M", part)
            (current,) = reader.current_versions("M", part)
        self._content += 1
        stale = self.bounds.stale_because("M", PartRange(self.late, self.late), "late data in M")
        digest = ContentDigest(11, self._content, 0)
        self._publish(Publication("M", self.late, current.version, "M/late", digest, "", (), "", None, stale))

    def plan(self, _round: int) -> None:
        """What a refresh of everything would do: the late part's 100 followers in each chain, and nothing else."""
        steps = self.warehouse.refresh(dry_run=True).steps
        if not LATE < len(steps) < 4 * LATE * len(self.known.definitions):
            raise AssertionError(f"{len(steps)} steps are planned.")

    def plan_one(self, _round: int) -> None:
        """What one task of Airflow plans: the newest part of its view, and what else of it is stale."""
        newest = self.late + LATE - 1
        self.warehouse.refresh(
            parts={self.view.name: PartSet.between(newest, newest)}, also_stale=True, dry_run=True, only_these=True
        )

    def publish(self, _round: int) -> None:
        """One step of a refresh, without Spark: read what the part is made from, and publish it."""
        definition = self.view
        self._content += 1
        with self.bench.catalog.snapshot() as reader:
            rule = self.bounds.rule(definition.name, self.late)
            inputs = tuple(
                InputRange(reference.table, span.low, span.high)
                for reference in definition.query_for(rule).references
                for span in [self.bounds.reads(reference, self.late)]
            )
            _, digest = reader.read_inputs(inputs)
            (current,) = reader.current_versions(definition.name, PartSet.between(self.late, self.late))
        stale = self.bounds.stale_because(definition.name, PartRange(self.late, self.late), "changed")
        content = ContentDigest(11, self._content, 0)
        self._publish(
            Publication(
                definition.name,
                self.late,
                current.version,
                "x",
                content,
                definition.digest,
                inputs,
                digest,
                rule,
                stale,
            )
        )

    def _publish(self, publication: Publication) -> None:
        self.bench.catalog.publish([publication], generation=self.known.generation, produced_by="bench")

    def status(self, _round: int) -> None:
        self.warehouse.status()

    def status_one(self, _round: int) -> None:
        self.warehouse.status(self.view.name)

    def explain(self, _round: int) -> None:
        self.warehouse.explain(self.view.name)

    def change(self, _round: int) -> None:
        self.warehouse.changed_since(datetime.now(UTC))

    def operations(self) -> dict[str, Callable[[int], None]]:
        return {
            LOAD: self.load,
            "plan everything": self.plan,
            "plan one view": self.plan_one,
            "publish a part": self.publish,
            "status": self.status,
            "status of one view": self.status_one,
            "explain a part": self.explain,
            "changed since": self.change,
        }


def measure_database(
    name: str, new_database: NewDatabase, views: int, sizes: Sequence[int], repeats: int
) -> list[Series]:
    """Catalogs of all sizes in the same rounds, so that the ratios between them have no other noise than any other."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        operations: dict[tuple[str, int], Callable[[int], None]] = {}
        for size in sizes:
            catalog = stack.enter_context(closing(open_catalog(stack.enter_context(new_database()))))
            console.print(f"{name}: filling a catalog with {views} views of {size:,} parts")
            started = time.monotonic()
            fill(catalog, write_script(views), size)
            console.print(f"  filled in {time.monotonic() - started:.0f} s", style="dim")
            subject = Subject(_open_workbench(catalog, folder), size)
            operations |= {(operation, size): work for operation, work in subject.operations().items()}
        # The loads come first, since the others are about what they leave.
        ordered = sorted(operations, key=lambda key: key[0] != LOAD)
        for key in ordered:
            operations[key](0)
        names = {f"{operation}, {size}": operations[operation, size] for operation, size in ordered}
        timings = measure(names, range(repeats), pinned=len(sizes))
    series = [
        Series(size, {operation: timings[f"{operation}, {of}"] for operation, of in operations if of == size})
        for size in sizes
    ]
    for item in series:
        show(f"{name}, {item.x:,} parts of each view", item.timings, "plan one view")
    return series


def _open_workbench(catalog: Catalog, folder: Path) -> Workbench:
    from airflow_provider_viewdf.engine.part_files import PartFiles
    from airflow_provider_viewdf.versions import Producer

    def no_spark() -> object:
        raise AssertionError("Planning and publishing need no Spark.")

    return Workbench(catalog, PartFiles(str(folder)), no_spark, Producer())  # type: ignore[arg-type]


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, NewDatabase]]:
    """By name: something that makes a new database, tells its URL, and removes it, as it may be large."""

    @contextmanager
    def new_sqlite() -> Iterator[str]:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            yield f"sqlite:///{own}/catalog.sqlite"

    with postgres_server() as server:

        @contextmanager
        def new_postgres() -> Iterator[str]:
            url = server.create_database()
            yield url
            server.drop_database(url)

        yield {"SQLite": new_sqlite, "PostgreSQL": new_postgres}


def run(views: int = 50, sizes: Sequence[int] = (2_000, 20_000), repeats: int = 7, *, full: bool = False) -> Result:
    """Full: up to a million parts of each view, which takes about 30 GB of disk."""
    sizes = (20_000, 1_000_000) if full else sizes
    result = Result("catalog", {"views": views, "parts_per_view": list(sizes), "repeats": repeats, "late": LATE})
    with tempfile.TemporaryDirectory(prefix="viewdf-bench-") as folder, databases(Path(folder)) as found:
        for name, new_database in found.items():
            series = measure_database(name, new_database, views, sizes, repeats)
            result.figures.append(Figure(f"Catalog in {name}, {views} views", "parts of each view", series))
            result.goals += _judge(name, series)
    return result


def _judge(name: str, series: list[Series]) -> list[Goal]:
    """Ten times the parts must not cost noticeably more, whatever is asked."""
    small, large = series[0], series[-1]
    growth = large.x / small.x
    return [
        goal_of(
            f"{name}: {operation}, {growth:g} times the parts",
            ratio_of(large.timings[operation], small.timings[operation]),
            1.5,
            at_most=True,
        )
        for operation in small.timings
    ]
