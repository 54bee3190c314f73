"""Refresh: bring parts up to date, in the order of the agenda, each published before the next begins."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_provider_viewdf.actions.leases import hold_lease
from airflow_provider_viewdf.actions.starts import find_latest_starts, settle_latest_starts
from airflow_provider_viewdf.actions.workbench import Known, Workbench, dimension_table, input_table, read_snapshot
from airflow_provider_viewdf.compiler import CompiledPart, compile_part
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.engine.engine import InputTable
from airflow_provider_viewdf.errors import CatalogUnavailableError, ConflictError, QueryRefusedError, StepFailedError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Agenda, Bounds, Snapshot, Step
from airflow_provider_viewdf.planning.snapshot import ancestors_of
from airflow_provider_viewdf.reports import PartsSetAside, RefreshReport, StepReport
from airflow_provider_viewdf.versions import ContentDigest, InputRange, PartVersion, Publication, Published, StaleRange

logger = logging.getLogger("airflow_provider_viewdf")

Ask = Callable[[Snapshot, Bounds], Mapping[str, PartSet]]
OnProgress = Callable[[StepReport, int, int], None]

ATTEMPTS = 5
BATCH_LIMIT = 100

ASKED_TOO_EARLY = "asked for before its history was loaded"
ASKED_INCOMPLETE = "asked for before everything it reads was there"


def refresh_parts(
    bench: Workbench,
    views: Sequence[str],
    ask: Ask,
    *,
    dry_run: bool,
    on_progress: OnProgress | None,
    only_these: bool = False,
    batch_limit: int = BATCH_LIMIT,
) -> RefreshReport:
    """Bring parts of these views up to date. `ask` says which, given the state that the refresh begins with.

    `only_these`: compute no other views but those generated for them; what reads anything else that is not up to date is
    blocked, and remembered, so that it is due when that is there. Up to `batch_limit` parts of a view that does not read its
    own past are computed at once.
    """
    if dry_run:
        return _refresh(bench, views, ask, True, on_progress, only_these, batch_limit)
    with bench.at_work() as working:
        return _refresh(working, views, ask, False, on_progress, only_these, batch_limit)


def _refresh(
    bench: Workbench,
    views: Sequence[str],
    ask: Ask,
    dry_run: bool,
    on_progress: OnProgress | None,
    only_these: bool,
    batch_limit: int,
) -> RefreshReport:
    from airflow_provider_viewdf.actions.refresh_batch import BatchRunner

    started = time.monotonic()
    reports: list[StepReport] = []
    for attempt in range(ATTEMPTS):
        try:
            if not dry_run:
                settle_latest_starts(bench)
            known, agenda = begin_agenda(bench, views, ask, only_these=only_these)
            runner = BatchRunner(bench, known, agenda, _run_step)
            while steps := agenda.next_group(batch_limit):
                done = [_plan_step(bench, known, agenda, step) for step in steps] if dry_run else runner.run(steps)
                for report in done:
                    reports.append(report)
                    if on_progress is not None:
                        on_progress(report, len(reports), len(reports) + agenda.remaining)
            if not dry_run:
                _remember_skipped(bench, known, agenda.skipped)
                if only_these:
                    _remember_incomplete(bench, known, agenda, views)
        except (ConflictError, CatalogUnavailableError) as conflict:
            # Somebody changed definitions meanwhile, or the database was restarted: what is done is done, the rest is
            # planned anew.
            if attempt == ATTEMPTS - 1:
                raise
            logger.info("%s", conflict)
        else:
            skipped = (*agenda.skipped, *agenda.archived)
            return RefreshReport(tuple(reports), skipped, agenda.blocked, time.monotonic() - started)
    raise AssertionError("unreachable")


def begin_agenda(bench: Workbench, views: Sequence[str], ask: Ask, *, only_these: bool = False) -> tuple[Known, Agenda]:
    """What there is to do now, and the definitions that this is based on."""
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        keys = [fold(known.find_view(name).name) for name in views]
        snapshot = read_snapshot(reader, known, ancestors_of(known.definitions, keys))
        if any(item.starting_latest for item in known.definitions.values()):
            everything = read_snapshot(reader, known, known.definitions)
            snapshot = replace(snapshot, starts={**snapshot.starts, **find_latest_starts(known, everything)})
    asked = {fold(name): parts for name, parts in ask(snapshot, Bounds(snapshot)).items()}
    own = set(keys)
    generated = {name for name, item in known.definitions.items() if own & {fold(owner) for owner in item.owners}}
    return known, Agenda(snapshot, asked, own | generated if only_these else None)


def _remember_skipped(bench: Workbench, known: Known, skipped: Sequence[PartsSetAside]) -> None:
    """Runs come in any order: a part that is asked for before its history is loaded is due as soon as it is."""
    _mark_due(bench, known, [(item.view, item.parts) for item in skipped], ASKED_TOO_EARLY)


def _remember_incomplete(bench: Workbench, known: Known, agenda: Agenda, views: Sequence[str]) -> None:
    """Nobody may ask again for a part that lacks something now: it is due as soon as that is there.

    Parts that exist are left out. Whether they are stale is known, or shows when what they read has been computed.
    """
    own = {fold(name) for name in views}
    found = [
        (item.view, item.parts - agenda.snapshot.existing_parts(fold(item.view)))
        for item in agenda.blocked
        if fold(item.view) in own
    ]
    _mark_due(bench, known, found, ASKED_INCOMPLETE)


def _mark_due(bench: Workbench, known: Known, found: Sequence[tuple[str, PartSet]], reason: str) -> None:
    ranges = [StaleRange(view, span, reason) for view, parts in found for span in parts.ranges]
    if ranges:
        bench.catalog.mark_stale(ranges, generation=known.generation)


def _plan_step(bench: Workbench, known: Known, agenda: Agenda, step: Step) -> StepReport:
    agenda.assume_changed(step)
    time_of_part = known.find(step.view).partitioning.start_of(step.index)
    return StepReport(step.view, step.index, time_of_part, step.rule, step.reason, "planned", cause=step.cause)


def _run_step(bench: Workbench, known: Known, agenda: Agenda, step: Step) -> StepReport | None:
    """Compute and publish one part; None if someone else has done it meanwhile."""
    definition = known.find(step.view)
    started = time.monotonic()
    for attempt in range(ATTEMPTS):
        with hold_lease(bench.catalog, step.view, step.index):
            reach("refresh: leased")
            task = _prepare(bench, known, agenda, step)
            if task is None:
                with bench.catalog.snapshot() as reader:
                    stale = reader.stale_ranges()
                agenda.record(step, stale)
                return None
            try:
                published = _compute(bench, known, agenda, step, task)
            except ConflictError as conflict:
                logger.info("%s Trying again.", conflict)
                if attempt == ATTEMPTS - 1:
                    raise
                continue
        agenda.record(step, published.stale)
        version = published.version
        return StepReport(
            step.view,
            step.index,
            definition.partitioning.start_of(step.index),
            step.rule,
            step.reason,
            "published" if published.is_changed else "kept",
            version.rows,
            version.version,
            time.monotonic() - started,
            describe_inputs(task.versions),
        )
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What a step reads, and the version of its part that it replaces."""

    inputs: tuple[InputRange, ...]
    versions: tuple[PartVersion, ...]
    inputs_digest: str
    replaces: int | None


