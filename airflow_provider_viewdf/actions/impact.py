"""Say what would have to be computed if parts changed. Nothing is changed for it."""

from __future__ import annotations

from datetime import datetime

from airflow_provider_viewdf.actions.workbench import Workbench, read_snapshot
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.parts import PartSet, format_time
from airflow_provider_viewdf.planning.causes import explain_groups, find_impact, suppose
from airflow_provider_viewdf.reports import Impact


def report_impact(bench: Workbench, table: str, at: datetime, until: datetime | None) -> Impact:
    """Of the part at a time, or of every part that overlaps [at, until)."""
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        definition = known.find(table)
        if not definition.is_partitioned:
            raise UsageError(
                f"{definition.name} is a dimension table and has no parts; name a table with parts, or a view."
            )
        snapshot = read_snapshot(reader, known, known.definitions)
    if until is None:
        index = definition.partitioning.index_at(at)
        parts = PartSet.between(index, index)
    else:
        span = definition.partitioning.parts_within(at, until)
        if span is None:
            raise UsageError(f"until must be later than at: {format_time(until)} is not later than {format_time(at)}.")
        parts = PartSet((span,))
    groups = find_impact(snapshot, definition.name, parts)
    lines = explain_groups(groups, known.definitions, suppose(snapshot, definition.name, parts).rule)
    return Impact(definition.name, parts, groups, tuple(lines))
