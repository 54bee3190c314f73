"""`viewdf`: every command opens the warehouse, does one thing, and says what it did.

Data go to stdout, messages and progress to stderr. Exit 0: done. 1: an error with its sentence. 2: wrong usage.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from airflow_provider_viewdf.actions.changed_views import Changed
from airflow_provider_viewdf.cli.formats import format_rate, format_rows, format_statuses
from airflow_provider_viewdf.cli.serving import serve_spark
from airflow_provider_viewdf.engine.spark_errors import translated
from airflow_provider_viewdf.errors import UsageError, ViewDFError
from airflow_provider_viewdf.language import expand_queries
from airflow_provider_viewdf.parts import Partitioning
from airflow_provider_viewdf.reports import ApplyPreview, RefreshReport, StepReport, describe_look
from airflow_provider_viewdf.warehouse import Warehouse, compile_script

HELP = """Incremental materialized views over time-partitioned tables.

A script defines tables (CREATE STREAM), dimension tables (CREATE TABLE) and views (CREATE VIEW). Load rows into tables,
refresh the views, ask questions. Whatever comes late, a refresh computes exactly what it changes:

\b
  viewdf apply network.sql
  viewdf load M minute-10-00.csv --from 2015-01-01T10:00 --to 2015-01-01T10:01
  viewdf look E --from 2015-01-01                   (files of others: a stream with a LOCATION)
  viewdf refresh
  viewdf query "SELECT * FROM View2 WHERE PART = 23668444"

Every command but serve takes --warehouse DIR (or VIEWDF_WAREHOUSE), --catalog URL, and --master or --remote for Spark.
All times are UTC.
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)
messages = Console(stderr=True, highlight=False, soft_wrap=True)

WarehouseOption = Annotated[
    str,
    typer.Option("--warehouse", envvar="VIEWDF_WAREHOUSE", help="Directory or URL of the warehouse.", metavar="DIR"),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog", envvar="VIEWDF_CATALOG", help="URL of the catalog; default: SQLite inside the warehouse."
    ),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", help="Spark master, such as local[2] or spark://host:7077.")
]
RemoteOption = Annotated[str | None, typer.Option("--remote", help="Spark Connect server, such as sc://host:15002.")]


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command works."""

    warehouse: str
    catalog: str | None
    master: str | None
    remote: str | None

    def open(self) -> Warehouse:
        if self.master and self.remote:
            raise UsageError("Give --master or --remote, not both.")
        return Warehouse.open(self.warehouse, self.catalog, master=self.master, remote=self.remote)


@app.command()
def apply(
    script: Annotated[Path, typer.Argument(help="The script, or - for stdin.")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    restate: Annotated[
        bool, typer.Option(help="Compute the parts of views anew whose definition changed, instead of refusing.")
    ] = False,
    restate_from: Annotated[
        str | None, typer.Option("--from", help="With --restate: only parts from this time on.", metavar="TIME")
    ] = None,
    forward_only: Annotated[
        bool, typer.Option("--forward-only", help="Leave such parts as they are; only new ones by the new definition.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would become stale, and change nothing.")
    ] = False,
    start: Annotated[str | None, typer.Option(help="Where views begin that have no STARTING.", metavar="TIME")] = None,
) -> None:
    """Define and drop what a script says, all or nothing."""
    if restate and forward_only:
        raise typer.BadParameter("give --restate or --forward-only, not both")
    if restate_from is not None and not restate:
        raise typer.BadParameter("--from goes with --restate")
    changed: Changed = "restate" if restate else "forward" if forward_only else "refuse"
    with Place(warehouse, catalog, master, remote).open() as wh:
        if dry_run:
            preview = wh.preview_apply(_read(script), changed=changed, restate_from=restate_from, start=start)
            _print_preview(preview, refused=changed == "refuse")
            return
        for definition in wh.apply(
            _read(script), changed=changed, restate_from=restate_from, start=start, on_preview=_tell_preview
        ):
            columns = ", ".join(f"{column.name} {column.type}" for column in definition.shown_columns)
            messages.print(f"{definition.name} ({columns})")


@app.command()
def load(
    table: Annotated[str, typer.Argument(help="The table to load into.")],
    files: Annotated[list[str], typer.Argument(help="CSV, JSON lines or Parquet files; patterns such as in/*.csv.")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    batch_id: Annotated[str | None, typer.Option(help="The same id again replaces what it brought before.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="Start of the time the batch is for.", metavar="TIME")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of the time the batch is for.", metavar="TIME")] = None,
    quarantine: Annotated[bool, typer.Option(help="Set rows aside that do not fit, instead of refusing all.")] = False,
    confirm: Annotated[bool, typer.Option(help="Load even if the times look implausible.")] = False,
) -> None:
    """Load rows into the parts of their event times."""
    if (start is None) != (end is None):
        raise typer.BadParameter("give both --from and --to, or neither")
    with Place(warehouse, catalog, master, remote).open() as wh:
        covers = None if start is None or end is None else (start, end)
        result = wh.load(table, files, batch_id, covers, "quarantine" if quarantine else "reject", confirm=confirm)
        touched = result.covers | result.changed  # late rows go to parts that the batch does not cover
        messages.print(
            f"{result.rows} rows into {result.table}, {len(result.changed)} of {len(touched)} parts changed"
            + (f", {len(result.rejected)} rows set aside in {result.table}_quarantine" if result.rejected else "")
            + (f", late rows: {result.late}" if result.late else "")
            + (f", {len(result.restored)} damaged parts restored" if result.restored else "")
            + f" (batch {result.batch_id}, {result.seconds:.1f} s)"
        )


@app.command()
def look(
    table: Annotated[str, typer.Argument(help="The external stream: one with a LOCATION.")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", help="Look at parts from this time on; default: from the oldest registered.", metavar="TIME"
        ),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Look at parts before this time; default: now.", metavar="TIME")
    ] = None,
) -> None:
    """Look at the files of an external stream, and register new and changed parts. Nothing is copied."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        result = wh.look(table, start=start, end=end)
        for line in describe_look(result, _find_partitioning(wh, result.table)):
            messages.print(line)


