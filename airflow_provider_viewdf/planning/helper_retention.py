"""Which parts of helper views no update will read any more: from the references, and from how late rows may be."""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_viewdf.parts import EARLIEST, LATEST
from airflow_provider_viewdf.planning.snapshot import Snapshot, ancestors_of, readers_of

# How late rows may be if a view does not say RETAIN.
DEFAULT_RETAIN_SECONDS = 7 * 86400


def find_horizons(snapshot: Snapshot, helpers: Collection[str]) -> dict[str, int]:
    """By folded name of a helper view: the oldest part that is still needed."""
    oldest: dict[str, int] = {}
    for key, definition in snapshot.definitions.items():
        if definition.kind == "view" and key not in helpers:
            existing = snapshot.existing_parts(key)
            retain = definition.retain_seconds or DEFAULT_RETAIN_SECONDS
            # The parts whose rows may still come late, and all newer ones. A view without parts will begin anywhere.
            late = -(-retain // definition.length_seconds)
            oldest[key] = existing.last - late if existing else EARLIEST
    horizons = {key: _find_end_of_archives(snapshot, key) for key in helpers}
    # Helper views read each other, never in a circle but for their own past.
    for _ in range(len(helpers) + 1):
        for key in helpers:
            horizons[key] = min([horizons[key], *_needed_by_readers(snapshot, key, oldest | horizons)])
    return {key: _step_back(snapshot, key, horizon) for key, horizon in horizons.items() if EARLIEST < horizon < LATEST}


def _find_end_of_archives(snapshot: Snapshot, key: str) -> int:
    """From which part on a helper view that reads its own past cannot be restored once it is retired; LATEST if it can.

    To restore such a part is to go back to the first one, which takes rows that RETAIN on a table or view lets go of.
    """
    helper = snapshot.definitions[key]
    if not any(reference.table.lower() == key for reference in helper.references):
        return LATEST
    ends = [LATEST]
    for name in ancestors_of(snapshot.definitions, [key]):
        definition, existing = snapshot.definitions[name], snapshot.existing_parts(name)
        if definition.retain_seconds or name in snapshot.archived:
            kept = snapshot.archived.get(name, existing.first if existing else EARLIEST)
            is_bounded = kept > EARLIEST
            ends.append(
                helper.partitioning.index_at(definition.partitioning.start_of(kept)) if is_bounded else EARLIEST
            )
    return min(ends)


def _needed_by_readers(snapshot: Snapshot, key: str, oldest: dict[str, int]) -> list[int]:
    needed = []
    for view, reference, _ in readers_of(snapshot.definitions, key):
        reader = view.name.lower()
        if reader == key:
            continue
        begin = oldest.get(reader, EARLIEST)
        if begin == LATEST:
            continue
        needed.append(EARLIEST if begin == EARLIEST else reference.low(begin))
    return needed


def _step_back(snapshot: Snapshot, key: str, horizon: int) -> int:
    """The parts that the oldest one reads of the view's own past."""
    own = [
        reference.low(horizon)
        for view, reference, _ in readers_of(snapshot.definitions, key)
        if view.name.lower() == key
    ]
    return min([horizon, *own])