@dataclass(frozen=True, slots=True)
class _Task(StepInputs):
    """A step with everything read from the catalog that it needs."""

    compiled: CompiledPart


def _prepare(bench: Workbench, known: Known, agenda: Agenda, step: Step) -> _Task | None:
    definition = known.find(step.view)
    compiled = compile_part(definition, step.rule, step.index, known.definitions, agenda.bounds.first)
    # The whole reach: a part that comes to exist in it meanwhile is a change of what should have been read.
    inputs = tuple(InputRange(item.table, item.reach.low, item.reach.high) for item in compiled.inputs)
    with bench.catalog.snapshot() as reader:
        if reader.generation != known.generation:
            raise ConflictError(
                f"Definitions changed while {definition.describe_part(step.index)} was to be computed. "
                "Nothing was written; refresh again."
            )
        current = reader.current_versions(step.view, PartSet.between(step.index, step.index))
        if current and not is_due(reader.stale_ranges(step.view), step, current[0]):
            return None
        versions, inputs_digest = reader.read_inputs(inputs)
    return _Task(inputs, tuple(versions), inputs_digest, current[0].version if current else None, compiled)


def is_due(stale: Sequence[StaleRange], step: Step, current: PartVersion) -> bool:
    """Whether a part has to be computed, given what of its view is stale."""
    return current.is_retired or current.rule != step.rule or any(step.index in item.parts for item in stale)


