"""Look ahead: what of a view comes next that is not up to date."""

from __future__ import annotations

from airflow_provider_viewdf.actions.refresh import begin_agenda
from airflow_provider_viewdf.actions.workbench import Workbench
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import LATEST, PartSet
from airflow_provider_viewdf.planning import Bounds, Snapshot, ask_for_stale


def find_next_due(bench: Workbench, view: str, after: int, *, only_these: bool = False) -> int | None:
    """The first part after `after` that a refresh of the view's later parts would compute, if everything before changes."""
    later = PartSet.between(after + 1, LATEST)

    def ask(snapshot: Snapshot, bounds: Bounds) -> dict[str, PartSet]:
        return {view: ask_for_stale(snapshot, bounds, view) & later}

    _, agenda = begin_agenda(bench, [view], ask, only_these=only_these)
    while (step := agenda.next()) is not None:
        if fold(step.view) == fold(view) and step.index > after:
            return step.index
        agenda.assume_changed(step)
    return None
