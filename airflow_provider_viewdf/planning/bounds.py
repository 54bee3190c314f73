"""Where views begin and end, and by which rule each part is made."""

from __future__ import annotations

from functools import cached_property

from airflow_provider_viewdf.definitions import Definition, PartReference, Query, Rule, fold
from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartRange, PartSet
from airflow_provider_viewdf.planning.snapshot import Snapshot, readers_of, views_of
from airflow_provider_viewdf.versions import StaleRange


class Bounds:
    """First and last parts of everything in a snapshot.

    `first` of a table is its oldest existing part; of a view, the oldest part whose INITIALIZE has everything it
    reads. Both are None as long as there is no such part.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._definitions = snapshot.definitions
        self._firsts: dict[str, int | None] = {}
        self._update_begins: dict[str, int] = {}
        self._readers: dict[str, list[tuple[Definition, PartReference, bool]]] = {}

    def definition(self, name: str) -> Definition:
        return self._definitions[fold(name)]

    def first(self, name: str) -> int | None:
        key = fold(name)
        if key not in self._firsts:
            self._firsts[key] = self._find_first(self._definitions[key])
        return self._firsts[key]

    def _find_first(self, definition: Definition) -> int | None:
        existing = self._snapshot.existing_parts(fold(definition.name))
        if definition.kind == "stream":
            return existing.first if existing else None
        first = self._snapshot.starts.get(fold(definition.name), EARLIEST)
        for reference in definition.query_for("initialize").references:
            begin = self._begin(reference)
            if begin is None:
                return None
            first = max(first, begin)
        return first if first > EARLIEST else None

    def _begin(self, reference: PartReference, own_first: int | None = None) -> int | None:
        """The oldest part at which a reference lies at or after the first part of what it reads.

        Of a partial reference, its high end has to.
        """
        first = own_first if own_first is not None else self.first(reference.table)
        if first is None:
            return None
        end = reference.high if reference.is_partial else reference.low
        low, high = end.xs_at_least(first)
        return low if low <= high else None

    def update_begin(self, name: str) -> int:
        """The oldest part that UPDATE makes; LATEST if it makes none."""
        key = fold(name)
        if key not in self._update_begins:
            self._update_begins[key] = self._find_update_begin(self._definitions[key])
        return self._update_begins[key]

    def _find_update_begin(self, definition: Definition) -> int:
        first = self.first(definition.name)
        if first is None:
            return LATEST
        begin = first
        for reference in definition.query_for("update").references:
            own = first if fold(reference.table) == fold(definition.name) else None
            found = self._begin(reference, own)
            if found is None:
                return LATEST
            begin = max(begin, found)
        return begin

    def rule(self, name: str, index: int) -> Rule:
        return "update" if index >= self.update_begin(name) else "initialize"

    def query(self, name: str, index: int) -> Query:
        return self._definitions[fold(name)].query_for(self.rule(name, index))

    def reads(self, reference: PartReference, index: int) -> PartRange:
        """The parts that a reference reads for a part; what lies before the first part of the table is none of them."""
        return reference.reads_from(index, self.first(reference.table))

    def made_by(self, name: str, rule: Rule) -> PartSet:
        """Every part that a rule makes."""
        first, begin = self.first(name), self.update_begin(name)
        if first is None:
            return PartSet()
        return PartSet.between(begin, LATEST) if rule == "update" else PartSet.between(first, begin - 1)

    def domain(self, name: str) -> PartSet:
        """Every part that can ever exist."""
        first = self.first(name)
        return PartSet() if first is None else PartSet.between(first, LATEST)

    def last(self, name: str) -> int | None:
        """The newest part that does not reach beyond the last part of what it reads.

        None if there is none; LATEST if nothing that it reads ever ends.
        """
        return self._lasts[fold(name)]

    @cached_property
    def _lasts(self) -> dict[str, int | None]:
        lasts: dict[str, int | None] = {}
        views = views_of(self._definitions)
        for key, definition in self._definitions.items():
            if definition.kind == "stream":
                existing = self._snapshot.existing_parts(key)
                lasts[key] = existing.last if existing else None
            elif definition.kind == "view":
                lasts[key] = LATEST
        # Views that read each other's past bound each other: let the bounds sink until they stay.
        for _ in range(len(views) + 1):
            before = dict(lasts)
            for key in views:
                lasts[key] = self._find_last(self._definitions[key], lasts)
            if lasts == before:
                break
        return lasts

    def _find_last(self, definition: Definition, lasts: dict[str, int | None]) -> int | None:
        first, begin = self.first(definition.name), self.update_begin(definition.name)
        if first is None:
            return None
        updated = self._reach(definition, definition.query_for("update"), lasts)
        if updated is not None and updated >= begin:
            return updated
        initialized = self._reach(definition, definition.query_for("initialize"), lasts)
        return None if initialized is None or initialized < first else min(initialized, begin - 1)

    def _reach(self, definition: Definition, query: Query, lasts: dict[str, int | None]) -> int | None:
        reach = LATEST
        for reference in query.references:
            if fold(reference.table) == fold(definition.name):
                continue
            last = lasts.get(fold(reference.table))
            if last is None:
                return None
            low, high = reference.high.xs_at_most(last)
            if low > high:
                return None
            reach = min(reach, high)
        return reach

    def explain_first(self, name: str) -> str:
        """Why a view does not begin earlier."""
        definition = self.definition(name)
        first = self.first(name)
        for reference in definition.query_for("initialize").references:
            if self._begin(reference) == first and not reference.low.is_constant:
                read = self.definition(reference.table)
                begin = self.first(read.name)
                assert begin is not None
                return f"INITIALIZE reads {reference}, and {read.name} begins with {read.describe_part(begin)}"
        return "the view starts there"

    def explain_no_first(self, name: str) -> str:
        """Why a view has no first part."""
        definition = self.definition(name)
        for reference in definition.query_for("initialize").references:
            read = self.definition(reference.table)
            if self.first(read.name) is None:
                return f"INITIALIZE reads {reference}, and {read.name} has no first part yet"
            if self._begin(reference) is None:
                return f"INITIALIZE reads {reference}, which is before the first part of {read.name}"
        return "nothing says where the view begins: define it with STARTING '2015-01-01' or the like"

    def readers(self, table: str) -> list[tuple[Definition, PartReference, bool]]:
        """The references to a table: the view, the reference, and whether it is one of the view's UPDATE."""
        key = fold(table)
        if key not in self._readers:
            self._readers[key] = readers_of(self._definitions, key)
        return self._readers[key]

    def read_by(self, table: str, parts: PartRange) -> list[tuple[Definition, PartRange]]:
        """The parts of views that read any of these parts, by the rule that applies to them."""
        found: list[tuple[Definition, PartRange]] = []
        for view, reference, is_update in self.readers(table):
            span = reference.read_by(parts)
            if span is not None:
                allowed = self.made_by(view.name, "update" if is_update else "initialize")
                found += [(view, item) for item in (PartSet((span,)) & allowed).ranges]
        return found

    def stale_because(self, table: str, parts: PartRange, reason: str) -> tuple[StaleRange, ...]:
        """What becomes stale if these parts change."""
        return tuple(StaleRange(view.name, span, reason) for view, span in self.read_by(table, parts))
