"""Roll up: put the rows of many small parts into few files. Nothing but the place of the rows changes.

Files first, then one transaction. Whoever reads by an older state of the catalog finds the old files until gc removes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta

from airflow_provider_viewdf.actions.workbench import Known, Workbench
from airflow_provider_viewdf.definitions import Column, Definition
from airflow_provider_viewdf.engine.engine import BATCH_COLUMN
from airflow_provider_viewdf.engine.shared_files import name_shared, write_shared
from airflow_provider_viewdf.errors import QueryRefusedError, StepFailedError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import Partitioning, PartRange, PartSet
from airflow_provider_viewdf.reports import RolledUp, RollUpReport
from airflow_provider_viewdf.versions import Move, PartVersion, directory_of

# Larger parts are no small files, and gain nothing.
MOST_ROWS_OF_A_PART = 1_000_000

CHANGED = "they were changed meanwhile"


def roll_up_parts(bench: Workbench, tables: Sequence[str], span: timedelta, older_than: timedelta) -> RollUpReport:
    """Roll up the parts of each span (a day, say) that ended longer before the end of the newest part than `older_than`."""
    started = time.monotonic()
    rolled: list[RolledUp] = []
    left: list[RolledUp] = []
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        chosen = [known.find(name) for name in tables] if tables else list(known.definitions.values())
        groups = [
            (definition, group)
            for definition in chosen
            if definition.is_partitioned and not definition.location
            for group in find_groups(definition, reader.current_versions(definition.name), span, older_than)
        ]
    if groups:
        with bench.at_work() as working:
            for definition, group in groups:
                result = _roll_up(working, known, definition, group)
                (left if result.left_because else rolled).append(result)
    return RollUpReport(tuple(rolled), tuple(left), time.monotonic() - started)


def find_groups(
    definition: Definition, versions: Sequence[PartVersion], span: timedelta, older_than: timedelta
) -> Iterator[list[PartVersion]]:
    """The versions of each span that lie in more than one place."""
    if not versions or span.total_seconds() <= definition.length_seconds:
        return
    spans = Partitioning(int(span.total_seconds()))
    end = definition.partitioning.end_of(max(version.index for version in versions)) - older_than
    by_span: dict[int, list[PartVersion]] = {}
    for version in versions:
        if version.has_files and version.rows <= MOST_ROWS_OF_A_PART:
            number = spans.index_at(definition.partitioning.start_of(version.index))
            if spans.end_of(number) <= end:
                by_span.setdefault(number, []).append(version)
    for group in by_span.values():
        if len({directory_of(version.location) for version in group}) > 1:
            yield group


def _roll_up(bench: Workbench, known: Known, definition: Definition, group: Sequence[PartVersion]) -> RolledUp:
    parts = PartSet.of_indexes(version.index for version in group)
    rows = sum(version.rows for version in group)
    directory = name_shared(definition.name, PartRange(parts.first, parts.last), bench.new_name())
    extra = (Column(BATCH_COLUMN, "string"),) if definition.kind == "stream" else ()
    try:
        digests = write_shared(
            bench.open_engine(),
            definition.columns,
            extra,
            [(version.index, version.location) for version in group],
            rows,
            directory,
        )
    except (StepFailedError, QueryRefusedError):
        if not bench.find_vanished(group):
            raise
        return RolledUp(definition.name, parts, left_because=CHANGED)
    reach("roll up: written")
    wrong = [version.index for version in group if digests.get(version.index) != version.digest]
    if wrong:
        _delete(bench, directory)
        if bench.find_vanished(group):
            return RolledUp(definition.name, parts, left_because=CHANGED)
        found = definition.describe_parts(PartSet.of_indexes(wrong))
        return RolledUp(definition.name, parts, left_because=f"the rows of {found} are not those that were written")
    moves = [Move(version, f"{directory}#{version.index}") for version in group]
    # If this fails, nobody knows whether it was recorded: gc finds what was not.
    moved = bench.catalog.relocate(moves, generation=known.generation, writer=bench.writer_token)
    reach("roll up: moved")
    if not moved:
        _delete(bench, directory)
        return RolledUp(definition.name, parts, left_because=CHANGED)
    return RolledUp(definition.name, parts, rows)


def _delete(bench: Workbench, directory: str) -> None:
    bench.files.delete(directory)
    bench.files.delete_empty_directories(directory)
