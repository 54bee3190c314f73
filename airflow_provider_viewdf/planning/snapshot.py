"""What planning knows of the world: definitions, and which parts exist, are stale, or were made by INITIALIZE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_viewdf.definitions import Definition, PartReference, Query, fold
from airflow_provider_viewdf.parts import EARLIEST, PartSet
from airflow_provider_viewdf.versions import StaleRange


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a warehouse, by folded name. `starts` has the views that have a start.

    `archived` has the oldest part that is kept. Older ones count as existing, so that what is first and by which rule a part
    is made does not change when they are archived; but nobody can read them.
    `retired` are existing parts of helper views whose rows are gone; they are computed again if something reads them.
    """

    definitions: Mapping[str, Definition]
    existing: Mapping[str, PartSet]
    stale: Mapping[str, tuple[StaleRange, ...]] = field(default_factory=dict)
    initialized: Mapping[str, PartSet] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    archived: Mapping[str, int] = field(default_factory=dict)
    retired: Mapping[str, PartSet] = field(default_factory=dict)

    def archived_parts(self, name: str) -> PartSet:
        return PartSet.between(EARLIEST, self.archived[name] - 1) if name in self.archived else PartSet()

    def existing_parts(self, name: str) -> PartSet:
        return self.existing.get(name, PartSet())

    def stale_parts(self, name: str) -> PartSet:
        return PartSet.of(item.parts for item in self.stale.get(name, ()))


def views_of(definitions: Mapping[str, Definition]) -> list[str]:
    return [name for name, definition in definitions.items() if definition.kind == "view"]


def queries_of(definition: Definition) -> tuple[Query, ...]:
    if definition.initialize is None or definition.update is None:
        return ()
    return (definition.initialize, definition.update)


def ancestors_of(definitions: Mapping[str, Definition], names: Iterable[str]) -> set[str]:
    """Everything partitioned that these read, directly or not, and themselves."""
    found: set[str] = set()
    waiting = [fold(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [fold(reference.table) for reference in definitions[name].references]
    return found


def readers_of(definitions: Mapping[str, Definition], table: str) -> list[tuple[Definition, PartReference, bool]]:
    """The references to a table: the view, the reference, and whether it is one of the view's UPDATE."""
    key = fold(table)
    found: list[tuple[Definition, PartReference, bool]] = []
    for definition in definitions.values():
        for query, is_update in zip(queries_of(definition), (False, True), strict=False):
            found += [(definition, item, is_update) for item in query.references if fold(item.table) == key]
    return found


def descendants_of(definitions: Mapping[str, Definition], table: str) -> set[str]:
    """The views that read a table, directly or not."""
    found: set[str] = set()
    waiting = [fold(table)]
    while waiting:
        for view, _, _ in readers_of(definitions, waiting.pop()):
            if fold(view.name) not in found:
                found.add(fold(view.name))
                waiting.append(fold(view.name))
    return found
