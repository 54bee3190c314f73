"""What a change leads to, as a tree: parts under the parts whose change makes them stale, in ranges.

A view that reads its own past, or whose readers it reads in turn, is named once on each branch: the parts that it reaches
through itself join those that began it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning.asked import ask_for_everything
from airflow_provider_viewdf.planning.bounds import Bounds
from airflow_provider_viewdf.planning.plan import plan_refresh
from airflow_provider_viewdf.planning.reach import spread_forwards
from airflow_provider_viewdf.planning.snapshot import Snapshot, readers_of, views_of
from airflow_provider_viewdf.reports import PlannedParts

# A group of no more parts than this is written part by part.
FEW = 3
RANGES_IN_REASON = 3


class PlannedStep(Protocol):
    """A step of a plan, and the step that makes it necessary, if it is one of the plan."""

    @property
    def view(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def cause(self) -> tuple[str, int] | None: ...


@dataclass(slots=True, eq=False)
class _Node:
    view: str
    reason: str = ""
    parent: _Node | None = None
    is_supposed: bool = False
    ranges: list[PartRange] = field(default_factory=list)
    children: dict[str, _Node] = field(default_factory=dict)

    def place_for(self, view: str) -> _Node:
        """Where parts of a view belong that become stale through this node: at an ancestor of that view, or below."""
        node: _Node | None = self
        while node is not None and not node.is_supposed:
            if fold(node.view) == fold(view):
                return node
            node = node.parent
        return self.children.setdefault(fold(view), _Node(view, parent=self))

    def to_planned(self) -> PlannedParts:
        parts = PartSet.of(self.ranges)
        reason = self.reason or f"{_name_parts(self.parent)} changed"
        return PlannedParts(self.view, parts, reason, tuple(child.to_planned() for child in self.children.values()))


def _name_parts(node: _Node | None) -> str:
    assert node is not None
    ranges = PartSet.of(node.ranges).ranges
    more = len(ranges) - RANGES_IN_REASON
    shown = PartSet(ranges[:RANGES_IN_REASON])
    return f"{node.view}[{shown}{f', and {more} more ranges' if more > 0 else ''}]"


def group_steps(steps: Iterable[PlannedStep]) -> tuple[PlannedParts, ...]:
    """The steps of a plan as a tree. Each step is in it once; those that no other step causes are its roots."""
    roots: dict[tuple[str, str], _Node] = {}
    places: dict[tuple[str, int], _Node] = {}
    for step in steps:
        cause = None if step.cause is None else places.get((fold(step.cause[0]), step.cause[1]))
        if cause is None:
            node = roots.setdefault((fold(step.view), step.reason), _Node(step.view, step.reason))
        else:
            node = cause.place_for(step.view)
        node.ranges.append(PartRange(step.index, step.index))
        places[fold(step.view), step.index] = node
    return tuple(node.to_planned() for node in roots.values())


def spread_changes(
    snapshot: Snapshot, bounds: Bounds, changed: Sequence[PlannedParts], *, is_supposed: bool = False
) -> tuple[PlannedParts, ...]:
    """These parts, and below them every existing part that has to be computed again if each recomputed part changes.

    `is_supposed`: the parts themselves change without being computed. What a view reads of its own past is then below them.
    """
    roots = [_Node(item.view, item.reason, ranges=list(item.parts.ranges), is_supposed=is_supposed) for item in changed]
    shown: dict[str, PartSet] = {}
    for item in changed:
        shown[fold(item.view)] = shown.get(fold(item.view), PartSet()) | item.parts
    waiting = deque((node, PartSet.of(node.ranges)) for node in roots)
    while waiting:
        node, parts = waiting.popleft()
        for view, reference, is_update in readers_of(snapshot.definitions, node.view):
            key = fold(view.name)
            made = bounds.made_by(key, "update" if is_update else "initialize")
            reached = spread_forwards(reference, parts, is_self=key == fold(node.view))
            kept = snapshot.existing_parts(key) - snapshot.archived_parts(key)
            new = (reached & made & kept) - shown.get(key, PartSet())
            if new:
                place = node.place_for(view.name)
                place.ranges += new.ranges
                shown[key] = shown.get(key, PartSet()) | new
                waiting.append((place, new))
    return tuple(node.to_planned() for node in roots)


def find_impact(snapshot: Snapshot, table: str, parts: PartSet) -> tuple[PlannedParts, ...]:
    """What would have to be computed if these parts changed, and each part that is computed for it changed too.

    Parts of a stream that are not there yet are supposed to be loaded.
    """
    key = fold(table)
    definition = snapshot.definitions[key]
    # What is archived does not change any more.
    parts -= snapshot.archived_parts(key)
    absent = parts - snapshot.existing_parts(key)
    if absent and definition.kind == "stream":
        return _find_impact_of_load(snapshot, definition, parts, absent)
    changed = PlannedParts(definition.name, parts - absent, "supposed")
    if not changed.parts:
        return ()
    return spread_changes(snapshot, Bounds(snapshot), [changed], is_supposed=True)[0].children


def suppose(snapshot: Snapshot, table: str, parts: PartSet) -> Bounds:
    """The bounds as they would be if these parts of a table were there."""
    key = fold(table)
    if snapshot.definitions[key].kind != "stream":
        return Bounds(snapshot)
    return Bounds(replace(snapshot, existing={**snapshot.existing, key: snapshot.existing_parts(key) | parts}))


def _find_impact_of_load(
    snapshot: Snapshot, definition: Definition, parts: PartSet, absent: PartSet
) -> tuple[PlannedParts, ...]:
    """By comparing two plans: what a load brings into being, and which rules it changes, does not follow from ranges."""
    key = fold(definition.name)
    grown = replace(snapshot, existing={**snapshot.existing, key: snapshot.existing_parts(key) | parts})
    bounds = Bounds(grown)
    stale = {name: tuple(found) for name, found in snapshot.stale.items()}
    for run in parts.ranges:
        for item in bounds.stale_because(definition.name, run, f"{definition.name}[{run}] changed"):
            stale[fold(item.table)] = (item, *stale.get(fold(item.table), ()))
    before = {(step.view, step.index) for step in plan_refresh(snapshot, _ask_for_all(snapshot)).steps}
    after = plan_refresh(replace(grown, stale=stale), _ask_for_all(grown)).steps
    once_loaded = f"{definition.name}[{absent}] is loaded"
    return group_steps(
        replace(step, reason=once_loaded) if step.reason == "new" else step
        for step in after
        if (step.view, step.index) not in before
    )


def _ask_for_all(snapshot: Snapshot) -> dict[str, PartSet]:
    bounds = Bounds(snapshot)
    return {name: ask_for_everything(snapshot, bounds, name) for name in views_of(snapshot.definitions)}


def explain_groups(
    groups: Sequence[PlannedParts],
    definitions: Mapping[str, Definition],
    rule_of: Callable[[str, int], Rule] | None = None,
    depth: int = 0,
) -> list[str]:
    """A tree as lines, indented: few parts one by one, with their dates and rules, more of them as ranges."""
    lines: list[str] = []
    for group in groups:
        partitioning = definitions[fold(group.view)].partitioning
        if rule_of is not None and len(group.parts) <= FEW:
            texts = [
                f"{group.view}[{index}]  {partitioning.format(index)}  {rule_of(group.view, index).upper()}  "
                f"because {group.reason}"
                for index in group.parts
            ]
        else:
            count = f"{len(group.parts)} part{'' if len(group.parts) == 1 else 's'}"
            dates = group.parts.format(partitioning)
            texts = [f"{group.view}[{group.parts}], {count}, because {group.reason}  ({dates})"]
        lines += [f"{'  ' * depth}{text}" for text in texts]
        lines += explain_groups(group.children, definitions, rule_of, depth + 1)
    return lines
