"""The agenda of a refresh: hands out the next step, and learns from each what it made stale."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from airflow_provider_viewdf.definitions import Rule, fold
from airflow_provider_viewdf.language import order_views
from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartRange, PartSet
from airflow_provider_viewdf.planning.bounds import Bounds
from airflow_provider_viewdf.planning.reach import (
    RULES,
    Missing,
    find_due,
    find_missing_loads,
    find_needed,
    find_restored,
    find_unsettled,
    spread_forwards,
)
from airflow_provider_viewdf.planning.retention import describe_retention
from airflow_provider_viewdf.planning.snapshot import Snapshot, ancestors_of
from airflow_provider_viewdf.reports import PartsSetAside
from airflow_provider_viewdf.versions import StaleRange

# How many times its limit a group is looked for: parts that wait for something lie between those that can be computed.
LOOK_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One part to compute: by which rule, and why. `cause` is the step before it that makes it necessary, if one does."""

    view: str
    index: int
    rule: Rule
    reason: str
    cause: tuple[str, int] | None = None


class Agenda:
    """The steps of a refresh in an order in which each finds its inputs up to date.

    `asked` are the parts wanted, by folded view name. What they read, and is not up to date, is included. A part that
    lacks something that must be loaded, or runs into another such part, is set aside. `computes`, if given, are the only
    views to compute: a part that reads a part of another view which is not up to date is set aside too.
    """

    def __init__(
        self, snapshot: Snapshot, asked: Mapping[str, PartSet], computes: Collection[str] | None = None
    ) -> None:
        self.snapshot = snapshot
        self.bounds = Bounds(snapshot)
        self._asked = asked
        self._names = ancestors_of(snapshot.definitions, asked)
        self._order = order_views(snapshot.definitions)
        everything = find_due(snapshot, self.bounds, self._names)
        unsettled = find_unsettled(snapshot, self.bounds, everything)
        self._due = everything
        self._needed = find_needed(self.bounds, unsettled, {name: self._possible(name, asked[name]) for name in asked})
        self._retired = find_restored(self.bounds, snapshot.retired, self._needed)
        for name, parts in self._retired.items():
            self._due[name] |= parts
            self._needed[name] |= parts
        self._computed = set(everything) if computes is None else {fold(name) for name in computes} & set(everything)
        self._waiting = {name: everything[name] & self._needed[name] for name in self._computed}
        self._existing = {name: snapshot.existing_parts(name) for name in self._names}
        self._stale = {name: list(snapshot.stale.get(name, ())) for name in self._names}
        self._causes: dict[str, tuple[str, int]] = {}
        self._ancestors = {name: ancestors_of(snapshot.definitions, [name]) for name in everything}
        # Views of which no full group was found, by the limit that it was looked for with, until something they read changes.
        self._held_up: dict[str, int] = {}
        self._blocked: dict[str, dict[int, tuple[str, Missing]]] = {name: {} for name in self._names}
        self._doubted: dict[str, PartSet] = {name: PartSet() for name in everything}
        self._doubts: list[tuple[str, PartSet, tuple[str, Missing]]] = []
        self.skipped = tuple(item for name in asked if (item := self._find_skipped(name, asked[name])))
        self.archived = tuple(item for name in asked if (item := self._find_archived(name, asked[name])))
        self._beyond = tuple(item for name in asked if (item := self._find_beyond(name, asked[name])))

    def _possible(self, name: str, asked: PartSet) -> PartSet:
        """Of the parts asked for, those that neither precede the view nor reach beyond what has been loaded."""
        first, last = self.bounds.first(name), self.bounds.last(name)
        return PartSet() if first is None or last is None else asked & PartSet.between(first, last)

    def _find_skipped(self, name: str, asked: PartSet) -> PartsSetAside | None:
        definition = self.snapshot.definitions[name]
        first = self.bounds.first(name)
        if first is None:
            if not asked or find_missing_loads(self.snapshot, self.bounds, name, asked):
                return None
            return PartsSetAside(definition.name, asked, self.bounds.explain_no_first(name))
        early = asked & PartSet.between(EARLIEST, first - 1)
        if not early:
            return None
        reason = f"before the view's first part, {definition.describe_part(first)}: {self.bounds.explain_first(name)}"
        return PartsSetAside(definition.name, early, reason)

    def _find_archived(self, name: str, asked: PartSet) -> PartsSetAside | None:
        """Parts asked for whose rows are no longer kept. They are neither computed again nor missing."""
        first = self.bounds.first(name)
        gone = asked & self.snapshot.archived_parts(name)
        gone &= PartSet.between(EARLIEST if first is None else first, LATEST)
        view = self.snapshot.definitions[name]
        return PartsSetAside(view.name, gone, f"archived: {describe_retention(view)}") if gone else None

    def _find_beyond(self, name: str, asked: PartSet) -> PartsSetAside | None:
        """Parts asked for that reach beyond what has been loaded."""
        first, last = self.bounds.first(name), self.bounds.last(name)
        late = asked & PartSet.between(
            max(EARLIEST if first is None else first, EARLIEST if last is None else last + 1), LATEST
        )
        if not late:
            return None
        missing = find_missing_loads(self.snapshot, self.bounds, name, late)
        if not missing and first is None:
            return None
        return PartsSetAside(self.snapshot.definitions[name].name, late, self._describe_missing(missing), missing)

    def _describe_missing(self, missing: Missing) -> str:
        tables = [self.snapshot.definitions[fold(table)].describe_parts(parts) for table, parts in missing]
        return f"waits for {', '.join(tables)}" if tables else "waits for parts that do not exist yet"

    @property
    def blocked(self) -> tuple[PartsSetAside, ...]:
        """What cannot be computed yet, and what has to be loaded first."""
        found: list[PartsSetAside] = list(self._beyond)
        for name, by_index in self._blocked.items():
            groups: dict[tuple[str, Missing], list[int]] = {}
            for index, cause in by_index.items():
                groups.setdefault(cause, []).append(index)
            view = self.snapshot.definitions[name].name
            found += [
                PartsSetAside(view, PartSet.of_indexes(indexes), reason, missing)
                for (reason, missing), indexes in groups.items()
            ]
        for name, doubted, (reason, missing) in self._doubts:
            parts = (doubted & self._asked.get(name, PartSet())) - PartSet.of_indexes(self._blocked[name])
            if parts:
                found.append(PartsSetAside(self.snapshot.definitions[name].name, parts, reason, missing))
        return tuple(found)

    @property
    def remaining(self) -> int:
        """How many steps are known to lie ahead."""
        return sum(len(parts) for parts in self._waiting.values())

    def next(self) -> Step | None:
        """The next step, or None when all that can be computed is up to date. The same until it is recorded."""
        while True:
            names = [name for name, parts in self._waiting.items() if parts]
            if not names:
                return None
            name = min(names, key=lambda key: self._key(key, self._waiting[key].first))
            index = self._waiting[name].first
            rule = self.bounds.rule(name, index)
            cause = self._find_obstacle(name, index)
            if cause is None:
                reason = self._reason(name, index)
                view = self.snapshot.definitions[name].name
                return Step(view, index, rule, reason, self._causes.get(reason))
            self._set_aside(name, index, cause)

    def _set_aside(self, name: str, index: int, cause: tuple[str, Missing]) -> None:
        """A part cannot be computed; so what was made from it, directly or not, is in doubt, and nothing is made from that."""
        part = PartSet.between(index, index)
        self._blocked[name][index] = cause
        self._waiting[name] -= part
        self._held_up.clear()
        if index in self._existing[name]:
            before = {**self._doubted, name: self._doubted[name] | part}
            after = find_unsettled(self.snapshot, self.bounds, before, {name: part})
            self._doubts += [(key, after[key] - before[key], cause) for key in after if after[key] - before[key]]
            self._doubted = after

    def next_group(self, limit: int) -> list[Step]:
        """Steps of one view, by one rule, that do not depend on each other or on any other step ahead: `limit` at most.

        A view that reads its own past goes on one step at a time. The steps of any other view wait until enough of them can
        be taken together, or nothing else can be done first. The same group until one of its steps is recorded; none when
        all that can be computed is up to date.
        """
        first = self.next()
        if first is None or limit <= 1:
            return [] if first is None else [first]
        names = sorted(
            (name for name, parts in self._waiting.items() if parts),
            key=lambda name: self._key(name, self._waiting[name].first),
        )
        for name in names:
            if fold(first.view) == name and self._reads_itself(name):
                return [first]
            if self._held_up.get(name) == limit:
                continue
            group = self._find_full_group(name, limit)
            if group:
                return group
            self._held_up[name] = limit
        groups = (self._find_ready(name, limit) for name in names if not self._reads_itself(name))
        return next((group for group in groups if group), [first])

    def _find_full_group(self, name: str, limit: int) -> list[Step]:
        """The first step of a view that reads its own past; of another, as many as there are, or `limit`. Or none."""
        is_chain = self._reads_itself(name)
        enough = 1 if is_chain else min(limit, len(self._waiting[name]))
        # Looking at each part takes long; that they wait for others is soon seen.
        if len(self._waiting[name] - self._find_readers_of_waiting(name)) < enough:
            return []
        group = self._find_ready(name, enough)
        if len(group) < enough or (is_chain and group[0].index != self._waiting[name].first):
            return []
        return group

    def _find_readers_of_waiting(self, name: str) -> PartSet:
        """The parts of a view that read a waiting part of another view."""
        found = PartSet()
        for rule in RULES:
            for reference in self.snapshot.definitions[name].query_for(rule).references:
                waiting = self._waiting.get(fold(reference.table), PartSet())
                if waiting and fold(reference.table) != name:
                    found |= spread_forwards(reference, waiting, is_self=False) & self.bounds.made_by(name, rule)
        return found

    def _reads_itself(self, name: str) -> bool:
        return any(fold(reference.table) == name for reference in self.snapshot.definitions[name].references)

    def _find_ready(self, name: str, limit: int) -> list[Step]:
        """The first steps of a view whose inputs are there, and will not change by any step ahead."""
        view = self.snapshot.definitions[name]
        unsettled = self._find_unsettled_around(name)
        steps: list[Step] = []
        for index in islice(self._waiting[name], LOOK_AHEAD * limit):
            rule = self.bounds.rule(name, index)
            if steps and rule != steps[0].rule:
                break
            if self._find_obstacle(name, index) is None and not any(
                PartSet((self.bounds.reads(reference, index),)) & unsettled.get(fold(reference.table), PartSet())
                for reference in view.query_for(rule).references
            ):
                reason = self._reason(name, index)
                steps.append(Step(view.name, index, rule, reason, self._causes.get(reason)))
                if len(steps) == limit:
                    break
        return steps

    def _find_unsettled_around(self, name: str) -> dict[str, PartSet]:
        """By view that this one reads, directly or not: the parts that steps ahead will change, or may change.

        Steps of this view are among them: they may come back to it by way of others.
        """
        if not any(parts for other, parts in self._waiting.items() if other != name):
            return {}
        around = {other: self._waiting.get(other, PartSet()) for other in self._ancestors[name] if other in self._due}
        return find_unsettled(replace(self.snapshot, existing=self._existing), self.bounds, around)

    def _key(self, name: str, index: int) -> tuple[int, int, str]:
        offset, level = self._order[name]
        return self.snapshot.definitions[name].partitioning.end_seconds(index) + offset, level, name

    def _find_obstacle(self, name: str, index: int) -> tuple[str, Missing] | None:
        missing: dict[str, PartSet] = {}
        waits_for: tuple[str, Missing] | None = None
        for reference in self.bounds.query(name, index).references:
            if reference.low(index) > reference.high(index):
                return f"{reference} runs backwards here", ()
            table = fold(reference.table)
            parts = PartSet((self.bounds.reads(reference, index),))
            definition = self.snapshot.definitions[table]
            if parts & self.snapshot.archived_parts(table):
                # Without naming them: a thousand parts of a view for one reason are one line.
                return f"reads archived parts of {definition.name}: {describe_retention(definition)}", ()
            if definition.kind == "stream":
                absent = parts - self._existing[table]
                if absent:
                    missing[definition.name] = missing.get(definition.name, PartSet()) | absent
                continue
            for part in parts & (self._due[table] | self._doubted[table]):
                waits_for = self._find_cause(table, part) or (f"waits for {definition.describe_part(part)}", ())
                for root, absent in waits_for[1]:
                    missing[root] = missing.get(root, PartSet()) | absent
        if missing:
            found = tuple(sorted(missing.items()))
            return self._describe_missing(found), found
        return waits_for

    def _find_cause(self, name: str, index: int) -> tuple[str, Missing] | None:
        """Why a part is not up to date and cannot be."""
        if index in self._blocked[name]:
            return self._blocked[name][index]
        return next((cause for key, parts, cause in self._doubts if key == name and index in parts), None)

    def _reason(self, name: str, index: int) -> str:
        if index not in self._existing[name]:
            return "new"
        for item in self._stale[name]:
            if index in item.parts:
                return item.reason
        if index in self._retired.get(name, PartSet()):
            return "retired, and read again"
        return "has a past now"

    def record(self, step: Step, stale: Iterable[StaleRange] = ()) -> None:
        """A step is done. `stale` is what became stale by it."""
        name = fold(step.view)
        part = PartSet.between(step.index, step.index)
        self._due[name] -= part
        self._waiting[name] -= part
        self._existing[name] |= part
        self._look_again_behind(name)
        self.mark_stale(stale)

    def _look_again_behind(self, name: str) -> None:
        self._held_up = {other: limit for other, limit in self._held_up.items() if name not in self._ancestors[other]}

    def mark_stale(self, stale: Iterable[StaleRange]) -> None:
        """Parts became stale, by a step of this refresh or by someone else."""
        for item in stale:
            name = fold(item.table)
            if name not in self._due:
                continue
            parts = (PartSet((item.parts,)) & self._existing[name]) - self.snapshot.archived_parts(name)
            self._due[name] |= parts
            if name in self._computed:
                self._waiting[name] |= parts & self._needed[name]
            self._stale[name].insert(0, item)
            self._look_again_behind(name)

    def assume_changed(self, step: Step) -> None:
        """Record a step that was not run, supposing that it changes its part."""
        reason = f"{step.view}[{step.index}] changed"
        self._causes[reason] = (step.view, step.index)
        self.record(step, self.bounds.stale_because(step.view, PartRange(step.index, step.index), reason))
