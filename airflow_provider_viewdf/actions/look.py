"""Look at the files of an external stream, and register what is there: part versions without a copy, and without Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from airflow_provider_viewdf.actions.workbench import Known, Workbench, read_snapshot
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.engine.external_columns import check_columns
from airflow_provider_viewdf.engine.external_files import ExternalFiles, FoundPart
from airflow_provider_viewdf.errors import ConflictError, UsageError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import EARLIEST, PartSet
from airflow_provider_viewdf.planning import Bounds
from airflow_provider_viewdf.planning.snapshot import descendants_of
from airflow_provider_viewdf.reports import LookResult
from airflow_provider_viewdf.versions import PartVersion, Publication, StaleRange

ATTEMPTS = 5
MOST_PARTS = 1_000_000


def find_external(known: Known, table: str) -> Definition:
    definition = known.find(table)
    if not definition.is_external:
        raise UsageError(
            f"{definition.name} has no files of others to look at; only a stream with a LOCATION is external."
        )
    return definition


def choose_parts(bench: Workbench, table: str, start: datetime | None, end: datetime | None) -> PartSet:
    """The parts that overlap [start, end); by default from the oldest that is registered, up to now."""
    with bench.catalog.snapshot() as reader:
        definition = find_external(bench.read_known(reader), table)
        existing = reader.existing_parts(definition.name)
    partitioning = definition.partitioning
    if start is None and not existing:
        raise UsageError(f"No part of {definition.name} is registered yet; say from when on to look for its files.")
    low = existing.first if start is None else partitioning.index_at(start)
    until = datetime.now(UTC) if end is None else end
    span = partitioning.parts_within(partitioning.start_of(low), until)
    if span is None or (start is not None and end is not None and end <= start):
        since = partitioning.start_of(low) if start is None else start
        raise UsageError(
            f"There is nothing to look at from {since:%Y-%m-%dT%H:%M:%S} to {until:%Y-%m-%dT%H:%M:%S}; "
            "give a time and a later one."
        )
    return PartSet((span,))


def look_at_parts(bench: Workbench, table: str, parts: PartSet, *, now: datetime | None, lookback: int) -> LookResult:
    """Register those of the parts, and of the `lookback` parts before them, whose files are not what the catalog has."""
    started = time.monotonic()
    for attempt in range(ATTEMPTS):
        known = bench.known()
        definition = find_external(known, table)
        looked = parts | _find_earlier(parts, lookback)
        if len(looked) > MOST_PARTS:
            raise UsageError(
                f"These are {len(looked)} parts of {definition.name}, more than a million; look at fewer at a time."
            )
        files = ExternalFiles(definition, bench.files)
        # The versions are read before the files are listed: what somebody registers in between makes this attempt fail,
        # rather than be undone by an older list.
        with bench.catalog.snapshot() as reader:
            current = {version.index: version for version in reader.current_versions(definition.name, looked)}
            existing = reader.existing_parts(definition.name)
            archived_before = reader.archived_before(definition.name)
        if archived_before is not None:
            looked -= PartSet.between(EARLIEST, archived_before - 1)
        outcome = _look(definition, files, looked, parts, current, existing, now or datetime.now(UTC))
        reach("look: listed")
        if outcome.found:
            try:
                _publish(bench, definition, outcome, current)
                reach("look: published")
            except ConflictError:
                if attempt == ATTEMPTS - 1:
                    raise
                continue
        new = PartSet.of_indexes(outcome.found)
        before = PartSet.of_indexes(current)
        return LookResult(
            table=definition.name,
            looked=looked,
            registered=new - before,
            changed=new & before,
            missing=PartSet.of_indexes(outcome.missing),
            gone=PartSet.of_indexes(outcome.missing) & before,
            files=outcome.files,
            seconds=time.monotonic() - started,
        )
    raise AssertionError("unreachable")


def empty_parts_that_are_gone(bench: Workbench, table: str, parts: PartSet) -> PartSet:
    """Give the parts whose files are all gone a version without files, because somebody said that this is right."""
    for attempt in range(ATTEMPTS):
        definition = find_external(bench.known(), table)
        files = ExternalFiles(definition, bench.files)
        with bench.catalog.snapshot() as reader:
            current = {version.index: version for version in reader.current_versions(definition.name, parts)}
            existing = reader.existing_parts(definition.name)
        registered = PartSet.of_indexes(index for index, version in current.items() if version.files)
        outcome = _look(definition, files, registered, registered, current, existing, datetime.now(UTC))
        emptied = {index: FoundPart(files.directory_of(index), (), True) for index in outcome.without_files}
        if emptied:
            try:
                _publish(bench, definition, replace(outcome, found=emptied), current)
            except ConflictError:
                if attempt == ATTEMPTS - 1:
                    raise
                continue
        return PartSet.of_indexes(emptied)
    raise AssertionError("unreachable")


@dataclass(slots=True)
class _Outcome:
    """What a look found: the parts that are new or other than before, and those that are not there."""

    found: dict[int, FoundPart]
    missing: list[int]
    without_files: list[int]
    files: int = 0


def _find_earlier(parts: PartSet, lookback: int) -> PartSet:
    if lookback < 0:
        raise UsageError(f"lookback is a number of parts, not {lookback}.")
    return PartSet.between(parts.first - lookback, parts.first - 1) if parts and lookback else PartSet()


def _look(
    definition: Definition,
    files: ExternalFiles,
    looked: PartSet,
    asked: PartSet,
    current: Mapping[int, PartVersion],
    existing: PartSet,
    now: datetime,
) -> _Outcome:
    outcome = _Outcome({}, [], [])
    files.forget_listings()
    for index in looked:
        part = files.find(index, now)
        outcome.files += len(part.files)
        present = current.get(index)
        if not part.is_complete or (not part.files and not _may_be_empty(definition, index, asked, present, existing)):
            # What is registered without a file, or declared empty, is there: it has nothing that could be gone.
            if present is None or present.files:
                outcome.missing.append(index)
                if not part.files:
                    outcome.without_files.append(index)
        elif present is None or present.files != part.files:
            known = set(present.files) if present is not None else set()
            check_columns(definition, files, part, [item for item in part.files if item not in known])
            outcome.found[index] = part
    return outcome


def _may_be_empty(
    definition: Definition, index: int, asked: PartSet, present: PartVersion | None, existing: PartSet
) -> bool:
    """Whether a part that is complete and has no files is taken for an empty one."""
    if definition.complete_when:
        return True  # its writer says so
    if present is not None:
        return not present.files  # files that were there are gone; nobody said that this is right
    # Time alone makes no history: a look back finds no empty parts from before the stream's first.
    return index in asked or (bool(existing) and index > existing.first)


def _publish(bench: Workbench, definition: Definition, outcome: _Outcome, current: Mapping[int, PartVersion]) -> None:
    touched = PartSet.of_indexes(outcome.found)
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        if known.find(definition.name).digest != definition.digest:
            raise ConflictError(f"The definition of {definition.name} changed meanwhile; look again.")
        stale = _find_stale(reader, known, definition, touched)
    publications = [
        Publication(
            table=definition.name,
            index=index,
            replaces=current[index].version if index in current else None,
            location=part.directory if part.files else "",
            digest=part.digest,
            definition_digest=definition.digest,
            inputs=(),
            inputs_digest="",
            rule=None,
            stale=stale.get(index, ()),
            files=part.files,
        )
        for index, part in sorted(outcome.found.items())
    ]
    bench.catalog.publish(publications, generation=known.generation, produced_by=str(bench.produced_by))


def _find_stale(
    reader: CatalogReader, known: Known, definition: Definition, touched: PartSet
) -> dict[int, tuple[StaleRange, ...]]:
    """What becomes stale, for the first part of each run of parts; by the rules as they are once these parts are there."""
    key = fold(definition.name)
    names = descendants_of(known.definitions, definition.name)
    snapshot = read_snapshot(reader, known, known.definitions if names else [key])
    grown = {**snapshot.existing, key: snapshot.existing_parts(key) | touched}
    bounds = Bounds(replace(snapshot, existing=grown))
    return {
        run.low: bounds.stale_because(definition.name, run, f"new files in {definition.name}[{run}]")
        for run in touched.ranges
    }
