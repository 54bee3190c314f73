"""Find the columns of views by asking Spark's own analyzer, over empty inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from airflow_provider_viewdf.actions.refusals import Place, explain_refusal, find_name, find_words
from airflow_provider_viewdf.actions.workbench import Workbench, dimension_table
from airflow_provider_viewdf.compiler import CompiledPart, compile_part
from airflow_provider_viewdf.compiler.widening import can_widen
from airflow_provider_viewdf.definitions import OWN_PREFIX, Column, Definition, Rule, fold
from airflow_provider_viewdf.engine.engine import Engine, InputTable
from airflow_provider_viewdf.errors import (
    DefinitionError,
    QueryRefusedError,
    SchemaMismatchError,
)
from airflow_provider_viewdf.translate.pattern.pieces import PIECES_SOURCE

RESERVED = ("part", "part_timestamp")


def analyze_views(
    bench: Workbench, definitions: Mapping[str, Definition], new: Sequence[Definition], script: str
) -> dict[str, Definition]:
    """The new definitions, and the views that depend on them, with their columns, by folded name."""
    found = dict(definitions)
    touched = _find_touched(definitions, new)
    views = [key for key in _sort_by_initialize(definitions) if key in touched]
    if views:
        engine = bench.open_engine()
        for key in views:
            columns = _analyze(engine, found, key, "initialize", script)
            _check_names(found[key], columns, script)
            found[key] = found[key].with_columns(columns)
        for key in views:
            _check_update(found[key], _analyze(engine, found, key, "update", script), script)
    return {key: found[key] for key in (*(fold(item.name) for item in new), *views)}


def _find_touched(definitions: Mapping[str, Definition], new: Sequence[Definition]) -> set[str]:
    """The new views, and every view that reads something new, directly or not."""
    touched = {fold(item.name) for item in new}
    while True:
        readers = {
            key
            for key, definition in definitions.items()
            if key not in touched and touched & {fold(name) for name in _names_read(definition)}
        }
        if not readers:
            return {key for key in touched if definitions[key].kind == "view"}
        touched |= readers


def _names_read(definition: Definition) -> list[str]:
    return [*(reference.table for reference in definition.references), *definition.dimensions]


def _sort_by_initialize(definitions: Mapping[str, Definition]) -> list[str]:
    """Views in an order in which the columns of each follow from those before it."""
    order: list[str] = []

    def visit(key: str) -> None:
        if key in order or definitions[key].kind != "view":
            return
        for reference in definitions[key].query_for("initialize").references:
            visit(fold(reference.table))
        order.append(key)

    for key in definitions:
        visit(key)
    return order


def _analyze(
    engine: Engine, definitions: Mapping[str, Definition], key: str, rule: Rule, script: str
) -> tuple[Column, ...]:
    definition = definitions[key]
    # Any part will do: the columns are the same for all.
    index = definition.partitioning.index_at(datetime.now(UTC))
    compiled = compile_part(definition, rule, index, definitions)
    try:
        return engine.analyze(
            compiled.sql,
            empty_inputs(definition, compiled, definitions),
            [dimension_table(definitions[fold(name)]) for name in compiled.dimensions],
        )
    except QueryRefusedError as error:
        person = _written_by_a_person(definition, definitions)
        if not error.name:
            _refuse_piece(engine, definitions, person, script)
        raise _explain(error, person, rule, script) from None


def empty_inputs(
    definition: Definition, compiled: CompiledPart, definitions: Mapping[str, Definition]
) -> list[InputTable]:
    return [
        InputTable(item.name, definitions[fold(item.table)].columns_for(definition.name), (), item.has_part_column)
        for item in compiled.inputs
    ]


def _written_by_a_person(definition: Definition, definitions: Mapping[str, Definition]) -> Definition:
    """The view itself, or the one that it was generated for."""
    return next((definitions[fold(owner)] for owner in definition.owners if fold(owner) in definitions), definition)


def _refuse_piece(engine: Engine, definitions: Mapping[str, Definition], definition: Definition, script: str) -> None:
    """Raise an error about the piece of a pattern query that is wrong, if it can be found."""
    for piece in definition.translation.pieces if definition.translation is not None else ():
        table = InputTable(PIECES_SOURCE, definitions[fold(piece.source)].shown_columns, (), has_part_column=True)
        place = find_words(re.escape(piece.written), *_find_statement(definition, script))
        try:
            columns = engine.analyze(piece.sql, [table], [])
        except QueryRefusedError as error:
            raise explain_refusal(error, f"query of {definition.name}", place) from None
        if problem := piece.find_problem(columns[0].type.lower()):
            raise DefinitionError(problem, **place)


def _explain(error: QueryRefusedError, definition: Definition, rule: Rule, script: str) -> DefinitionError:
    place = _find_name(error.name, definition, script) if error.name else _find_rule(rule, definition, script)
    has_rules = definition.translation is None and definition.initialize is not definition.update
    return explain_refusal(error, f"{f'{rule.upper()} ' if has_rules else ''}query of {definition.name}", place)


def _find_name(name: str, definition: Definition, script: str) -> Place:
    return find_name(name, *_find_statement(definition, script))


def _find_rule(rule: Rule, definition: Definition, script: str) -> Place:
    # A plain or translated view has neither word, and gets its error at its beginning.
    return find_words(rf"\b{rule}\s+{re.escape(definition.name)}\b", *_find_statement(definition, script))


def _find_statement(definition: Definition, script: str) -> tuple[str, int, int]:
    begin = script.find(definition.text)
    if begin < 0:
        # A view of an earlier script, which the new definitions no longer let stand.
        script, begin = definition.text, 0
    return script, begin, begin + len(definition.text)


def _check_names(definition: Definition, columns: tuple[Column, ...], script: str) -> None:
    seen: set[str] = set()
    for column in columns:
        key = fold(column.name)
        place = _find_name(column.name, definition, script)
        if key in RESERVED or (key.startswith("__") and not column.is_own):
            raise DefinitionError(
                f"{definition.name} cannot have a column named {column.name}: the name is reserved; "
                "give it another with AS.",
                **place,
            )
        if "void" in column.type:
            raise DefinitionError(
                f"Column {column.name} of {definition.name} is always NULL and has no type; give it one with CAST.",
                **place,
            )
        if key in seen:
            raise DefinitionError(
                f"{definition.name} has two columns named {column.name}; give one of them another name with AS.",
                **place,
            )
        seen.add(key)
    if all(column.is_own for column in columns):
        raise DefinitionError(
            f"{definition.name} has no column that others can see, since the names of all begin with {OWN_PREFIX}; "
            "give one of them another name with AS.",
            **_find_rule("initialize", definition, script),
        )


def _check_update(definition: Definition, columns: tuple[Column, ...], script: str) -> None:
    expected = definition.columns
    place = _find_rule("update", definition, script)
    if len(columns) != len(expected):
        raise SchemaMismatchError(
            f"UPDATE of {definition.name} yields {_count(columns)}, but INITIALIZE yields {_count(expected)}: "
            f"{', '.join(column.name for column in expected)}. Make them the same, in the same order.",
            **place,
        )
    for number, (given, wanted) in enumerate(zip(columns, expected, strict=True), start=1):
        if not can_widen(given.type, wanted.type):
            raise SchemaMismatchError(
                f"Column {number} of {definition.name} is {wanted.name} {wanted.type} by INITIALIZE, and UPDATE yields "
                f"{given.type}, which does not fit into it without loss; use CAST in one of them.",
                **place,
            )


def _count(columns: tuple[Column, ...]) -> str:
    return "1 column" if len(columns) == 1 else f"{len(columns)} columns"