@app.command()
def refresh(
    warehouse: WarehouseOption,
    views: Annotated[list[str] | None, typer.Argument(help="Which views; all if none is named.")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    start: Annotated[str | None, typer.Option("--from", help="Only parts from this time on.", metavar="TIME")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Only parts before this time.", metavar="TIME")] = None,
    dry_run: Annotated[bool, typer.Option(help="Say what would be done, and do nothing.")] = False,
    batch_limit: Annotated[
        int, typer.Option(min=1, help="How many parts of a view that does not read its own past to compute at once.")
    ] = 100,
) -> None:
    """Bring views up to date."""
    with Place(warehouse, catalog, master, remote).open() as wh, _progress("refresh") as progress:

        def tell(step: StepReport, done: int, total: int) -> None:
            progress(f"{step.view}[{step.index}]", done, total)

        report = wh.refresh(views or None, start, end, dry_run, on_progress=tell, batch_limit=batch_limit)
        for line in wh.explain_plan(report) if dry_run else ():
            print(line)
    _print_report(report, dry_run=dry_run)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="A SELECT over tables and views.")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    format: Annotated[Format, typer.Option(help="How to print the answer.")] = Format.table,
) -> None:
    """Ask a question; PART and PART_TIMESTAMP choose parts."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        frame = wh.query(sql)
        with translated(sql):  # files of others are read only now, and may not fit
            rows = [tuple(row) for row in frame.collect()]
        print(format_rows(frame.columns, rows, format.value))


@app.command()
def status(
    warehouse: WarehouseOption,
    name: Annotated[str | None, typer.Argument(help="A table or view; all if none is named.")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Show how tables and views stand."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        print(format_statuses(wh.status(name), in_detail=name is not None))


@app.command()
def impact(
    table: Annotated[str, typer.Argument(help="The table or view whose part is supposed to change.")],
    at: Annotated[str, typer.Option(help="A time in the part.", metavar="TIME")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    until: Annotated[str | None, typer.Option(help="All parts up to this time.", metavar="TIME")] = None,
) -> None:
    """List which parts of which views would be computed if a part changed, and why, as a tree. Changes nothing."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        found = wh.impact(table, at, until)
    for line in found.lines:
        print(line)
    count = sum(len(parts) for parts in found.recomputed.values())
    what = f"{count} part{'' if count == 1 else 's'} at most, if {found.table}[{found.parts}] changed"
    messages.print(
        f"{what}; a part that turns out the same ends its chain"
        if count
        else f"Nothing reads {found.table}[{found.parts}]"
    )


