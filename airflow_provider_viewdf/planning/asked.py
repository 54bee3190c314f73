"""What a refresh is about when nobody says more than the name of a view, or a span of time."""

from __future__ import annotations

from datetime import datetime

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartSet
from airflow_provider_viewdf.planning.bounds import Bounds
from airflow_provider_viewdf.planning.snapshot import Snapshot, ancestors_of


def ask_for_everything(snapshot: Snapshot, bounds: Bounds, name: str) -> PartSet:
    """Every part of a view over the time for which its tables have data, and as far beyond as these suffice."""
    definition = snapshot.definitions[fold(name)]
    asked = snapshot.existing_parts(fold(name))
    sources = [snapshot.definitions[key] for key in ancestors_of(snapshot.definitions, [name])]
    spans = [
        (table.partitioning.start_of(parts.first), table.partitioning.end_of(parts.last))
        for table in sources
        if table.kind == "stream" and (parts := snapshot.existing_parts(fold(table.name)))
    ]
    if spans:
        start, end = min(span[0] for span in spans), max(span[1] for span in spans)
        covered = definition.partitioning.parts_ending_within(start, end)
        asked |= PartSet((covered,)) if covered else PartSet()
    first, last = bounds.first(name), bounds.last(name)
    if first is not None and last is not None and last < LATEST:
        asked |= PartSet.between(first, last)
    asked -= snapshot.archived_parts(fold(name))
    start_index = snapshot.starts.get(fold(name))
    return asked if start_index is None else asked & PartSet.between(start_index, LATEST)


def ask_between(snapshot: Snapshot, bounds: Bounds, name: str, start: datetime | None, end: datetime | None) -> PartSet:
    """The parts of a view that overlap [start, end); an end that is not given is as far as there is anything."""
    partitioning = snapshot.definitions[fold(name)].partitioning
    if start is not None and end is not None:
        span = partitioning.parts_within(start, end)
        return PartSet((span,)) if span else PartSet()
    low = EARLIEST if start is None else partitioning.index_at(start)
    high = LATEST if end is None else partitioning.index_from(end) - 1
    return ask_for_everything(snapshot, bounds, name) & PartSet.between(low, high)


def ask_for_stale(snapshot: Snapshot, bounds: Bounds, name: str) -> PartSet:
    """What late data may have changed: the parts that exist, and those that were asked for before they were possible."""
    key = fold(name)
    stale = snapshot.existing_parts(key) | (snapshot.stale_parts(key) & bounds.domain(key))
    return stale - snapshot.archived_parts(key)
