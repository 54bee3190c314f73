"""Apply a script: check its definitions against the others and against Spark, and save them, all or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_provider_viewdf.actions.analyze import analyze_views
from airflow_provider_viewdf.actions.changed_views import (
    BEGINS_LATER,
    COLUMNS_CHANGED,
    Choice,
    Fate,
    decide_fate,
    find_begun_later,
    find_effect,
    refuse_change,
)
from airflow_provider_viewdf.actions.drops import find_dropped, refuse_if_read, release_helpers
from airflow_provider_viewdf.actions.measure import measure_parts
from airflow_provider_viewdf.actions.outdated import refuse_outdated_translations
from airflow_provider_viewdf.actions.starts import settle_latest_starts
from airflow_provider_viewdf.actions.workbench import Known, Workbench
from airflow_provider_viewdf.catalog import DefinitionChange
from airflow_provider_viewdf.catalog.defining import REASON
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import ChangedDefinitionError, ConflictError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.language import has_window, is_same_text, parse_drops, parse_script, read_texts
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning import Bounds, Snapshot
from airflow_provider_viewdf.planning.causes import explain_groups
from airflow_provider_viewdf.reports import ApplyPreview
from airflow_provider_viewdf.versions import DefinitionRecord

ATTEMPTS = 5

OnPreview = Callable[[ApplyPreview], None]


def apply_script(
    bench: Workbench, sql: str, choice: Choice, start: datetime | None, on_preview: OnPreview | None = None
) -> list[Definition]:
    """Save the definitions of a script. Those that are there already, unchanged, are left alone."""
    if choice.changed == "refuse" and (unchanged := _find_unchanged(bench.known(), sql, start)):
        return unchanged
    for attempt in range(ATTEMPTS):
        prepared = _prepare(bench, sql, choice, start)
        known = prepared.known
        if not prepared.changes:
            return [known.definitions[key] for key in prepared.written]
        if on_preview is not None:
            on_preview(prepared.preview)
        try:
            bench.catalog.save_definitions(
                prepared.changes, generation=known.generation, produced_by=str(bench.produced_by)
            )
        except ConflictError:
            # Tasks that start at the same moment apply the same script: look again, most often nothing is left to do.
            if attempt == ATTEMPTS - 1:
                raise
            continue
        reach("apply: saved")
        settle_latest_starts(bench)
        return [prepared.analyzed.get(key) or known.definitions[key] for key in prepared.written]
    raise AssertionError("unreachable")


def preview_script(bench: Workbench, sql: str, choice: Choice, start: datetime | None) -> ApplyPreview:
    """What applying a script would do. If it would be refused for want of a choice: what restating would do."""
    return _prepare(bench, sql, choice, start, is_preview=True).preview


def _find_unchanged(known: Known, sql: str, start: datetime | None) -> list[Definition]:
    """The definitions of a script that says, word for word, what is defined already: every task applies its script anew.

    Nothing, if the script has to be looked at: because of one other word, because what a text means may depend on a table
    that was changed later, or because views are to begin earlier.
    """
    texts = read_texts(sql)
    if any(key not in known.definitions or known.definitions[key].text != text for key, text in texts.items()):
        return []
    concerned = [
        item for item in known.definitions.values() if any(fold(name) in texts for name in _persons_names(item))
    ]
    for item in concerned:
        record = known.records[fold(item.name)]
        read = [known.definitions[fold(name)] for name in (*(ref.table for ref in item.references), *item.dimensions)]
        others = [known.records[fold(other.name)] for other in read if not other.helper_of]
        if record.digest != item.digest or any(other.updated_at > record.updated_at for other in others):
            return []
    return (
        []
        if _earlier_starts(concerned, [], known, start, datetime.now(UTC))
        else [known.definitions[key] for key in texts]
    )


def _persons_names(definition: Definition) -> tuple[str, ...]:
    """The names of what the person wrote: a helper view was generated for its owners."""
    return definition.owners or (definition.name,)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A script, checked and analyzed, and the changes that it means."""

    known: Known
    written: list[str]
    analyzed: Mapping[str, Definition]
    changes: list[DefinitionChange]
    preview: ApplyPreview


