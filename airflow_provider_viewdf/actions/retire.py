"""Retire: archive the parts that are older than their table's RETAIN. Their files are left to gc."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_viewdf.actions.workbench import Workbench, read_snapshot
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import LATEST, PartSet
from airflow_provider_viewdf.planning import Bounds
from airflow_provider_viewdf.planning.retention import find_retention
from airflow_provider_viewdf.reports import Archived, RetireReport


def retire_parts(bench: Workbench, tables: Sequence[str]) -> RetireReport:
    found: list[Archived] = []
    known = bench.known()
    for definition in [known.find(name) for name in tables] if tables else list(known.definitions.values()):
        key = fold(definition.name)
        if not definition.retain_seconds:
            continue
        if definition.location:
            found.append(
                Archived(definition.name, PartSet(), "its files were written by others, and are theirs to remove")
            )
            continue
        with bench.catalog.snapshot() as reader:
            known = bench.read_known(reader)
            # Anew for each table: what is archived of one is no longer read by the parts of another.
            snapshot = read_snapshot(reader, known, known.definitions)
        retention = find_retention(snapshot, Bounds(snapshot), key)
        if retention is None:
            continue
        fresh = snapshot.existing_parts(key) - PartSet.between(retention.before, LATEST) - snapshot.archived_parts(key)
        if fresh:
            bench.catalog.archive(
                definition.name,
                retention.before,
                generation=known.generation,
                produced_by=str(bench.produced_by),
            )
            reach("retire: archived")
        if fresh or retention.held_because:
            found.append(Archived(definition.name, fresh, retention.held_because))
    return RetireReport(tuple(found))