@app.command()
def explain(
    view: Annotated[str, typer.Argument(help="The view.")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    at: Annotated[str | None, typer.Option(help="The part at this time; default: the newest.", metavar="TIME")] = None,
) -> None:
    """Say what a view reads, and what one of its parts is made from."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        print(wh.explain(view, at))


@app.command(name="compile")
def compile_views(
    script: Annotated[Path, typer.Argument(help="The script, or - for stdin.")],
    view: Annotated[str | None, typer.Option(help="Only this view.")] = None,
    at: Annotated[str | None, typer.Option(help="For the part at this time; default: now.", metavar="TIME")] = None,
    warehouse: Annotated[str | None, typer.Option("--warehouse", envvar="VIEWDF_WAREHOUSE", metavar="DIR")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Print what a script becomes.

    Pattern and window queries are written out as the views they are translated into: a script that can be applied itself.
    With --at or --view, or if there are no such queries: the Spark SQL of each view for one part. Needs no warehouse unless
    the script refers to what one holds.
    """
    sql = _read(script)
    expanded = None
    with ExitStack() as stack:
        wh = None if warehouse is None else stack.enter_context(Place(warehouse, catalog, master, remote).open())
        if at is None and view is None:
            expanded = expand_queries(sql) if wh is None else wh.expand(sql)
        if expanded is None:
            compiled = compile_script(sql, {}, view, at) if wh is None else wh.compile(sql, view, at)
    if expanded is not None:
        print(expanded)
        return
    print("\n\n".join(f"-- {title}\n{statement};" for title, statement in compiled))


@app.command()
def verify(
    warehouse: WarehouseOption,
    views: Annotated[list[str] | None, typer.Argument(help="Which views; all if none is named.")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Compute views from scratch and compare; exit 1 if a stored part differs."""
    with Place(warehouse, catalog, master, remote).open() as wh, _progress("verify") as progress:
        report = wh.verify(
            views or None, on_progress=lambda name, index, done, total: progress(f"{name}[{index}]", done, total)
        )
    for difference in report.differences:
        print(f"{difference.view}[{difference.index}]: {difference.reason}")
        for row in difference.only_stored:
            print(f"  only stored:     {row}")
        for row in difference.only_recomputed:
            print(f"  only recomputed: {row}")
    for item in report.unchecked:
        messages.print(f"{item.view}[{item.parts}] not compared: {item.reason}")
    for name, parts in report.left_out:
        messages.print(f"{name}[{parts}] left out: made by an earlier definition")
    count = sum(len(parts) for _, parts in report.checked)
    messages.print(f"{count} parts compared, {len(report.differences)} differ ({report.seconds:.1f} s)")
    if not report.is_ok:
        raise typer.Exit(1)


@app.command(name="declare-empty")
def declare_empty(
    table: Annotated[str, typer.Argument(help="The table.")],
    at: Annotated[str, typer.Option(help="A time in the part.", metavar="TIME")],
    why: Annotated[str, typer.Option(help="Why there will be no rows; kept, and shown by status.")],
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    until: Annotated[str | None, typer.Option(help="All parts up to this time.", metavar="TIME")] = None,
) -> None:
    """Say that a part will never get rows, so that nothing waits for it."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        result = wh.declare_empty(table, at, why, until=until)
        messages.print(
            f"{len(result.covers)} parts of {result.table} declared empty, {len(result.changed)} of them new"
        )


@app.command()
def gc(
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    grace_hours: Annotated[float, typer.Option(help="Keep what was replaced less than this long ago.")] = 24.0,
) -> None:
    """Delete replaced versions, what crashed writes left behind, and helper parts that nothing will read."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        report = wh.gc(timedelta(hours=grace_hours))
        messages.print(f"{report.versions} replaced versions and {report.orphans} left-over directories removed")
        if report.retired:
            messages.print(f"{report.retired} parts of helper views retired, which nothing will read soon")


@app.command()
def repair(
    warehouse: WarehouseOption,
    tables: Annotated[list[str] | None, typer.Argument(help="Which tables and views; all if none is named.")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    deep: Annotated[
        bool, typer.Option(help="Read every row and compare digests, not only the files' footers.")
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="Say what is damaged, and change nothing.")] = False,
) -> None:
    """Find parts with damaged files, and compute them again; exit 1 if something is left for you to do."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        report = wh.repair(tables or None, deep=deep, dry_run=dry_run)
    for item in report.damaged:
        print(
            f"{item.table}[{item.index}] {item.time:%Y-%m-%dT%H:%M}: {item.problem}: {item.outcome}"
            + (f": {item.remedy}" if item.remedy else "")
        )
    messages.print(f"{report.checked} parts checked, {len(report.damaged)} damaged ({report.seconds:.1f} s)")
    if not report.is_ok:
        raise typer.Exit(1)


@app.command(name="roll-up")
def roll_up(
    warehouse: WarehouseOption,
    tables: Annotated[list[str] | None, typer.Argument(help="Which tables and views; all if none is named.")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    span: Annotated[str, typer.Option(help="The time whose parts are put together.", metavar="LENGTH")] = "1 day",
    older_than: Annotated[
        str, typer.Option(help="Leave alone what is newer, counted from the newest part.", metavar="LENGTH")
    ] = "1 day",
) -> None:
    """Put the rows of many small old parts into few files."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        report = wh.roll_up(tables or None, span=span, older_than=older_than)
        definitions = {item.name: item for item in wh.definitions()}
    for item in report.rolled:
        messages.print(f"{definitions[item.table].describe_parts(item.parts)}: {item.rows} rows rolled up")
    for item in report.left:
        messages.print(f"{definitions[item.table].describe_parts(item.parts)} left as it was: {item.left_because}")
    messages.print(f"{report.parts} parts rolled up into {len(report.rolled)} file sets ({report.seconds:.1f} s)")


@app.command()
def retire(
    warehouse: WarehouseOption,
    tables: Annotated[list[str] | None, typer.Argument(help="Which tables and views; all if none is named.")] = None,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Archive the parts that are older than the RETAIN of their table or view."""
    with Place(warehouse, catalog, master, remote).open() as wh:
        report = wh.retire(tables or None)
        definitions = {item.name: item for item in wh.definitions()}
    for item in report.tables:
        if item.parts:
            messages.print(f"{definitions[item.table].describe_parts(item.parts)} archived")
        if item.held_because:
            messages.print(f"{item.table}: older parts are kept, since {item.held_because}")
    messages.print(f"{report.parts} parts archived; gc removes their files")


@app.command()
def migrate(
    warehouse: WarehouseOption,
    catalog: CatalogOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Bring the catalog to this version's tables."""
    before, after = Warehouse.migrate(warehouse, catalog)
    messages.print(f"The catalog is at {after}" + ("" if before == after else f", upgraded from {before or 'nothing'}"))


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Where it listens, on 127.0.0.1; 0: any free port.")] = 15002,
    master: Annotated[
        str, typer.Option("--master", help="Spark master, such as local[2] or spark://host:7077.")
    ] = "local[*]",
    log: Annotated[Path, typer.Option(help="File for what Spark has to say; written anew.")] = Path("viewdf-spark.log"),
) -> None:
    """Run a Spark Connect server for this machine until Ctrl-C, so that commands and tasks need not start a Spark."""
    serve_spark(port, master, log, messages)


def _find_partitioning(wh: Warehouse, table: str) -> Partitioning:
    return next(item.partitioning for item in wh.definitions() if item.name == table)


def _read(script: Path) -> str:
    if str(script) == "-":
        return sys.stdin.read()
    try:
        return script.read_text()
    except OSError as error:
        raise UsageError(f"{script} cannot be read: {error.strerror}.") from None


def _print_preview(preview: ApplyPreview, *, refused: bool) -> None:
    for what, names in (("defined", preview.added), ("changed", preview.changed), ("dropped", preview.dropped)):
        for name in names:
            print(f"{name}: {what}")
    for line in preview.lines:
        print(line)
    if preview.needs_choice and refused:
        messages.print(
            f"{', '.join(preview.needs_choice)}: has parts, so a choice is needed; this is what --restate would do. "
            "With --restate --from TIME only parts from then on, with --forward-only none become stale."
        )
    elif not preview.lines:
        messages.print("No part becomes stale.")


def _tell_preview(preview: ApplyPreview) -> None:
    for line in preview.lines:
        messages.print(f"stale: {line}", markup=False)
    for name in preview.dropped:
        messages.print(f"{name} is dropped", markup=False)


def _print_report(report: RefreshReport, *, dry_run: bool) -> None:
    for step in [] if dry_run else report.steps:
        line = f"{step.view}[{step.index}]  {step.time:%Y-%m-%dT%H:%M}  {step.rule.upper()}  because {step.reason}"
        messages.print(f"{line}: {step.outcome}, {step.rows} rows, v{step.version}, {step.seconds:.1f} s")
    for item in report.skipped:
        messages.print(f"{item.view}[{item.parts}] skipped: {item.reason}")
    for item in report.blocked:
        messages.print(f"{item.view}[{item.parts}] blocked: {item.reason}")
    if dry_run:
        messages.print(f"{len(report.steps)} steps at most; a part that turns out the same ends its chain")
    else:
        rate = format_rate(len(report.steps), report.seconds)
        messages.print(
            f"{len(report.published)} parts published, {len(report.kept)} kept ({report.seconds:.1f} s, {rate})"
        )


class _Bar:
    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._started = time.monotonic()
        self._task = progress.add_task(title, total=None, rate="")

    def __call__(self, text: str, done: int, total: int) -> None:
        rate = format_rate(done, time.monotonic() - self._started)
        self._progress.update(self._task, description=text, completed=done, total=total, rate=rate)


@contextmanager
def _progress(title: str) -> Iterator[_Bar]:
    """A progress bar on stderr, if that is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        yield _Bar(progress, title)


def main() -> None:
    try:
        app()
    except ViewDFError as error:
        print(str(error), file=sys.stderr)
        sys.exit(1)
