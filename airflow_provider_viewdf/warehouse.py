"""The warehouse: the one object through which everything is done, by people and by Airflow alike."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_viewdf.actions.workbench import Workbench, read_snapshot
from airflow_provider_viewdf.catalog import open_catalog, upgrade_catalog
from airflow_provider_viewdf.compiler import compile_part
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.engine.part_files import PartFiles
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.language import expand_queries, parse_script
from airflow_provider_viewdf.parts import EARLIEST, PartSet, as_time, parse_length
from airflow_provider_viewdf.planning import (
    Bounds,
    Snapshot,
    ask_between,
    ask_for_everything,
    ask_for_stale,
    find_computable,
)
from airflow_provider_viewdf.reports import (
    ApplyPreview,
    CleanUpReport,
    Impact,
    LoadResult,
    LookResult,
    RefreshReport,
    RepairReport,
    RetireReport,
    RollUpReport,
    TableStatus,
    VerifyReport,
)
from airflow_provider_viewdf.versions import PartVersion, Producer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_viewdf.actions.apply import OnPreview
    from airflow_provider_viewdf.actions.changed_views import Changed, Choice
    from airflow_provider_viewdf.actions.load import Covers, OnError
    from airflow_provider_viewdf.actions.refresh import OnProgress
    from airflow_provider_viewdf.actions.verify import OnChecked
    from airflow_provider_viewdf.engine.engine import Engine

Time = datetime | str


class Warehouse:
    """Tables, views and their parts, under one directory and one catalog. Open it with `Warehouse.open`."""

    def __init__(self, bench: Workbench, engine: _LazyEngine) -> None:
        self._bench = bench
        self._engine = engine

    @classmethod
    def open(
        cls,
        location: str | os.PathLike[str],
        catalog_url: str | None = None,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        remote: str | None = None,
        open_spark: Callable[[], SparkSession] | None = None,
        produced_by: Producer | None = None,
    ) -> Warehouse:
        """Open a warehouse, creating it if need be.

        The catalog is a SQLite file inside it unless `catalog_url` says otherwise. Spark is started only when something
        needs it: the given session, or what `open_spark` returns, or one on `master` or `remote`, or a local one.
        """
        files = PartFiles(os.fspath(location))
        if catalog_url is None:
            catalog_url = _find_catalog(files)
        engine = _LazyEngine(files, spark, open_spark, master, remote)
        catalog = open_catalog(catalog_url)
        return cls(Workbench(catalog, files, engine.open, produced_by or Producer()), engine)

    @staticmethod
    def migrate(location: str | os.PathLike[str], catalog_url: str | None = None) -> tuple[str | None, str]:
        """Bring the catalog of a warehouse to this version's tables: its revisions before and after."""
        return upgrade_catalog(catalog_url or _find_catalog(PartFiles(os.fspath(location))))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalog, of temporary views, and of the session if it was opened on `remote`. A session that was given, or
        a Spark in this process, is left to whoever uses it next."""
        self._engine.release()
        self._bench.catalog.close()

    def apply(
        self,
        sql: str,
        *,
        changed: Changed = "refuse",
        restate_from: Time | None = None,
        start: Time | None = None,
        on_preview: OnPreview | None = None,
    ) -> list[Definition]:
        """Define and drop what a script says, all or nothing. What is there already, unchanged, is left alone.

        A view that has parts and is defined differently now: "refuse" is an error that names the choices; "restate" has
        its parts computed anew by the next refresh, those from `restate_from` on or all; "forward" leaves them as they are,
        and computes new parts by the new definition. `start` is where views begin that have no STARTING of their own.
        `on_preview` is told what is about to be changed, if anything is.
        """
        from airflow_provider_viewdf.actions.apply import apply_script

        choice, begin = self._choose(changed, restate_from), None if start is None else as_time(start)
        return apply_script(self._bench, sql, choice, begin, on_preview)

    def preview_apply(
        self, sql: str, *, changed: Changed = "refuse", restate_from: Time | None = None, start: Time | None = None
    ) -> ApplyPreview:
        """What `apply` would do, without doing it. With "refuse": what restating would do, and that a choice is needed."""
        from airflow_provider_viewdf.actions.apply import preview_script

        choice = self._choose(changed, restate_from)
        return preview_script(self._bench, sql, choice, None if start is None else as_time(start))

    @staticmethod
    def _choose(changed: Changed, restate_from: Time | None) -> Choice:
        from airflow_provider_viewdf.actions.changed_views import Choice

        return Choice(changed, None if restate_from is None else as_time(restate_from))

    def load(
        self,
        table: str,
        source: Any,
        batch_id: str | None = None,
        covers: Covers | None = None,
        on_error: OnError = "reject",
        *,
        confirm: bool = False,
    ) -> LoadResult:
        """Load rows (files, a DataFrame, or dicts) into the parts of their event times.

        The same batch id again replaces what it brought before. `covers` is the span of time that the batch is for: parts
        in it without rows exist and are empty.
        """
        from airflow_provider_viewdf.actions.load import load_batch

        return load_batch(
            self._bench, table, source, batch_id=batch_id, covers=covers, on_error=on_error, confirm=confirm
        )

    def look(
        self,
        table: str,
        at: Time | None = None,
        end: Time | None = None,
        *,
        start: Time | None = None,
        parts: PartSet | None = None,
        lookback: int = 0,
        now: datetime | None = None,
    ) -> LookResult:
        """Look at the files of an external stream, and register what is new or other than before. Needs no Spark.

        Which parts: `parts`, or the one at the time `at`, or those that overlap [`start`, `end`), by default from the oldest
        that is registered up to now; and the `lookback` parts before them. `now` is the time by which COMPLETE AFTER is judged.
        """
        from airflow_provider_viewdf.actions.look import choose_parts, find_external, look_at_parts

        if sum(given is not None for given in (parts, at, start)) > 1 or (end is not None and parts is not None):
            raise UsageError("Give one of parts, at, or start and end.")
        if at is not None and end is None:
            partitioning = find_external(self._bench.known(), table).partitioning
            parts = PartSet.of_indexes([partitioning.index_at(as_time(at))])
        elif parts is None:
            begin = at if at is not None else start
            parts = choose_parts(
                self._bench, table, None if begin is None else as_time(begin), None if end is None else as_time(end)
            )
        return look_at_parts(self._bench, table, parts, now=None if now is None else as_time(now), lookback=lookback)

    def declare_empty(self, table: str, at: Time, why: str, *, until: Time | None = None) -> LoadResult:
        """Say that the part at a time (or all parts until another) will never get rows, and why."""
        from airflow_provider_viewdf.actions.load import declare_parts_empty

        partitioning = self._bench.known().find_stream(table).partitioning
        start = partitioning.start_of(partitioning.index_at(as_time(at)))
        end = partitioning.end_of(partitioning.index_at(as_time(at))) if until is None else as_time(until)
        return declare_parts_empty(self._bench, table, (start, end), why)

    def refresh(
        self,
        views: str | Sequence[str] | None = None,
        start: Time | None = None,
        end: Time | None = None,
        dry_run: bool = False,
        *,
        parts: Mapping[str, PartSet] | None = None,
        also_stale: bool | PartSet = False,
        only_these: bool = False,
        on_progress: OnProgress | None = None,
        batch_limit: int | None = None,
        ahead: Mapping[str, PartSet] | None = None,
    ) -> RefreshReport:
        """Bring views up to date: all of them or these, all parts or those that overlap [start, end).

        `parts` names the parts instead, by view; `also_stale` adds what else of these views is not up to date (given
        parts: what of these). What the asked parts read is brought up to date first; with `only_these`, a part that reads
        something of another view which is not up to date is left alone. Of a view that does not read its own past, up to
        `batch_limit` parts (default: 100) are computed at once. `ahead` names parts that are computed too if they can be,
        as many as `batch_limit` leaves room for.
        """
        from airflow_provider_viewdf.actions.refresh import BATCH_LIMIT, refresh_parts

        if batch_limit is not None and batch_limit < 1:
            raise UsageError(f"batch_limit is how many parts to compute at once, at least 1, not {batch_limit}.")
        limit = BATCH_LIMIT if batch_limit is None else batch_limit

        begin = None if start is None else as_time(start)
        finish = None if end is None else as_time(end)
        names = list(parts) if parts is not None else self._name_views(views)

        def ask(snapshot: Snapshot, bounds: Bounds) -> dict[str, PartSet]:
            asked: dict[str, PartSet] = {}
            for name in names:
                key = fold(name)
                if parts is not None:
                    asked[key] = parts[name]
                elif begin is None and finish is None:
                    asked[key] = ask_for_everything(snapshot, bounds, key)
                else:
                    asked[key] = ask_between(snapshot, bounds, key, begin, finish)
                room = limit - len(asked[key])
                if also_stale:
                    within = also_stale if isinstance(also_stale, PartSet) else PartSet.everything()
                    asked[key] |= ask_for_stale(snapshot, bounds, key) & within
                if ahead is not None and name in ahead:
                    asked[key] |= find_computable(snapshot, key, ahead[name] - asked[key], room)
            return asked

        return refresh_parts(
            self._bench,
            names,
            ask,
            dry_run=dry_run,
            on_progress=on_progress,
            only_these=only_these,
            batch_limit=limit,
        )

    def find_next_due(self, view: str, after: int, *, only_these: bool = False) -> int | None:
        """The first part of a view after another that a refresh would compute, if there is such a part."""
        from airflow_provider_viewdf.actions.look_ahead import find_next_due

        return find_next_due(self._bench, view, after, only_these=only_these)

    @contextmanager
    def hold_alone(self, purpose: str) -> Iterator[None]:
        """Be the only one, of all who work on this warehouse, to do something; wait until that is so."""
        from airflow_provider_viewdf.actions.leases import hold_lease

        with hold_lease(self._bench.catalog, purpose, 0):
            yield

    def explain_plan(self, report: RefreshReport) -> list[str]:
        """The steps of a dry run as lines: a tree of what leads to what, in ranges where it is long."""
        from airflow_provider_viewdf.planning.causes import explain_groups, group_steps

        rules = {(step.view, step.index): step.rule for step in report.steps}
        definitions = self._bench.known().definitions
        return explain_groups(group_steps(report.steps), definitions, lambda view, index: rules[view, index])

    def _name_views(self, views: str | Sequence[str] | None) -> list[str]:
        if isinstance(views, str):
            return [views]
        if views is not None:
            return list(views)
        # Helper views are computed as far as the views that read them need them.
        return [item.name for item in self.definitions() if item.kind == "view" and not item.helper_of]

    def query(self, sql: str) -> DataFrame:
        """Ask anything of tables, views and dimension tables. PART and PART_TIMESTAMP choose parts."""
        from airflow_provider_viewdf.actions.query import run_query

        return run_query(self._bench, sql)

    def status(self, name: str | None = None) -> list[TableStatus]:
        """How every table and view stands, or one of them."""
        from airflow_provider_viewdf.actions.status import report_status

        return report_status(self._bench, name)

    def impact(self, table: str, at: Time, until: Time | None = None) -> Impact:
        """What would have to be computed if the part of a table or view at a time changed, or all parts until another.

        It is supposed that every part that is computed for it changes too, so a refresh does at most this.
        """
        from airflow_provider_viewdf.actions.impact import report_impact

        return report_impact(self._bench, table, as_time(at), None if until is None else as_time(until))

    def explain(self, view: str, at: Time | None = None) -> str:
        """What a view reads, and what its part at a time (or its newest) is made from, as text."""
        from airflow_provider_viewdf.actions.status import explain_view

        index = None
        if at is not None:
            index = self._bench.known().find_view(view).partitioning.index_at(as_time(at))
        return explain_view(self._bench, view, index)

    def compile(self, sql: str, view: str | None = None, at: Time | None = None) -> list[tuple[str, str]]:
        """The Spark SQL of each view of a script, for the part at a time: titles and statements. Changes nothing."""
        return compile_script(sql, self._bench.known().definitions, view, at)

    def expand(self, sql: str) -> str | None:
        """A script with its pattern and window queries written out as views; None if it has no such queries."""
        return expand_queries(sql, self._bench.known().definitions)

    def verify(self, view: str | Sequence[str] | None = None, *, on_progress: OnChecked | None = None) -> VerifyReport:
        """Compute views again from scratch, and say where the stored parts differ."""
        from airflow_provider_viewdf.actions.verify import verify_views

        return verify_views(self._bench, [] if view is None else self._name_views(view), on_progress)

    def gc(self, grace: timedelta = timedelta(hours=24)) -> CleanUpReport:
        """Delete replaced versions, and what crashed writes left behind, once they are older than `grace`.

        Parts of the helper views of windows are retired first: those out of reach of rows that are as late as RETAIN allows.
        """
        from airflow_provider_viewdf.actions.collect_garbage import collect_garbage

        return collect_garbage(self._bench, grace)

    def repair(
        self, tables: str | Sequence[str] | None = None, *, deep: bool = False, dry_run: bool = False
    ) -> RepairReport:
        """Find parts whose files are missing, cannot be read, or have other columns or another number of rows.

        Parts of views are computed again; for those of streams it says which batches have to be loaded again; those of
        external streams are looked at again. `deep` reads every row and compares digests. `dry_run` changes nothing.
        """
        from airflow_provider_viewdf.actions.repair import repair_parts

        return repair_parts(self._bench, _list_names(tables), deep=deep, dry_run=dry_run)

    def roll_up(
        self,
        tables: str | Sequence[str] | None = None,
        *,
        span: timedelta | str = "1 day",
        older_than: timedelta | str = "1 day",
    ) -> RollUpReport:
        """Put the small parts of each `span` into few files, once that is `older_than` before the end of the newest part.

        Parts, versions and answers stay what they are. The files they lay in are removed by `gc`, after its grace period.
        """
        from airflow_provider_viewdf.actions.roll_up import roll_up_parts

        length, age = _read_length(span, "span"), _read_length(older_than, "older_than")
        if not length:
            raise UsageError("span is the time whose parts are put together, such as '1 day'; it cannot be nothing.")
        return roll_up_parts(self._bench, _list_names(tables), length, age)

    def retire(self, tables: str | Sequence[str] | None = None) -> RetireReport:
        """Archive the parts that are older, counted from the newest, than the RETAIN of their table or view.

        Parts that a view is yet to read are kept. The files are removed by `gc`, after its grace period.
        """
        from airflow_provider_viewdf.actions.retire import retire_parts

        return retire_parts(self._bench, _list_names(tables))

    def archived_parts(self, table: str) -> PartSet:
        """The parts that exist, but whose rows are no longer kept."""
        with self._bench.catalog.snapshot() as reader:
            name = self._bench.read_known(reader).find(table).name
            before = reader.archived_before(name)
            return PartSet() if before is None else reader.existing_parts(name) & PartSet.between(EARLIEST, before - 1)

    def definitions(self) -> list[Definition]:
        return list(self._bench.known().definitions.values())

    def is_external(self, table: str) -> bool:
        """Whether a table is a stream with a LOCATION, whose files others write."""
        return self._bench.known().find(table).is_external

    def existing_parts(self, table: str) -> PartSet:
        with self._bench.catalog.snapshot() as reader:
            return reader.existing_parts(self._bench.read_known(reader).find(table).name)

    def unready_parts(self, table: str, parts: PartSet) -> PartSet:
        """Of these parts, those that do not exist, or are stale."""
        with self._bench.catalog.snapshot() as reader:
            definition = self._bench.read_known(reader).find(table)
            stale = PartSet.of(item.parts for item in reader.stale_ranges(definition.name))
            return parts - (reader.existing_parts(definition.name) - stale)

    def snapshot(self) -> Snapshot:
        """The state of everything, for planning."""
        with self._bench.catalog.snapshot() as reader:
            known = self._bench.read_known(reader)
            return read_snapshot(reader, known, known.definitions)

    def changed_since(self, time: Time, table: str | None = None) -> list[PartVersion]:
        """The part versions whose content changed at or after a time."""
        with self._bench.catalog.snapshot() as reader:
            name = None if table is None else self._bench.read_known(reader).find(table).name
            return reader.changed_since(as_time(time), name)

    def version_history(self, table: str, at: Time) -> list[PartVersion]:
        """Every version of the part at a time, oldest first."""
        with self._bench.catalog.snapshot() as reader:
            definition = self._bench.read_known(reader).find(table)
            return reader.version_history(definition.name, definition.partitioning.index_at(as_time(at)))


def compile_script(
    sql: str, known: Mapping[str, Definition], view: str | None = None, at: Time | None = None
) -> list[tuple[str, str]]:
    """The Spark SQL of each view of a script: titles and statements."""
    definitions = parse_script(sql, known)
    everything = {**known, **{fold(item.name): item for item in definitions}}
    time = datetime.now(UTC) if at is None else as_time(at)
    compiled: list[tuple[str, str]] = []
    for definition in definitions:
        if definition.kind != "view" or (view is not None and fold(view) != fold(definition.name)):
            continue
        index = definition.partitioning.index_at(time)
        initialize = compile_part(definition, "initialize", index, everything).sql
        update = compile_part(definition, "update", index, everything).sql
        if initialize != update:
            compiled.append((f"{definition.describe_part(index)}, INITIALIZE", initialize))
        compiled.append((f"{definition.describe_part(index)}, UPDATE", update))
    if view is not None and not compiled:
        raise UsageError(f"The script defines no view named {view}.")
    return compiled


def _list_names(tables: str | Sequence[str] | None) -> list[str]:
    return [tables] if isinstance(tables, str) else list(tables or ())


def _read_length(length: timedelta | str, what: str) -> timedelta:
    found = timedelta(seconds=parse_length(length)) if isinstance(length, str) else length
    if found < timedelta(0) or found.microseconds:
        raise UsageError(f"{what} is a length of time in whole seconds, such as '1 day', not {length}.")
    return found


def _find_catalog(files: PartFiles) -> str:
    """The catalog of a warehouse on this machine's disk: a SQLite file inside it."""
    if not files.root.startswith("file://"):
        raise UsageError(
            f"{files.root} cannot hold a SQLite catalog; give catalog_url, such as postgresql://host/viewdf."
        )
    directory = files.root.removeprefix("file://")
    os.makedirs(directory, exist_ok=True)
    return f"sqlite:///{directory}/catalog.sqlite"


class _LazyEngine:
    """The engine, made when it is first needed."""

    def __init__(
        self,
        files: PartFiles,
        spark: SparkSession | None,
        open_spark: Callable[[], SparkSession] | None,
        master: str | None,
        remote: str | None,
    ) -> None:
        self._files = files
        self._spark = spark
        self._open_spark = open_spark
        self._master, self._remote = master, remote
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def open(self) -> Engine:
        with self._lock:
            if self._engine is None:
                from airflow_provider_viewdf.engine.engine import Engine
                from airflow_provider_viewdf.engine.sessions import configure_session, open_session

                if self._spark is not None:
                    spark = self._spark
                elif self._open_spark is not None:
                    spark = self._open_spark()
                else:
                    spark = open_session(master=self._master, remote=self._remote)
                configure_session(spark)
                self._engine = Engine(spark, self._files.root)
            return self._engine

    def release(self) -> None:
        if self._engine is None:
            return
        self._engine.release()
        if self._is_our_remote:
            # Nobody else can come by this session; left open, it would hold up the end of the process if its server ends first.
            self._engine.spark.stop()
            self._engine = None

    @property
    def _is_our_remote(self) -> bool:
        return self._remote is not None and self._spark is None and self._open_spark is None
