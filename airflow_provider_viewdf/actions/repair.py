"""Repair: find parts whose files are not what was written, and get their rows back from what they were made from.

The part of a view is retired first, as gc does with parts that nothing reads: it stays what it is, but for its rows. Computed
again with the same content, it keeps its version, and nothing that reads it is stale. A part of a stream is marked as lost; the
batches that brought its rows have to be loaded again, and the part is whole when all of them have been.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from airflow_provider_viewdf.actions.look import look_at_parts
from airflow_provider_viewdf.actions.refresh import refresh_parts
from airflow_provider_viewdf.actions.workbench import Known, Workbench
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.definitions import Column, Definition, fold
from airflow_provider_viewdf.engine.engine import BATCH_COLUMN, InputTable
from airflow_provider_viewdf.engine.external_files import ExternalFiles
from airflow_provider_viewdf.engine.part_checks import find_damage
from airflow_provider_viewdf.errors import StepFailedError, UsageError, ViewDFError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import DamagedPart, RepairReport
from airflow_provider_viewdf.versions import LOST, Move, PartVersion, StaleRange, directory_of

REASON = "its files were damaged"
BY_PRESENT = "by the present definition; the earlier one that had made it is gone"


def repair_parts(bench: Workbench, tables: Sequence[str], *, deep: bool, dry_run: bool) -> RepairReport:
    started = time.monotonic()
    if not bench.files.is_there:
        raise UsageError(
            f"There is nothing at {bench.files.root}: is the disk or the share there? Nothing was taken for damaged."
        )
    known = bench.known()
    chosen = [known.find(name) for name in tables] if tables else list(known.definitions.values())
    damaged: dict[str, dict[int, DamagedPart]] = {}
    checked = 0
    # Streams before the views that are computed from them.
    for definition in sorted(chosen, key=lambda item: item.kind == "view"):
        if definition.is_partitioned:
            versions = _read_versions(bench, definition)
            checked += len(versions)
            if found := _check(bench, definition, versions, deep=deep):
                damaged[fold(definition.name)] = found
    if not dry_run:
        for key in list(damaged):
            definition = known.find(key)
            repair = _repair_view if definition.kind == "view" else _repair_stream
            damaged[key] = repair(bench, known, definition, damaged[key])
    everything = tuple(item for parts in damaged.values() for _, item in sorted(parts.items()))
    return RepairReport(checked, everything, time.monotonic() - started)


def _read_versions(bench: Workbench, definition: Definition) -> list[PartVersion]:
    with bench.catalog.snapshot() as reader:
        versions = reader.current_versions(definition.name)
    return [version for version in versions if version.has_files or version.is_lost or version.files]


def _check(
    bench: Workbench, definition: Definition, versions: Sequence[PartVersion], *, deep: bool
) -> dict[int, DamagedPart]:
    if definition.is_external:
        problems = _check_external(bench, definition, versions)
    else:
        extra = (Column(BATCH_COLUMN, "string"),) if definition.kind == "stream" else ()
        whole = [version for version in versions if not version.is_lost]
        problems = {version.index: "its rows are lost" for version in versions if version.is_lost}
        problems |= find_damage(bench.files, whole, (*definition.columns, *extra))
        if deep:
            rest = [version for version in whole if version.index not in problems]
            problems |= _compare_digests(bench, definition, rest)
    partitioning = definition.partitioning
    return {
        index: DamagedPart(definition.name, index, partitioning.start_of(index), problem, "found")
        for index, problem in problems.items()
    }


def _check_external(bench: Workbench, definition: Definition, versions: Sequence[PartVersion]) -> dict[int, str]:
    """Files that others wrote, by their names, sizes and times."""
    files = ExternalFiles(definition, bench.files)
    files.forget_listings()
    problems: dict[int, str] = {}
    for version in versions:
        there = set(files.find(version.index, datetime.now(UTC)).files)
        if gone := [file.name for file in version.files if file not in there]:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            problems[version.index] = f"{version.location}/{gone[0]}{more} is gone or has changed"
    return problems


def _compare_digests(bench: Workbench, definition: Definition, versions: Sequence[PartVersion]) -> dict[int, str]:
    engine = bench.open_engine()
    problems: dict[int, str] = {}
    for version in versions:
        table = InputTable(definition.name, definition.columns, ((version.index, version.location),))
        try:
            if engine.read_digest(table) != version.digest:
                problems[version.index] = f"{directory_of(version.location)} has other rows than were written"
        except StepFailedError as error:
            problems[version.index] = str(error).partition(". This finds and repairs")[0]
    return problems


def _repair_stream(
    bench: Workbench, known: Known, definition: Definition, damaged: Mapping[int, DamagedPart]
) -> dict[int, DamagedPart]:
    parts = PartSet.of_indexes(damaged)
    if definition.is_external:
        return _look_again(bench, definition, damaged, parts)
    with bench.catalog.snapshot() as reader:
        versions = reader.current_versions(definition.name, parts)
        remedies = {version.index: _name_batches(bench, reader, definition, version) for version in versions}
    moves = [Move(version, LOST) for version in versions if not version.is_lost]
    bench.catalog.relocate(moves, generation=known.generation)
    return {index: replace(item, outcome="load again", remedy=remedies[index]) for index, item in damaged.items()}


def _name_batches(bench: Workbench, reader: CatalogReader, definition: Definition, version: PartVersion) -> str:
    """The batches whose rows of a part have yet to be loaded again."""
    brought = reader.batches_of_parts(definition.name, PartSet.of_indexes([version.index])).get(version.index, {})
    place = directory_of(version.location) if version.is_lost else ""
    present = bench.open_engine().digest_batches(definition.columns, place) if place else {}
    texts = []
    for batch_id, digest in sorted(brought.items()):
        if present.get(batch_id) != digest:
            batch = reader.batch(definition.name, batch_id)
            texts.append(f"batch {batch_id} ({batch.source})" if batch is not None else f"batch {batch_id}")
    return ", ".join(texts)


def _look_again(
    bench: Workbench, definition: Definition, damaged: Mapping[int, DamagedPart], parts: PartSet
) -> dict[int, DamagedPart]:
    try:
        result = look_at_parts(bench, definition.name, parts, now=None, lookback=0)
    except ViewDFError as error:
        return {index: replace(item, outcome="left", remedy=str(error)) for index, item in damaged.items()}
    remedy = f"put the files back, or say that it is right: viewdf declare-empty {definition.name} --at"
    return {
        index: replace(item, outcome="registered")
        if index in result.changed
        else replace(item, outcome="left", remedy=f"{remedy} {definition.partitioning.format(index)}")
        for index, item in damaged.items()
    }


def _repair_view(
    bench: Workbench, known: Known, definition: Definition, damaged: Mapping[int, DamagedPart]
) -> dict[int, DamagedPart]:
    parts = PartSet.of_indexes(damaged)
    with bench.catalog.snapshot() as reader:
        given = reader.parts_made_otherwise(definition.name, definition.digest) & parts
        versions = reader.current_versions(definition.name, parts)
    bench.catalog.retire_versions(versions)
    ranges = [StaleRange(definition.name, item, REASON) for item in parts.ranges]
    bench.catalog.mark_stale(ranges, generation=known.generation)
    outcomes = _recompute(bench, definition, damaged, parts, {v.index: v for v in versions})
    return {
        index: replace(item, remedy=BY_PRESENT) if index in given and item.outcome != "left" else item
        for index, item in outcomes.items()
    }


def _recompute(
    bench: Workbench,
    definition: Definition,
    damaged: Mapping[int, DamagedPart],
    parts: PartSet,
    before: Mapping[int, PartVersion],
) -> dict[int, DamagedPart]:
    reasons: dict[int, str] = {}
    try:
        _refresh(bench, definition, parts, reasons)
    except ViewDFError:
        # One part that cannot be computed must not keep the others from it.
        for index in parts:
            try:
                _refresh(bench, definition, PartSet.of_indexes([index]), reasons)
            except ViewDFError as error:
                reasons[index] = str(error)
    with bench.catalog.snapshot() as reader:
        after = {version.index: version for version in reader.current_versions(definition.name, parts)}
    outcomes: dict[int, DamagedPart] = {}
    for index in parts:
        if after[index].is_retired:
            reason = reasons.get(index, "it could not be computed; refresh it")
            outcomes[index] = replace(damaged[index], outcome="left", remedy=reason)
        elif after[index].version == before[index].version:
            outcomes[index] = replace(damaged[index], outcome="restored")
        else:
            outcomes[index] = replace(damaged[index], outcome="recomputed")
    return outcomes


def _refresh(bench: Workbench, definition: Definition, parts: PartSet, reasons: dict[int, str]) -> None:
    report = refresh_parts(
        bench,
        [definition.name],
        lambda snapshot, bounds: {definition.name: parts},
        dry_run=False,
        on_progress=None,
    )
    for item in (*report.blocked, *report.skipped):
        if fold(item.view) == fold(definition.name):
            reasons.update(dict.fromkeys(item.parts & parts, item.reason))
