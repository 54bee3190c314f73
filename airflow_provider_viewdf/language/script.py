"""From the text of a script to checked definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

from sqlglot import exp

from airflow_provider_viewdf.definitions import Definition, Query, fold
from airflow_provider_viewdf.errors import CyclicDefinitionError, DefinitionError, DuplicateDefinitionError, locate
from airflow_provider_viewdf.language.binding import KnownTable, Rule, bind_query, find_table
from airflow_provider_viewdf.language.checks import (
    find_tables_called,
    refuse_reserved_outputs,
    refuse_shadowing_names,
    refuse_undetermined,
)
from airflow_provider_viewdf.language.dialect import parse_query
from airflow_provider_viewdf.language.digests import digest_definition
from airflow_provider_viewdf.language.expand import expand_script
from airflow_provider_viewdf.language.limits import check_size, refuse_deep_nesting
from airflow_provider_viewdf.language.ordering import check_order
from airflow_provider_viewdf.language.statements import Drop, Statement, read_drops, read_statements
from airflow_provider_viewdf.language.token_reader import Name
from airflow_provider_viewdf.translate import plain
from airflow_provider_viewdf.translate.joins import expand_key_joins, group_keys
from airflow_provider_viewdf.translate.tree import is_common_table

NOTHING: Mapping[str, Definition] = {}


def parse_script(text: str, known: Mapping[str, Definition] = NOTHING) -> list[Definition]:
    """Every statement of a script as a checked definition, in the script's order.

    `known` are the definitions that exist, by folded name. Statements may refer to these, and to each other in any
    order; one that defines a known name anew takes its place, and what DROP names is no longer known. A pattern or window query becomes several definitions: its
    helper views, which say whose they are, and the view itself.
    """
    check_size(text)
    return parse_stored_script(text, known)


def parse_stored_script(text: str, known: Mapping[str, Definition] = NOTHING) -> list[Definition]:
    """A script of statements that were accepted before, each by itself: together, and translated, they may be of any size."""
    return _parse(text, known) if known else list(_parse_alone(text))


# A task parses its script when the DAG is parsed, when it shows its SQL, and again when it works.
@lru_cache(maxsize=8)
def _parse_alone(text: str) -> tuple[Definition, ...]:
    return tuple(_parse(text, NOTHING))


def _parse(text: str, known: Mapping[str, Definition]) -> list[Definition]:
    with refuse_deep_nesting(text):
        statements = read_statements(text)
        known = _without(known, parse_drops(text))
        _check_names(statements, known, text)
        expansion = expand_script(statements, known, text)
        if expansion is None:
            return _define(text, statements, known)
        with expansion.places_errors():
            expanded = read_statements(expansion.text)
            _check_names(expanded, known, expansion.text)
            definitions = _define(expansion.text, expanded, known)
        return [expansion.restore(item, known) for item in definitions]


def read_texts(text: str) -> dict[str, str]:
    """The text of each statement of a script, by folded name; nothing if the script drops something or repeats a name."""
    with refuse_deep_nesting(text):
        statements = read_statements(text)
        texts = {fold(item.name.text): text[item.start : item.end] for item in statements}
        return texts if len(texts) == len(statements) and not read_drops(text) else {}


def parse_drops(text: str) -> list[Drop]:
    """What a script drops. A name is dropped once, and not defined as well."""
    drops = read_drops(text)
    written = {fold(item.name.text) for item in read_statements(text)} if drops else set()
    seen: set[str] = set()
    for item in drops:
        key, place = fold(item.name.text), (item.name.start, item.name.end)
        if key in seen:
            raise DuplicateDefinitionError(
                f"{item.name.text} is dropped twice.", text=text, start=place[0], end=place[1]
            )
        if key in written:
            raise DuplicateDefinitionError(
                f"{item.name.text} is both dropped and defined in this script; to change a definition, leave out the DROP "
                "and apply the new one.",
                text=text,
                start=place[0],
                end=place[1],
            )
        seen.add(key)
    return drops


def _without(known: Mapping[str, Definition], drops: Sequence[Drop]) -> Mapping[str, Definition]:
    """What is known once these are gone, and the helper views that served none but them."""
    gone = {fold(item.name.text) for item in drops}
    return {
        key: item
        for key, item in known.items()
        if key not in gone and not (item.owners and all(fold(owner) in gone for owner in item.owners))
    }


def expand_queries(text: str, known: Mapping[str, Definition] = NOTHING) -> str | None:
    """The script with its pattern and window queries written out as the views they become; None if it has none."""
    check_size(text)
    with refuse_deep_nesting(text):
        statements = read_statements(text)
        expansion = expand_script(statements, known, text)
    return None if expansion is None else expansion.text


def _define(text: str, statements: Sequence[Statement], known: Mapping[str, Definition]) -> list[Definition]:
    definitions = _Script(text, statements, known).define()
    written = {fold(item.name): item for item in definitions}
    check_order({**known, **written}, text, written)
    return definitions


def _check_names(statements: Sequence[Statement], known: Mapping[str, Definition], text: str) -> None:
    seen: dict[str, Statement] = {}
    for statement in statements:
        name = statement.name
        before = seen.setdefault(fold(name.text), statement)
        if before is not statement:
            line, _ = locate(text, before.name.start)
            raise DuplicateDefinitionError(
                f"{name.text} is defined twice; the first definition is in line {line}.",
                text=text,
                start=name.start,
                end=name.end,
            )
    names = {key: item.name for key, item in known.items()}
    names |= {fold(item.name.text): item.name.text for item in statements}
    for statement in statements:
        for table in find_tables_called(statement.name.text):
            if table in names:
                _fail_to_name(statement.name.text, names[table], statement.name, text)
    written = {fold(item.name.text): item.name for item in statements}
    for before_it in known.values():
        for table in find_tables_called(before_it.name):
            if table in written:
                _fail_to_name(before_it.name, written[table].text, written[table], text)


def _fail_to_name(name: str, table: str, place: Name, text: str) -> NoReturn:
    what = "its quarantine" if fold(name).endswith("_quarantine") else "one of its parts"
    raise DefinitionError(
        f"{name} cannot be defined beside {table}: it is what {what} is called in queries; choose another name.",
        text=text,
        start=place.start,
        end=place.end,
    )


@dataclass
class _Script:
    """The statements of one script while they are turned into definitions."""

    text: str
    statements: Sequence[Statement]
    known: Mapping[str, Definition]
    trees: dict[str, tuple[exp.Expr, exp.Expr]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    tables: dict[str, KnownTable] = field(default_factory=dict)

    def define(self) -> list[Definition]:
        views = {fold(item.name.text): item for item in self.statements if item.kind == "view"}
        for key, known in self.known.items():
            self.tables[key] = KnownTable(known.name, known.kind, known.length_seconds, known.keys)
        for item in self.statements:
            keys = tuple(key.text for key in item.keys)
            self.tables[fold(item.name.text)] = KnownTable(item.name.text, item.kind, item.length_seconds, keys)
        for key, item in views.items():
            self.trees[key] = self._parse(item)
            if not item.keys:
                self.tables[key] = replace(self.tables[key], keys=group_keys(self.trees[key][0]))
        for key in views:
            self._find_length(key, views, ())
        return [self._define(item) for item in self.statements]

    def _parse(self, item: Statement) -> tuple[exp.Expr, exp.Expr]:
        if item.initialize is None or item.update is None:
            tree = parse_query(item.plain, self.text)
            return tree, tree
        return parse_query(item.initialize.query, self.text), parse_query(item.update.query, self.text)

    def _find_length(self, key: str, views: Mapping[str, Statement], path: tuple[str, ...]) -> int:
        """The length of a view; of a plain view, from those of the tables it reads."""
        item = views.get(key)
        if item is None or item.initialize is not None or key in self.lengths:
            return self.tables[key].length_seconds
        if key in path:
            names = [f"{self.tables[name].name}[{plain.VARIABLE}]" for name in (*path[path.index(key) :], key)]
            raise CyclicDefinitionError(
                f"These views need each other within one part: {' -> '.join(names)}. "
                f"Let one of them read an earlier part.",
                text=self.text,
                start=item.name.start,
                end=item.name.end,
            )

        def length_of(table: exp.Table) -> int:
            found = find_table(table, self.tables, self.text)
            return self._find_length(fold(found.name), views, (*path, key))

        tree = self.trees[key][0]
        name = item.name.text
        longest = plain.find_length(tree, name, length_of, self.text)
        if item.length_seconds:
            plain.check_length(name, item.length_seconds, longest, self.text, item.length_place)
        length = item.length_seconds or longest
        self.lengths[key] = length
        self.tables[key] = replace(self.tables[key], length_seconds=length)
        return length

    def _define(self, item: Statement) -> Definition:
        definition = Definition(
            name=item.name.text,
            kind=item.kind,
            text=self.text[item.start : item.end],
            digest="",
            length_seconds=self.tables[fold(item.name.text)].length_seconds,
            columns=item.columns,
            keys=self.tables[fold(item.name.text)].keys,
            unique=tuple(name.text for name in item.unique),
            ordered=item.ordered,
            location=item.location,
            format=item.format,
            options=item.options,
            complete_when=item.complete_when,
            complete_after_seconds=item.complete_after_seconds,
            starting=item.starting,
            starting_latest=item.starting_latest,
            retain_seconds=item.retain_seconds,
            late_rows=item.late_rows,
            offset=item.start,
        )
        if item.kind == "view":
            definition = self._define_queries(definition, item)
        return replace(definition, digest=digest_definition(definition))

    def _define_queries(self, definition: Definition, item: Statement) -> Definition:
        initialize, update = self.trees[fold(item.name.text)]
        name, length = definition.name, definition.length_seconds
        if item.initialize is None or item.update is None:
            tree = plain.add_subscripts(initialize, name, length, self._length_of, self.text)
            rule = Rule(name, f"the view {name}", plain.VARIABLE, length, is_initialize=False)
            query = self._bind(tree, rule, item.start)
            return replace(definition, initialize=query, update=query)
        rules = [
            Rule(name, statement.head.text, statement.variable, length, is_initialize=statement is item.initialize)
            for statement in (item.initialize, item.update)
        ]
        return replace(
            definition,
            initialize=self._bind(initialize, rules[0], item.start),
            update=self._bind(update, rules[1], item.start),
        )

    def _bind(self, tree: exp.Expr, rule: Rule, offset: int) -> Query:
        refuse_undetermined(tree, rule.view, self.text)
        refuse_reserved_outputs(tree, rule.view, self.text)
        query = bind_query(tree, rule, self.tables, self.text, offset)
        refuse_shadowing_names(tree, [reference.table for reference in query.references], self.text)
        expand_key_joins(tree, self._keys_of, self.text)
        return query

    def _length_of(self, table: exp.Table) -> int:
        return find_table(table, self.tables, self.text).length_seconds

    def _keys_of(self, table: exp.Table) -> tuple[str, ...]:
        found = self.tables.get(fold(table.name))
        return found.keys if found is not None and not is_common_table(table) else ()
