"""Verify: compute views again from the tables alone, and compare with what is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_provider_viewdf.actions.refresh import input_tables
from airflow_provider_viewdf.actions.workbench import Known, Workbench, dimension_table, read_snapshot
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.compiler import compile_part
from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.engine.engine import InputTable
from airflow_provider_viewdf.engine.rounding import find_floats
from airflow_provider_viewdf.parts import EPOCH, PartSet
from airflow_provider_viewdf.planning import Agenda, Bounds, Snapshot
from airflow_provider_viewdf.planning.snapshot import ancestors_of
from airflow_provider_viewdf.reports import Difference, VerifyReport
from airflow_provider_viewdf.versions import InputRange, PartVersion, directory_of

OnChecked = Callable[[str, int, int, int], None]


@dataclass(slots=True)
class _Run:
    """One verification: where it writes, and what it has computed so far."""

    bench: Workbench
    known: Known
    reader: CatalogReader
    scratch: str
    made: dict[tuple[str, int], PartVersion] = field(default_factory=dict)


def verify_views(bench: Workbench, views: Sequence[str], on_checked: OnChecked | None) -> VerifyReport:
    with bench.at_work() as working:
        return _verify(working, views, on_checked)


def _verify(bench: Workbench, views: Sequence[str], on_checked: OnChecked | None) -> VerifyReport:
    started = time.monotonic()
    scratch = f".staging/verify-{bench.new_name()}"
    differences: list[Difference] = []
    checked: dict[str, list[int]] = {}
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        keys = [fold(known.find_view(name).name) for name in views] if views else _all_views(known)
        names = ancestors_of(known.definitions, keys)
        stored = read_snapshot(reader, known, names)
        # What an earlier definition made, and was left so, is given: it cannot be computed any more.
        given = {
            key: reader.parts_made_otherwise(key, known.definitions[key].digest)
            for key in names
            if known.definitions[key].kind == "view"
        }
        bare = _forget_views(stored, given)
        agenda = Agenda(bare, {key: stored.existing_parts(key) for key in keys})
        run = _Run(bench, known, reader, scratch)
        try:
            done = 0
            while (step := agenda.next()) is not None:
                _compute(run, agenda.bounds, known.find(step.view), step.index, step.rule)
                agenda.record(step)
                done += 1
                key = fold(step.view)
                if key in keys and step.index in stored.existing_parts(key):
                    checked.setdefault(step.view, []).append(step.index)
                    found = _compare(run, known.find(step.view), step.index, stored)
                    differences += [found] if found else []
                if on_checked is not None:
                    on_checked(step.view, step.index, done, done + agenda.remaining)
        finally:
            bench.files.delete(scratch)
    return VerifyReport(
        tuple((name, PartSet.of_indexes(indexes)) for name, indexes in checked.items()),
        tuple(differences),
        time.monotonic() - started,
        (*agenda.archived, *agenda.blocked),
        tuple((known.definitions[key].name, given[key]) for key in keys if given[key]),
    )


def _all_views(known: Known) -> list[str]:
    return [key for key, definition in known.definitions.items() if definition.kind == "view"]


def _forget_views(snapshot: Snapshot, given: Mapping[str, PartSet]) -> Snapshot:
    """The same world with no view computed yet, but for what is given."""
    existing = {
        key: given[key] if snapshot.definitions[key].kind == "view" else parts
        for key, parts in snapshot.existing.items()
    }
    return replace(snapshot, existing=existing, stale={}, initialized={}, retired={})


def _compute(run: _Run, bounds: Bounds, definition: Definition, index: int, rule: Rule) -> None:
    compiled = compile_part(definition, rule, index, run.known.definitions, bounds.first)
    versions: list[PartVersion] = []
    for item in compiled.inputs:
        if run.known.find(item.table).kind == "stream":
            versions += run.reader.read_inputs([InputRange(item.table, item.parts.low, item.parts.high)])[0]
        else:
            versions += [_find_made(run, item.table, part) for part in item.parts]
    location = f"{run.scratch}/{definition.name}/{index}/v1"
    digest = run.bench.open_engine().compute(
        compiled.sql,
        input_tables(run.bench, definition.name, compiled, run.known.definitions, versions),
        [dimension_table(run.known.find(name)) for name in compiled.dimensions],
        definition.columns,
        location,
    )
    run.made[fold(definition.name), index] = PartVersion(
        definition.name, index, 1, location if digest.rows else "", digest, "", (), "", None, EPOCH, ""
    )


def _find_made(run: _Run, view: str, index: int) -> PartVersion:
    """A part as it was computed for this verification; or as it is stored, if it is given."""
    made = run.made.get((fold(view), index))
    return made or run.reader.current_versions(view, PartSet.between(index, index))[0]


def _compare(run: _Run, definition: Definition, index: int, stored: Snapshot) -> Difference | None:
    version = run.reader.current_versions(definition.name, PartSet.between(index, index))[0]
    again = run.made[fold(definition.name), index]
    engine = run.bench.open_engine()
    if version.is_retired:
        # Of floating-point numbers that are gone, nobody can say whether they differ by more than rounding.
        same = version.rows == again.rows if find_floats(definition.columns) else version.digest == again.digest
        return None if same else Difference(definition.name, index, "its rows are gone, and were others than these")
    if version.location and not run.bench.files.exists(directory_of(version.location)):
        return Difference(definition.name, index, f"the files of version {version.version} are gone")
    columns = definition.columns
    tables = [
        InputTable(name, columns, ((index, item.location),) if item.location else ())
        for name, item in (("stored", version), ("recomputed", again))
    ]
    only_stored, only_recomputed = engine.differences(tables[0], tables[1], columns)
    if not only_stored and not only_recomputed:
        return None
    is_stale = index in stored.stale_parts(fold(definition.name))
    reason = "stale: refresh it" if is_stale else "the stored rows are not what the query yields"
    return Difference(definition.name, index, reason, tuple(only_stored), tuple(only_recomputed))
