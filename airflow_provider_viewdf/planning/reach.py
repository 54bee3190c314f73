"""How far changes reach: forwards from parts that are due, backwards from parts that are asked for.

Everything is done with ranges, so that a view that reads its own last part costs no more than one that does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_provider_viewdf.definitions import PartReference, Rule, fold
from airflow_provider_viewdf.parts import LATEST, PartRange, PartSet
from airflow_provider_viewdf.planning.bounds import Bounds
from airflow_provider_viewdf.planning.snapshot import Snapshot

RULES: tuple[Rule, Rule] = ("initialize", "update")

Missing = tuple[tuple[str, PartSet], ...]

# A reference that skips parts is followed part by part up to this many; beyond, its hull is taken.
ENUMERATED = 100_000


def find_due(snapshot: Snapshot, bounds: Bounds, names: Iterable[str]) -> dict[str, PartSet]:
    """By view: the parts that should exist and do not, that are stale, or to which another rule applies now."""
    due: dict[str, PartSet] = {}
    for name in names:
        if snapshot.definitions[name].kind != "view":
            continue
        domain = bounds.domain(name)
        updated = PartSet.between(bounds.update_begin(name), LATEST)
        has_past = snapshot.initialized.get(name, PartSet()) & updated
        due[name] = (domain - snapshot.existing_parts(name)) | (snapshot.stale_parts(name) & domain) | has_past
        due[name] |= _find_cut_too_short(snapshot, bounds, name)
        due[name] -= snapshot.archived_parts(name)
    return due


def _find_cut_too_short(snapshot: Snapshot, bounds: Bounds, name: str) -> PartSet:
    """Parts that were made when a partial range was cut later: since then history has come, with a gap in what they read."""
    found = PartSet()
    for rule in RULES:
        for reference in bounds.definition(name).query_for(rule).references:
            table = fold(reference.table)
            existing = snapshot.existing_parts(table)
            if reference.is_partial and existing and snapshot.definitions[table].kind == "stream":
                gaps = PartSet.between(existing.first, existing.last) - existing
                found |= spread_forwards(reference, gaps, is_self=False) & bounds.made_by(name, rule)
    return found & snapshot.existing_parts(name)


def find_unsettled(
    snapshot: Snapshot, bounds: Bounds, due: Mapping[str, PartSet], new: Mapping[str, PartSet] | None = None
) -> dict[str, PartSet]:
    """By view: what is due, and everything that reads something unsettled. `new` is what of that has not been followed yet."""
    unsettled = dict(due)
    waiting = [(name, parts) for name, parts in (due if new is None else new).items() if parts]
    while waiting:
        name, parts = waiting.pop()
        for view, reference, is_update in bounds.readers(name):
            reader = fold(view.name)
            if reader not in unsettled:
                continue
            allowed = bounds.made_by(reader, "update" if is_update else "initialize")
            reached = spread_forwards(reference, parts, is_self=reader == name)
            kept = snapshot.existing_parts(reader) - snapshot.archived_parts(reader)
            found = (reached & allowed & kept) - unsettled[reader]
            if found:
                unsettled[reader] |= found
                waiting.append((reader, found))
    return unsettled


def spread_forwards(reference: PartReference, parts: PartSet, *, is_self: bool) -> PartSet:
    """The parts that read any of these through a reference; to the end, if they reach themselves again and again."""
    spans = []
    for item in parts.ranges:
        span = reference.read_by(item)
        if span is None:
            continue
        if is_self and _is_shift(reference) and span.low <= item.high + 1:
            # The shifted range meets the one it came from: so does the next, and so on for ever.
            span = PartRange(span.low, LATEST)
        spans.append(span)
    return PartSet.of(spans)


def find_needed(bounds: Bounds, unsettled: Mapping[str, PartSet], asked: Mapping[str, PartSet]) -> dict[str, PartSet]:
    """By view: of what is unsettled, what is asked for and what that reads, directly or not."""
    needed: dict[str, PartSet] = {name: PartSet() for name in unsettled}
    waiting = [(name, parts & unsettled[name]) for name, parts in asked.items()]
    while waiting:
        name, parts = waiting.pop()
        new = parts - needed[name]
        if not new:
            continue
        needed[name] |= new
        waiting += _read_from(bounds, unsettled, name, new)
    return needed


def find_restored(bounds: Bounds, retired: Mapping[str, PartSet], needed: Mapping[str, PartSet]) -> dict[str, PartSet]:
    """By view: the retired parts that these parts read, and that those read in turn."""
    restored: dict[str, PartSet] = {}
    waiting = list(needed.items()) if any(retired.values()) else []
    while waiting:
        name, parts = waiting.pop()
        for rule in RULES:
            made = parts & bounds.made_by(name, rule)
            for reference in bounds.definition(name).query_for(rule).references:
                table = fold(reference.table)
                new = (union_of_reads(reference, made) & retired.get(table, PartSet())) - restored.get(table, PartSet())
                if new:
                    restored[table] = restored.get(table, PartSet()) | new
                    waiting.append((table, new))
    return restored


def _read_from(
    bounds: Bounds, unsettled: Mapping[str, PartSet], name: str, parts: PartSet
) -> list[tuple[str, PartSet]]:
    found: list[tuple[str, PartSet]] = []
    for rule in RULES:
        made = parts & bounds.made_by(name, rule)
        for reference in bounds.definition(name).query_for(rule).references:
            table = fold(reference.table)
            if table in unsettled:
                read = union_of_reads(reference, made)
                if table == name and _is_shift(reference):
                    read = _spread_backwards(read, made, unsettled[name])
                found.append((table, read & unsettled[table]))
    return found


def find_missing_loads(snapshot: Snapshot, bounds: Bounds, name: str, parts: PartSet) -> Missing:
    """By table: the parts that have to be loaded before these parts of a view can be computed."""
    missing: dict[str, PartSet] = {}
    seen: dict[str, PartSet] = {}
    waiting = [(name, parts)]
    while waiting:
        view, asked = waiting.pop()
        new = asked - seen.get(view, PartSet())
        if not new:
            continue
        seen[view] = seen.get(view, PartSet()) | new
        first = bounds.first(view)
        for rule in RULES:
            # A view that cannot begin yet waits for what its INITIALIZE reads.
            made = new & bounds.made_by(view, rule) if first is not None else new if rule == "initialize" else PartSet()
            for reference in bounds.definition(view).query_for(rule).references:
                read = bounds.definition(reference.table)
                reads = cut_partial(bounds, reference, union_of_reads(reference, made), made)
                if fold(read.name) == view and first is not None and _is_shift(reference):
                    gap = PartSet.between(first, max(first, new.last)) - snapshot.existing_parts(view)
                    reads = _spread_backwards(reads, made, gap)
                absent = reads - snapshot.existing_parts(fold(read.name))
                if read.kind == "stream" and absent:
                    missing[read.name] = missing.get(read.name, PartSet()) | absent
                elif absent:
                    waiting.append((fold(read.name), absent))
    return tuple(sorted(missing.items()))


def cut_partial(bounds: Bounds, reference: PartReference, reads: PartSet, made: PartSet) -> PartSet:
    """Of what these parts read through a partial reference, what does not lie before the first part of the table."""
    if not reference.is_partial:
        return reads
    first = bounds.first(reference.table)
    if first is not None:
        return reads & PartSet.between(first, LATEST)
    return union_of_reads(PartReference(reference.table, reference.high, reference.high), made)


def _spread_backwards(read: PartSet, parts: PartSet, unsettled: PartSet) -> PartSet:
    """Follow a reference to the view's own past at once to where its unsettled parts begin."""
    spans = list(read.ranges)
    for item in parts.ranges:
        for run in unsettled.ranges:
            reaches = any(r.high >= item.low - 1 and r.low < item.low for r in read.ranges)
            if reaches and run.low <= item.low - 1 <= run.high:
                spans.append(PartRange(run.low, item.low - 1))
    return PartSet.of(spans)


