"""Changed definitions of views that have parts: what becomes of the parts, by the caller's choice, and what that leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from airflow_provider_viewdf.catalog.defining import REASON, Effect
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import ChangedDefinitionError, UsageError
from airflow_provider_viewdf.parts import LATEST, PartRange, PartSet
from airflow_provider_viewdf.planning import Bounds, Snapshot
from airflow_provider_viewdf.planning.causes import explain_groups, spread_changes
from airflow_provider_viewdf.reports import PlannedParts
from airflow_provider_viewdf.versions import StaleRange

Changed = Literal["refuse", "restate", "forward"]

COLUMNS_CHANGED = "the columns of what it reads changed"
BEGINS_LATER = "what it reads begins later now"
RESTATE = 'changed="restate" (viewdf apply --restate)'


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do with the parts of views that are defined differently now.

    "refuse": nothing, it is an error. "restate": compute every part anew, or those from a time on. "forward": leave them as
    they are, and compute new ones by the new definition.
    """

    changed: Changed = "refuse"
    restate_from: datetime | None = None

    def __post_init__(self) -> None:
        if self.changed not in ("refuse", "restate", "forward"):
            raise UsageError(f'changed is "refuse", "restate" or "forward", not {self.changed!r}.')
        if self.restate_from is not None and self.changed != "restate":
            raise UsageError('restate_from says from when on to restate; give it with changed="restate".')


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a view's parts: `effect` as the catalog knows it, `stale` ranges, and `due`, those to be computed."""

    effect: Effect = "keep"
    stale: tuple[StaleRange, ...] = ()
    due: PartSet = field(default_factory=PartSet)


def decide_fate(
    before: Definition,
    after: Definition,
    existing: PartSet,
    choice: Choice,
    *,
    first: int | None = None,
    is_sliding: bool = False,
) -> Fate:
    """Of the parts of a view whose definition, or whose columns, have changed.

    `first` is its first part by the new definition. `is_sliding`: its parts follow from the one before by adding what enters
    a window and taking away what leaves it.
    """
    if not existing:
        return Fate()
    if choice.changed != "forward":
        begin = None if choice.restate_from is None else after.partitioning.index_at(choice.restate_from)
        if begin is None or begin <= existing.first or before.length_seconds != after.length_seconds:
            # What lies before the first part would stay what it was, since nothing computes it any more.
            begins_later = first is not None and first > existing.first
            return Fate("stale" if _has_same_layout(before, after) and not begins_later else "drop", due=existing)
        _check_compatible(before, after, f"its parts before {after.describe_part(begin)}", is_sliding)
        span = PartRange(begin, LATEST)
        return Fate("keep", (StaleRange(after.name, span, REASON),), existing & PartSet((span,)))
    _check_compatible(before, after, "its old parts", is_sliding)
    return Fate()


def find_begun_later(
    definitions: Mapping[str, Definition],
    existing: Mapping[str, PartSet],
    bounds: Bounds,
    fates: Mapping[str, Fate],
    choice: Choice,
) -> list[str]:
    """Views that stay as they are defined, but read others that now begin later, and so would keep parts made of nothing."""
    if not fates or choice != Choice("restate"):
        return []
    candidates = [key for key, item in definitions.items() if item.kind == "view" and existing.get(key)]
    firsts = {key: bounds.first(key) for key in candidates if key not in fates}
    return [key for key, first in firsts.items() if first is not None and first > existing[key].first]


def _has_same_layout(before: Definition, after: Definition) -> bool:
    return (
        before.columns == after.columns
        and before.length_seconds == after.length_seconds
        and before.starting == after.starting
        and before.starting_latest == after.starting_latest
    )


def _check_compatible(before: Definition, after: Definition, kept: str, is_sliding: bool) -> None:
    """Refuse to leave parts that could not be read together with new ones."""
    name = f"{after.name}, a helper view of {after.helper_of}," if after.helper_of else after.name
    remedy = f"Restate every part with {RESTATE}, or define a view of another name; nothing was changed."
    if before.length_seconds != after.length_seconds:
        raise ChangedDefinitionError(f"{name} gets another PARTITION LENGTH, so {kept} cannot stay. {remedy}")
    if (before.starting, before.starting_latest) != (after.starting, after.starting_latest):
        raise ChangedDefinitionError(f"{name} gets another STARTING, so {kept} cannot stay. {remedy}")
    old = {fold(column.name): column for column in before.columns}
    new = {fold(column.name): column for column in after.columns}
    for key in old.keys() & new.keys():
        if old[key].type != new[key].type:
            raise ChangedDefinitionError(
                f"Column {new[key].name} of {name} changes from {old[key].type} to {new[key].type}, so {kept} cannot stay. "
                f"{remedy}"
            )
    if after.reads_itself and old.keys() != new.keys():
        lists = [", ".join(f"{column.name} {column.type}" for column in item.columns) for item in (before, after)]
        raise ChangedDefinitionError(
            f"{name} reads its own past, and its columns change from ({lists[0]}) to ({lists[1]}), so {kept} cannot stay. "
            f"{remedy}"
        )

    if is_sliding and before.references != after.references:
        raise ChangedDefinitionError(
            f"{name} goes on from the state of its last part, which is that of another window or of other rows, so {kept} "
            f"cannot stay. {remedy}"
        )


def find_effect(
    definitions: Mapping[str, Definition],
    existing: Mapping[str, PartSet],
    starts: Mapping[str, int],
    due: Sequence[tuple[str, PartSet, str]],
    archived: Mapping[str, int],
) -> tuple[PlannedParts, ...]:
    """Parts that are to be computed anew, and why, and what becomes stale if each of them changes."""
    snapshot = Snapshot(definitions, existing, starts=starts, archived=archived)
    roots = [
        PlannedParts(definitions[fold(name)].name, kept, reason)
        for name, parts, reason in due
        if (kept := parts - snapshot.archived_parts(fold(name)))
    ]
    return spread_changes(snapshot, Bounds(snapshot), roots)


def refuse_change(
    names: Sequence[str], effect: tuple[PlannedParts, ...], definitions: Mapping[str, Definition]
) -> ChangedDefinitionError:
    """The sentence that names the choices, and what a restatement would lead to."""
    subject = f"{names[0]} is" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are"
    has = "has" if len(names) == 1 else "have"
    lines = "\n".join(f"  {line}" for line in explain_groups(effect, definitions))
    return ChangedDefinitionError(
        f"{subject} already defined differently and {has} parts; nothing was changed. Choose: restate, with "
        f"{RESTATE}, computes them anew, or only those from a time on with restate_from=TIME (--from TIME); forward only, "
        'with changed="forward" (viewdf apply --forward-only), leaves them as they are and computes new parts by the new '
        f"definition. To restate every part would make these parts stale:\n{lines}"
    )