def _prepare(
    bench: Workbench, sql: str, choice: Choice, start: datetime | None, *, is_preview: bool = False
) -> _Prepared:
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        applied = parse_script(sql, measure_parts(reader, known.definitions) if has_window(sql) else known.definitions)
        new = [item for item in applied if not _is_known(item, known)]
        dropped = find_dropped(parse_drops(sql), known, sql)
        gone = [*dropped, *sorted(_find_unused_helpers(applied, dropped, known))]
        partitioned = [key for key, item in known.definitions.items() if item.is_partitioned]
        existing = {key: reader.existing_parts(key) for key in partitioned}
        archived = {key: before for key in partitioned if (before := reader.archived_before(key)) is not None}
    kept = {key: item for key, item in known.definitions.items() if key not in gone}
    definitions = {**kept, **{fold(item.name): item for item in new}}
    changed = _find_changed(applied, new, known, existing)
    if changed and choice.changed == "refuse":
        if not is_preview:
            due = [(key, existing[key], REASON) for key in changed]
            effect = find_effect(definitions, existing, known.starts, due, archived)
            raise refuse_change(_name_changed(changed, definitions), effect, definitions)
        choice = Choice("restate")
    refuse_if_read(gone, known, definitions)
    if any(fold(item.name) in known.definitions for item in new):
        _check_others(definitions, new)
    analyzed = analyze_views(bench, definitions, new, sql)
    refuse_outdated_translations(known, definitions, analyzed, {fold(item.name) for item in applied})
    bounds = Bounds(Snapshot({**definitions, **analyzed}, existing, starts=known.starts, archived=archived))
    fates = {
        # A helper view that changes because it serves other views now is nobody's choice: it is made anew.
        key: decide_fate(
            known.definitions[key],
            item,
            existing.get(key, PartSet()),
            choice if key in changed or not item.helper_of else Choice("restate"),
            first=bounds.first(key) if item.kind == "view" else None,
            is_sliding=_is_sliding(item, definitions),
        )
        for key, item in analyzed.items()
        if key in known.definitions and _is_different(item, known.definitions[key])
    }
    later = find_begun_later(definitions, existing, bounds, fates, choice)
    fates |= {key: Fate("drop", due=existing[key]) for key in later}
    names = {fold(item.name) for item in new}
    at = datetime.now(UTC)
    changes = [
        *(
            DefinitionChange(
                make_record(
                    item, _first_start(item, known, start) if key in names else known.records[key].start_index, at
                ),
                fates[key].effect if key in fates else "keep",
                fates[key].stale if key in fates else (),
            )
            for key, item in analyzed.items()
            if key in names or item.columns != known.definitions[key].columns
        ),
        *(DefinitionChange(known.records[key], "drop") for key in later),
        *_earlier_starts(applied, new, known, start, at),
        *(DefinitionChange(known.records[key], "remove") for key in gone),
        *release_helpers(dropped, gone, known),
    ]
    reasons = {**dict.fromkeys(names, REASON), **dict.fromkeys(later, BEGINS_LATER)}
    due = [(key, fate.due, reasons.get(key, COLUMNS_CHANGED)) for key, fate in fates.items()]
    # Dropped parts are no longer archived either.
    still_archived = {
        key: before for key, before in archived.items() if key not in fates or fates[key].effect != "drop"
    }
    groups = find_effect({**definitions, **analyzed}, existing, known.starts, due, still_archived)
    preview = ApplyPreview(
        added=tuple(item.name for item in new if fold(item.name) not in known.definitions),
        changed=tuple(item.name for item in new if fold(item.name) in known.definitions),
        dropped=tuple(known.definitions[key].name for key in gone),
        needs_choice=tuple(_name_changed(changed, definitions)),
        groups=groups,
        lines=tuple(explain_groups(groups, definitions)),
    )
    return _Prepared(known, [fold(item.name) for item in applied if not item.helper_of], analyzed, changes, preview)


def _is_sliding(item: Definition, definitions: Mapping[str, Definition]) -> bool:
    """Whether a view keeps the state of windows from part to part, for itself or for those that it was generated for."""
    owners = [definitions[fold(name)] for name in _persons_names(item) if fold(name) in definitions]
    is_of_window = any(
        "strategy" in dict(owner.translation.choices) for owner in owners if owner.translation is not None
    )
    return is_of_window and item.reads_itself


def _is_different(after: Definition, before: Definition) -> bool:
    return after.digest != before.digest or after.columns != before.columns


def _is_known(definition: Definition, known: Known) -> bool:
    record = known.records.get(fold(definition.name))
    if record is None or record.digest != definition.digest or record.helper_of != definition.helper_of:
        return False
    if _rules_to_come(definition) != _rules_to_come(known.definitions[fold(definition.name)]):
        return False
    return (definition.translation.to_json() if definition.translation else "") == record.translation


def _rules_to_come(definition: Definition) -> tuple[object, ...]:
    """What is said of rows and files to come: which are late, when a part is complete, for how long it is kept.

    That may change at any time.
    """
    return (
        definition.late_rows,
        definition.complete_when,
        definition.complete_after_seconds,
        definition.retain_seconds,
    )