def union_of_reads(reference: PartReference, parts: PartSet) -> PartSet:
    """Everything that these parts read through a reference; parts at which its range runs backwards read nothing."""
    spans: list[PartRange] = []
    for item in parts.ranges:
        if _is_gapless(reference) or len(item) > ENUMERATED:
            ends = (
                reference.low(item.low),
                reference.low(item.high),
                reference.high(item.low),
                reference.high(item.high),
            )
            spans.append(PartRange(min(ends), max(ends)))
        else:
            reads = ((reference.low(index), reference.high(index)) for index in item)
            spans += [PartRange(low, high) for low, high in reads if low <= high]
    return PartSet.of(spans)


def _is_shift(reference: PartReference) -> bool:
    """Whether both ends are the subscript plus or minus a number."""
    return all(end.period == 1 and end.rise == 1 for end in (reference.low, reference.high))


def _is_gapless(reference: PartReference) -> bool:
    """Whether the ranges of neighbouring parts always touch, so that their union is one range."""
    low, high = reference.low, reference.high
    if not (low.direction in (0, 1) and high.direction in (0, 1)):
        return False
    difference = low.add(high, "", sign=-1)
    if difference.rise != 0:
        return False
    return all(low(x + 1) <= high(x) + 1 and low(x) <= high(x) for x in range(max(low.period, high.period) + 1))
