"""Say how tables and views stand, and why a part is as it is."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_viewdf.actions.refresh import describe_inputs
from airflow_provider_viewdf.actions.workbench import Known, Workbench, read_snapshot
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.compiler import compile_part
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.parts import PartRange, PartSet, format_length, format_time
from airflow_provider_viewdf.planning import Agenda, Bounds, Snapshot, ask_for_everything
from airflow_provider_viewdf.planning.snapshot import ancestors_of
from airflow_provider_viewdf.reports import EmptyPart, TableStatus
from airflow_provider_viewdf.versions import InputRange


def report_status(bench: Workbench, name: str | None) -> list[TableStatus]:
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        wanted = [known.find(name)] if name is not None else list(known.definitions.values())
        keys = ancestors_of(known.definitions, [item.name for item in wanted])
        snapshot = read_snapshot(reader, known, keys)
        bounds = Bounds(snapshot)
        return [_describe(reader, known, snapshot, bounds, definition) for definition in wanted]


def _describe(
    reader: CatalogReader, known: Known, snapshot: Snapshot, bounds: Bounds, definition: Definition
) -> TableStatus:
    key = fold(definition.name)
    columns = tuple((column.name, column.type) for column in definition.shown_columns)
    if not definition.is_partitioned:
        empty = PartSet()
        return TableStatus(definition.name, definition.kind, 0, columns, empty, empty, empty, (), 0, 0, None)
    summary = reader.summary(definition.name)
    if definition.kind == "view":
        missing = ask_for_everything(snapshot, bounds, key) & bounds.domain(key)
    else:
        missing = PartSet.between(summary.parts.first, summary.parts.last) if summary.parts else PartSet()
    archived = snapshot.archived_parts(key) & summary.parts
    parts = summary.parts - archived
    stale = summary.stale & parts
    versions = reader.current_versions(definition.name) if definition.is_external else []
    files = [file for version in versions for file in version.files]
    return TableStatus(
        name=definition.name,
        kind=definition.kind,
        length_seconds=definition.length_seconds,
        columns=columns,
        parts=parts,
        missing=missing - summary.parts - snapshot.archived_parts(key),
        stale=stale,
        stale_because=tuple(dict.fromkeys(item.reason for item in snapshot.stale.get(key, ()))),
        rows=summary.rows,
        rejected_rows=summary.rejected_rows,
        last_updated=summary.last_updated,
        declared_empty=tuple(_find_declared_empty(reader, definition)),
        archived=archived,
        earlier_definition=_find_parts_of_earlier_definition(reader, known, definition),
        late=summary.late,
        late_rows=str(definition.late_rows) if definition.kind == "stream" else "",
        location=definition.location if definition.is_external else "",
        files=len(files),
        bytes=sum(file.size for file in files),
    )


def _find_parts_of_earlier_definition(reader: CatalogReader, known: Known, definition: Definition) -> PartSet:
    if definition.kind != "view":
        return PartSet()
    # Since the definition was saved, nobody can have published by another one. Clocks differ, but hardly by an hour.
    saved_at = known.records[fold(definition.name)].updated_at
    return reader.parts_made_otherwise(definition.name, definition.digest, saved_at + timedelta(hours=1))


def _find_declared_empty(reader: CatalogReader, definition: Definition) -> list[EmptyPart]:
    if definition.kind != "stream":
        return []
    return [
        EmptyPart(index, batch.declared_empty_because, batch.produced_by, batch.loaded_at)
        for batch in reader.batches_declared_empty(definition.name)
        for index in batch.covers
    ]


def explain_view(bench: Workbench, view: str, index: int | None) -> str:
    """What a view reads and is read by, and what a refresh of one of its parts would do and why."""
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        definition = known.find_view(view)
        key = fold(definition.name)
        snapshot = read_snapshot(reader, known, known.definitions)
        bounds = Bounds(snapshot)
        lines = _explain_definition(definition, bounds, known)
        if index is None:
            existing = snapshot.existing_parts(key)
            index = existing.last if existing else bounds.first(key)
        if index is not None:
            lines += ["", *_explain_part(reader, snapshot, bounds, definition, index)]
    return "\n".join(lines)


def _explain_definition(definition: Definition, bounds: Bounds, known: Known) -> list[str]:
    lines = [f"{definition.name}: a view with parts of {format_length(definition.length_seconds)}"]
    if definition.helper_of:
        lines[0] += f", a helper view of {definition.helper_of}"
    for rule in ("initialize", "update"):
        query = definition.query_for(rule)
        reads = ", ".join(str(reference) for reference in query.references) or "no part of anything"
        dimensions = f"; dimension tables {', '.join(query.dimensions)}" if query.dimensions else ""
        lines.append(f"  {rule.upper():10} {definition.name}[{query.variable}] reads {reads}{dimensions}")
    first = bounds.first(definition.name)
    if first is None:
        lines.append(f"  no first part: {bounds.explain_no_first(definition.name)}")
    else:
        lines.append(f"  first part {definition.describe_part(first)}: {bounds.explain_first(definition.name)}")
    if definition.translation is not None:
        lines += ["", *definition.translation.notes]
        lines += ["", definition.translation.diagram] if definition.translation.diagram else []
    return lines


def _explain_part(
    reader: CatalogReader, snapshot: Snapshot, bounds: Bounds, definition: Definition, index: int
) -> list[str]:
    key = fold(definition.name)
    lines = [definition.describe_part(index)]
    history = reader.current_versions(definition.name, PartSet.between(index, index))
    if history:
        version = history[0]
        lines.append(
            f"  version {version.version}, {version.rows} rows, made {format_time(version.created_at)} by "
            f"{version.produced_by or 'unknown'}"
        )
    else:
        lines.append("  does not exist")
    if index in bounds.domain(key):
        rule = bounds.rule(key, index)
        compiled = compile_part(definition, rule, index, snapshot.definitions, bounds.first)
        inputs = [InputRange(item.table, item.parts.low, item.parts.high) for item in compiled.inputs]
        versions, _ = reader.read_inputs(inputs)
        lines.append(f"  by {rule.upper()} from {', '.join(describe_inputs(versions)) or 'nothing that exists'}")
    readers = bounds.read_by(key, PartRange(index, index))
    existing = [(view, PartSet((span,)) & snapshot.existing_parts(fold(view.name))) for view, span in readers]
    names = [f"{view.name}[{parts}]" for view, parts in existing if parts]
    if names:
        lines.append(f"  read by {', '.join(names)}")
    agenda = Agenda(snapshot, {key: PartSet.between(index, index)})
    step = agenda.next()
    if step is not None:
        lines.append(f"  a refresh begins with {step.view}[{step.index}] by {step.rule.upper()}: {step.reason}")
    for item in (*agenda.skipped, *agenda.archived, *agenda.blocked):
        lines.append(f"  {item.view}[{item.parts}]: {item.reason}")
    if step is None and not (agenda.skipped or agenda.archived or agenda.blocked):
        lines.append("  up to date")
    return lines
