"""For how long parts are kept: which of them may be archived, and which are still needed."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.parts import LATEST, PartSet, format_length
from airflow_provider_viewdf.planning.bounds import Bounds
from airflow_provider_viewdf.planning.reach import RULES, find_due, union_of_reads
from airflow_provider_viewdf.planning.snapshot import Snapshot, readers_of


@dataclass(frozen=True, slots=True)
class Retention:
    """The oldest part of a table to keep, and why that is older than its RETAIN asks for ("": it is not)."""

    before: int
    held_because: str = ""


def describe_retention(definition: Definition) -> str:
    if not definition.retain_seconds:
        return f"the rows of {definition.name} were kept for some time only"
    return f"{definition.name} keeps its parts for {format_length(definition.retain_seconds)} (RETAIN)"


def find_retention(snapshot: Snapshot, bounds: Bounds, name: str) -> Retention | None:
    """Which parts of a table its RETAIN lets go of; None if it has none, or nothing to let go of.

    Counted back from the newest part, so that a feed that stops loses nothing. A part stays for as long as a view is yet to
    read it: one of its parts is due, or is the next to come.
    """
    definition = snapshot.definitions[name]
    existing = snapshot.existing_parts(name)
    if not definition.retain_seconds or not existing:
        return None
    count = -(-definition.retain_seconds // definition.length_seconds)
    wanted = existing.last + 1 - count
    before, because = wanted, ""
    due = find_due(snapshot, bounds, [key for key, item in snapshot.definitions.items() if item.kind == "view"])
    for view, reference, is_update in readers_of(snapshot.definitions, name):
        key = fold(view.name)
        rule = RULES[1] if is_update else RULES[0]
        ahead = _find_ahead(snapshot, bounds, key, due[key]) & bounds.made_by(key, rule)
        reads = union_of_reads(reference, ahead)
        reads -= snapshot.archived_parts(name)
        if reads and reads.first < before:
            readers = PartSet.of(
                item for item in ahead.ranges if union_of_reads(reference, PartSet((item,))).first < before
            )
            before = reads.first
            because = f"{view.describe_part(readers.first)} is yet to read {definition.describe_part(before)}"
    if before <= snapshot.archived.get(name, existing.first) and not because:
        return None
    return Retention(max(before, snapshot.archived.get(name, existing.first)), because)


def _find_ahead(snapshot: Snapshot, bounds: Bounds, name: str, due: PartSet) -> PartSet:
    """The parts of a view that are due now, and the next one that it will have."""
    existing = snapshot.existing_parts(name)
    last = bounds.last(name)
    first = bounds.first(name)
    if first is None:
        return PartSet()
    newest = max(existing.last if existing else first - 1, min(last, LATEST - 1) if last is not None else first - 1)
    return (due & PartSet.between(first, newest)) | PartSet.between(newest + 1, newest + 1)
