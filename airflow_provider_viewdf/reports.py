"""What the warehouse says it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from airflow_provider_viewdf.definitions import Rule
from airflow_provider_viewdf.parts import Partitioning, PartSet
from airflow_provider_viewdf.versions import LateCount, RejectedRow

Outcome = Literal["planned", "published", "kept"]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `changed` are the parts with a new version; none if the batch was there already.

    `rows` came into their parts; `late` says how many of these came late, and how many late ones did not. `restored` are
    parts whose files had been damaged, and which have all their rows again.
    """

    table: str
    batch_id: str
    rows: int
    covers: PartSet
    changed: PartSet
    rejected: tuple[RejectedRow, ...]
    seconds: float
    late: LateCount = field(default_factory=LateCount)
    restored: PartSet = field(default_factory=PartSet)


@dataclass(frozen=True, slots=True)
class PlannedParts:
    """Parts of one view that have to be computed for one reason, and `children`: those that do if these change."""

    view: str
    parts: PartSet
    reason: str
    children: tuple[PlannedParts, ...] = ()

    def by_view(self) -> dict[str, PartSet]:
        """The parts of each view in this group and below it."""
        found = {self.view: self.parts}
        for child in self.children:
            for view, parts in child.by_view().items():
                found[view] = found.get(view, PartSet()) | parts
        return found