def _compute(bench: Workbench, known: Known, agenda: Agenda, step: Step, task: _Task) -> Published:
    definition = known.find(step.view)
    location = bench.new_location(definition, step.index, task.replaces)
    try:
        digest = bench.open_engine().compute(
            task.compiled.sql,
            input_tables(bench, step.view, task.compiled, known.definitions, task.versions),
            [dimension_table(known.find(name)) for name in task.compiled.dimensions],
            definition.columns,
            location,
        )
    except (StepFailedError, QueryRefusedError) as error:
        if version := bench.find_vanished(task.versions):
            raise tell_vanished(definition, version) from None
        raise StepFailedError(
            f"{definition.describe_part(step.index)} could not be computed by {step.rule.upper()}: {error}"
        ) from None
    reach("refresh: computed")
    publication = make_publication(definition, agenda, step, task, location if digest.rows else "", digest)
    try:
        if version := bench.find_vanished(task.versions):
            raise tell_vanished(definition, version)
        published = bench.catalog.publish(
            [publication],
            generation=known.generation,
            produced_by=str(bench.produced_by),
            writer=bench.writer_token,
        )[0]
    except ConflictError:
        bench.files.delete(location)
        raise
    # After any other error nobody knows whether it was published: gc finds what was not.
    reach("refresh: published")
    if published.version.location != location:
        bench.files.delete(location)
    return published


def tell_vanished(definition: Definition, version: PartVersion) -> ConflictError:
    """What was computed while gc removed files of it may lack their rows."""
    return ConflictError(
        f"The files of {version.table}[{version.index}] were removed while {definition.name} was computed from them. "
        "Nothing was written; try again."
    )


def make_publication(
    definition: Definition, agenda: Agenda, step: Step, task: StepInputs, location: str, digest: ContentDigest
) -> Publication:
    """A computed part, for the catalog. A part without rows has no location."""
    number = (task.replaces or 0) + 1
    change = f"v{task.replaces} -> v{number}" if task.replaces else "new"
    return Publication(
        table=definition.name,
        index=step.index,
        replaces=task.replaces,
        location=location,
        digest=digest,
        definition_digest=definition.digest,
        inputs=task.inputs,
        inputs_digest=task.inputs_digest,
        rule=step.rule,
        stale=agenda.bounds.stale_because(
            definition.name,
            PartRange(step.index, step.index),
            f"{definition.name}[{step.index}] changed ({change})",
        ),
    )


def input_tables(
    bench: Workbench,
    view: str,
    compiled: CompiledPart,
    definitions: Mapping[str, Definition],
    versions: Sequence[PartVersion],
) -> list[InputTable]:
    """The inputs of a view's compiled statement, over the files of these versions. Each part must be among them."""
    by_part = {(fold(version.table), version.index): version for version in versions}
    tables = []
    for item in compiled.inputs:
        key = fold(item.table)
        for index in item.parts:
            if (key, index) not in by_part or by_part[key, index].has_lost_rows:
                raise ConflictError(
                    f"{definitions[key].describe_part(index)} was there when the refresh was planned, and is gone. "
                    "Nothing was written; refresh again."
                )
        found = [by_part[key, index] for index in item.parts]
        has_part_column = item.has_part_column
        table = input_table(bench, definitions[key], item.name, found, has_part_column=has_part_column, reader=view)
        tables.append(table)
    return tables


def describe_inputs(versions: Sequence[PartVersion], longest: int = 8) -> tuple[str, ...]:
    """The inputs as a person wants to see them: `Helper[23667844] v2`, or a range with how many parts it has."""
    texts: list[str] = []
    tables = dict.fromkeys(version.table for version in versions)
    for table in tables:
        mine = [version for version in versions if version.table == table]
        if len(mine) <= longest:
            texts += [f"{table}[{version.index}] v{version.version}" for version in mine]
        else:
            parts = PartSet.of_indexes(version.index for version in mine)
            texts.append(f"{table}[{parts}] ({len(mine)} parts, up to v{max(version.version for version in mine)})")
    return tuple(texts)