def _find_unused_helpers(applied: Sequence[Definition], dropped: Sequence[str], known: Known) -> set[str]:
    """Helper views whose views are all dropped, or defined anew so that they no longer need them."""
    present = {fold(item.name) for item in applied}
    settled = {fold(item.name) for item in applied if not item.helper_of} | set(dropped)
    return {
        key
        for key, item in known.definitions.items()
        if item.owners and key not in present and all(fold(owner) in settled for owner in item.owners)
    }


def _find_changed(
    applied: Sequence[Definition], new: Sequence[Definition], known: Known, existing: Mapping[str, PartSet]
) -> list[str]:
    """The views that have parts and are defined differently now. A table that has data cannot be."""
    new_text = {fold(item.name): item.text for item in applied}
    found: list[str] = []
    for definition in new:
        key = fold(definition.name)
        before = known.definitions.get(key)
        if before is None or before.digest == definition.digest or not existing.get(key):
            continue
        if definition.helper_of and not _changed_owners(definition, new_text, known):
            continue  # it serves one more view, say: nothing that the person wrote has changed
        if before.kind != "view" or definition.kind != "view":
            raise ChangedDefinitionError(
                f"{definition.name} is already defined differently and has data, so its definition cannot change; "
                "define a table of another name, and load the data into that."
            )
        found.append(key)
    return found


def _name_changed(changed: Sequence[str], definitions: Mapping[str, Definition]) -> list[str]:
    """The views that a person wrote: a helper view by its owners."""
    names = [name for key in changed for name in _persons_names(definitions[key])]
    return list(dict.fromkeys(names))


def _changed_owners(helper: Definition, new_text: Mapping[str, str], known: Known) -> bool:
    """Whether one of the views that a helper view serves is now written differently."""
    before = {fold(name): known.definitions.get(fold(name)) for name in helper.owners}
    return any(
        item is not None and key in new_text and not is_same_text(item.text, new_text[key])
        for key, item in before.items()
    )


def _check_others(definitions: Mapping[str, Definition], new: Sequence[Definition]) -> None:
    """What was defined earlier must still make sense beside the new definitions."""
    replaced = {fold(item.name) for item in new}
    others = [item for key, item in definitions.items() if key not in replaced]
    # As what they became: written out, a helper view and the query that it was made for would be one too many.
    texts = [item.translation.view.text if item.translation is not None else item.text for item in others]
    parse_script(";\n".join(texts), {key: definitions[key] for key in replaced})


def _earlier_starts(
    applied: Sequence[Definition], new: Sequence[Definition], known: Known, start: datetime | None, at: datetime
) -> list[DefinitionChange]:
    """A view without STARTING begins where the earliest of those who applied it wanted it to begin."""
    if start is None:
        return []
    names = {fold(item.name) for item in new}
    changes = []
    for item in applied:
        key = fold(item.name)
        if key in names or item.kind != "view" or _has_own_start(item):
            continue
        present, wanted = known.records[key].start_index, item.partitioning.index_from(start)
        if present is not None and wanted < present:
            changes.append(DefinitionChange(make_record(known.definitions[key], wanted, at), "keep"))
    return changes


def _first_start(definition: Definition, known: Known, start: datetime | None) -> int | None:
    if definition.kind != "view" or definition.starting_latest:
        return None
    if definition.starting is not None:
        return definition.partitioning.index_from(definition.starting)
    if definition.helper_of and not _reads_itself(definition):
        # The view begins there, but its first window reaches further back. What is chained to its past begins with the view.
        return None
    key = fold(definition.name)
    before = known.definitions.get(key)
    if before is not None and before.length_seconds == definition.length_seconds and not _has_own_start(before):
        return known.records[key].start_index
    return None if start is None else definition.partitioning.index_from(start)


def _reads_itself(definition: Definition) -> bool:
    return any(fold(reference.table) == fold(definition.name) for reference in definition.references)


def _has_own_start(definition: Definition) -> bool:
    return definition.starting is not None or definition.starting_latest


def make_record(definition: Definition, start_index: int | None, at: datetime) -> DefinitionRecord:
    return DefinitionRecord(
        name=definition.name,
        kind=definition.kind,
        text=definition.text,
        digest=definition.digest,
        columns=definition.columns,
        length_seconds=definition.length_seconds,
        start_index=start_index,
        helper_of=definition.helper_of,
        updated_at=at,
        produced_by="",
        translation=definition.translation.to_json() if definition.translation is not None else "",
    )