@dataclass(frozen=True, slots=True)
class Impact:
    """What would have to be computed if these parts of a table changed, as a tree, and the same as lines of text."""

    table: str
    parts: PartSet
    groups: tuple[PlannedParts, ...]
    lines: tuple[str, ...]

    @property
    def recomputed(self) -> dict[str, PartSet]:
        """The parts of each view that would be computed."""
        found: dict[str, PartSet] = {}
        for group in self.groups:
            for view, parts in group.by_view().items():
                found[view] = found.get(view, PartSet()) | parts
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class ApplyPreview:
    """What applying a script does: which definitions it adds, changes and drops, and which parts that makes stale.

    `needs_choice` are views that have parts and are defined differently; `groups` is a tree, `lines` the same as text.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    dropped: tuple[str, ...]
    needs_choice: tuple[str, ...]
    groups: tuple[PlannedParts, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookResult:
    """What a look at the files of an external stream found.

    `registered` are the parts that are new, `changed` those that have other files than before. `missing` are not there, or not
    complete; of these, the ones in `gone` were there once: they keep the version they have.
    """

    table: str
    looked: PartSet
    registered: PartSet = field(default_factory=PartSet)
    changed: PartSet = field(default_factory=PartSet)
    missing: PartSet = field(default_factory=PartSet)
    gone: PartSet = field(default_factory=PartSet)
    files: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StepReport:
    """One part of one view: computed (`published`), found unchanged (`kept`), or, in a dry run, `planned`.

    `inputs` names what it read, `Helper[23667844] v2` style. `cause` is the planned step that makes it necessary, if any.
    """

    view: str
    index: int
    time: datetime
    rule: Rule
    reason: str
    outcome: Outcome
    rows: int = 0
    version: int = 0
    seconds: float = 0.0
    inputs: tuple[str, ...] = ()
    cause: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class PartsSetAside:
    """Parts that were asked for and not computed, and why. `missing` lists what has to be loaded first."""

    view: str
    parts: PartSet
    reason: str
    missing: tuple[tuple[str, PartSet], ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """`steps` ran, in this order. `skipped` need not exist; `blocked` wait for parts that must be loaded."""

    steps: tuple[StepReport, ...] = ()
    skipped: tuple[PartsSetAside, ...] = ()
    blocked: tuple[PartsSetAside, ...] = ()
    seconds: float = 0.0

    @property
    def published(self) -> tuple[StepReport, ...]:
        return tuple(step for step in self.steps if step.outcome == "published")

    @property
    def kept(self) -> tuple[StepReport, ...]:
        return tuple(step for step in self.steps if step.outcome == "kept")

    @property
    def rows(self) -> int:
        return sum(step.rows for step in self.published)

    def __add__(self, later: RefreshReport) -> RefreshReport:
        """Two refreshes as one: the steps of both, and what the later one set aside."""
        return RefreshReport(self.steps + later.steps, later.skipped, later.blocked, self.seconds + later.seconds)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values, small enough for an XCom however long the refresh."""
        return {
            "parts": _part_names(self.steps),
            "published": len(self.published),
            "kept": len(self.kept),
            "skipped": [_set_aside(item) for item in self.skipped],
            "blocked": [_set_aside(item) for item in self.blocked],
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class EmptyPart:
    """A part that someone declared empty."""

    index: int
    why: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table or view at a glance.

    `late_rows` is the policy of a stream, `late` how many late rows it has met. `earlier_definition` are the parts of a
    view that an earlier definition made, and that stayed when it changed.
    """

    name: str
    kind: str
    length_seconds: int
    columns: tuple[tuple[str, str], ...]
    parts: PartSet
    missing: PartSet
    stale: PartSet
    stale_because: tuple[str, ...]
    rows: int
    rejected_rows: int
    last_updated: datetime | None
    declared_empty: tuple[EmptyPart, ...] = ()
    archived: PartSet = field(default=PartSet())
    late: LateCount = field(default_factory=LateCount)
    late_rows: str = ""
    earlier_definition: PartSet = field(default_factory=PartSet)
    location: str = ""
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """A part that differs from the same part computed from scratch. Rows are shown as text, a few of each."""

    view: str
    index: int
    reason: str
    only_stored: tuple[str, ...] = ()
    only_recomputed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` compared and where stored and recomputed parts differ.

    `unchecked` could not be computed again; `left_out` are parts that an earlier definition made and that stayed when it
    changed.
    """

    checked: tuple[tuple[str, PartSet], ...]
    differences: tuple[Difference, ...]
    seconds: float = 0.0
    unchecked: tuple[PartsSetAside, ...] = ()
    left_out: tuple[tuple[str, PartSet], ...] = ()

    @property
    def is_ok(self) -> bool:
        return not self.differences


@dataclass(frozen=True, slots=True)
class CleanUpReport:
    """What `gc` removed: replaced versions, directories of writes that never finished, and the rows of helper parts."""

    versions: int = 0
    orphans: int = 0
    paths: tuple[str, ...] = field(default=())
    retired: int = 0


def describe_look(result: LookResult, partitioning: Partitioning) -> list[str]:
    """What a look found, in a line or a few."""
    count = len(result.looked)
    lines = [
        f"{result.table}: {count} part{'' if count == 1 else 's'} looked at, {result.files} "
        f"file{'' if result.files == 1 else 's'}; {len(result.registered)} registered, {len(result.changed)} changed, "
        f"{len(result.missing)} missing ({result.seconds:.1f} s)"
    ]
    for title, parts in (
        ("registered", result.registered),
        ("changed", result.changed),
        ("missing", result.missing - result.gone),
        ("gone, still registered as it was", result.gone),
    ):
        if parts:
            lines.append(
                f"{result.table}: {title}: {PartSet(parts.ranges[:10]).format(partitioning)}{_more(parts, 10)}"
            )
    return lines


def _more(parts: PartSet, shown: int) -> str:
    rest = len(parts.ranges) - shown
    return f", and {rest} more ranges" if rest > 0 else ""


@dataclass(frozen=True, slots=True)
class RolledUp:
    """Parts of one table that now lie in files together; or, with a reason, that were left as they were."""

    table: str
    parts: PartSet
    rows: int = 0
    left_because: str = ""


@dataclass(frozen=True, slots=True)
class DamagedPart:
    """A part whose files are not what was written, what is wrong with them, and what became of it.

    Outcomes: "restored" (its rows are back, nothing else changes), "recomputed" (it has other rows now), "registered" (of an
    external stream: as its files are now), "load again" (`remedy` says what), "left" (`remedy` says why), and "found" where
    nothing was to be changed.
    """

    table: str
    index: int
    time: datetime
    problem: str
    outcome: Literal["restored", "recomputed", "registered", "load again", "left", "found"]
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair looked at, and which parts it found damaged."""

    checked: int
    damaged: tuple[DamagedPart, ...]
    seconds: float = 0.0

    @property
    def is_ok(self) -> bool:
        """Whether nothing is left to be done."""
        return all(item.outcome in ("restored", "recomputed", "registered") for item in self.damaged)


@dataclass(frozen=True, slots=True)
class RollUpReport:
    rolled: tuple[RolledUp, ...] = ()
    left: tuple[RolledUp, ...] = ()
    seconds: float = 0.0

    @property
    def parts(self) -> int:
        return sum(len(item.parts) for item in self.rolled)


@dataclass(frozen=True, slots=True)
class Archived:
    """Parts of one table that are archived now. `held_because` says why older ones than its RETAIN allows are kept."""

    table: str
    parts: PartSet
    held_because: str = ""


@dataclass(frozen=True, slots=True)
class RetireReport:
    tables: tuple[Archived, ...] = ()

    @property
    def parts(self) -> int:
        return sum(len(item.parts) for item in self.tables)


def _part_names(steps: tuple[StepReport, ...], longest: int = 100) -> list[str]:
    names = [f"{step.view}[{step.index}]" for step in steps[:longest]]
    return names + ([f"... and {len(steps) - longest} more"] if len(steps) > longest else [])


def _set_aside(item: PartsSetAside) -> dict[str, Any]:
    return {
        "view": item.view,
        "parts": str(item.parts),
        "reason": item.reason,
        "missing": {table: str(parts) for table, parts in item.missing},
    }
