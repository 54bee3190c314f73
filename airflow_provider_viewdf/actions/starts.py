"""STARTING LATEST: a view begins with the newest part that all its sources have, as soon as they have one."""

from __future__ import annotations

from airflow_provider_viewdf.actions.workbench import Known, Workbench, read_snapshot
from airflow_provider_viewdf.errors import ConflictError
from airflow_provider_viewdf.parts import LATEST
from airflow_provider_viewdf.planning import Bounds, Snapshot


def find_latest_starts(known: Known, snapshot: Snapshot) -> dict[str, int]:
    """By folded name: where views begin that are defined with STARTING LATEST and have no start yet."""
    bounds = Bounds(snapshot)
    found: dict[str, int] = {}
    for key, definition in known.definitions.items():
        if definition.starting_latest and known.records[key].start_index is None:
            last = bounds.last(key)
            if last is not None and last < LATEST:
                found[key] = last
    return found


def settle_latest_starts(bench: Workbench) -> None:
    """Write down the starts that can be told now; from then on they stay."""
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        if not any(item.starting_latest for item in known.definitions.values()):
            return
        starts = find_latest_starts(known, read_snapshot(reader, known, known.definitions))
    generation = known.generation
    try:
        for key, start in starts.items():
            generation = bench.catalog.set_start(key, start, generation=generation)
    except ConflictError:
        # Someone else settled it at the same moment, or changed definitions: look again.
        settle_latest_starts(bench)
