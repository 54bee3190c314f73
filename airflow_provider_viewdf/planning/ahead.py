"""Which parts of a view could be computed right now, beyond those that are asked for."""

from __future__ import annotations

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning.agenda import Agenda
from airflow_provider_viewdf.planning.snapshot import Snapshot


def find_computable(snapshot: Snapshot, view: str, parts: PartSet, limit: int) -> PartSet:
    """Of these parts, the first `limit` that are not up to date and have everything they read, or can have it computed."""
    if limit < 1 or not parts:
        return PartSet()
    found: list[int] = []
    agenda = Agenda(snapshot, {fold(view): parts})
    while len(found) < limit and (step := agenda.next()) is not None:
        if fold(step.view) == fold(view):
            found.append(step.index)
        agenda.assume_changed(step)
    return PartSet.of_indexes(found) & parts
