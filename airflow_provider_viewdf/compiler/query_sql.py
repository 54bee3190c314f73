"""From a query of one's own, over whatever is defined, to Spark SQL and the parts that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.compiler.add_part_columns import add_part_columns
from airflow_provider_viewdf.compiler.name_part_tables import name_part_tables, write_name
from airflow_provider_viewdf.compiler.part_sql import write_sql
from airflow_provider_viewdf.compiler.prune_parts import prune_parts
from airflow_provider_viewdf.compiler.reading import Compilation, PartRead, name_parts
from airflow_provider_viewdf.compiler.write_part_times import write_part_times
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import (
    ArchivedPartError,
    LanguageError,
    MissingPartError,
    SubscriptError,
    TimeFormatError,
)
from airflow_provider_viewdf.language.binding import KnownTable, find_table
from airflow_provider_viewdf.language.dialect import parse_query, read_tokens
from airflow_provider_viewdf.language.limits import check_size, refuse_deep_nesting
from airflow_provider_viewdf.language.subscript_syntax import SubscriptRange, Term, bind_term
from airflow_provider_viewdf.parts import LATEST, PartRange, PartSet, format_time, parse_time
from airflow_provider_viewdf.translate.joins import expand_key_joins
from airflow_provider_viewdf.translate.tree import PartTable, is_common_table, named_tables, place_of, replace_table

QUARANTINE = "_quarantine"

PASSES = (write_part_times, add_part_columns, name_part_tables)


@dataclass(frozen=True, slots=True)
class QueryInput:
    """Parts of a table, or its quarantine, that a query reads as one table called `name`."""

    name: str
    table: str
    parts: PartSet
    has_part_column: bool
    is_quarantine: bool = False


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query for Spark, and what it reads. `dimensions` are pairs: the name in the SQL, and the table's."""

    sql: str
    inputs: tuple[QueryInput, ...]
    dimensions: tuple[tuple[str, str], ...]


def compile_query(
    sql: str,
    definitions: Mapping[str, Definition],
    existing: Callable[[str], PartSet],
    suffix: str,
    archived: Callable[[str], PartSet] = lambda table: PartSet(),
) -> CompiledQuery:
    """A query over tables, views and dimension tables. A table without a subscript means all its parts that are kept.

    Names in the SQL end with `suffix`, so that two queries never share a temporary view.
    """
    check_size(sql)
    with refuse_deep_nesting(sql):
        return _compile(sql, definitions, existing, suffix, archived)


def _compile(
    sql: str,
    definitions: Mapping[str, Definition],
    existing: Callable[[str], PartSet],
    suffix: str,
    archived: Callable[[str], PartSet],
) -> CompiledQuery:
    tree = parse_query(_read_query(sql), sql)
    tables = {
        key: KnownTable(item.name, item.kind, item.length_seconds, item.keys) for key, item in definitions.items()
    }
    compilation = Compilation(sql)
    resolver = _Resolver(sql, compilation, definitions, tables, existing, suffix, archived)
    expand_key_joins(tree, resolver.keys_of, sql)
    for table in list(named_tables(tree)):
        resolver.resolve(table)
    for apply_pass in PASSES:
        tree = apply_pass(tree, compilation)
    inputs = [
        QueryInput(read.name, read.table, read.parts, read.has_part_column) for read in compilation.reads.values()
    ]
    return CompiledQuery(write_sql(tree), (*inputs, *resolver.quarantines.values()), tuple(resolver.dimensions.items()))


def _read_query(sql: str) -> list[Token]:
    """The tokens of the one query that a text holds."""
    tokens = read_tokens(sql)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise LanguageError("The query is empty; write a SELECT.")
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise LanguageError(
                "Only one query can be asked at a time; leave out what follows the semicolon.",
                text=sql,
                start=token.start,
                end=token.end + 1,
            )
    return tokens


@dataclass
class _Resolver:
    """Finds out what each table of a query means, and puts its new name in its place."""

    text: str
    compilation: Compilation
    definitions: Mapping[str, Definition]
    tables: Mapping[str, KnownTable]
    existing: Callable[[str], PartSet]
    suffix: str
    archived: Callable[[str], PartSet]

    def __post_init__(self) -> None:
        self.dimensions: dict[str, str] = {}
        self.quarantines: dict[str, QueryInput] = {}

    def keys_of(self, table: exp.Table) -> tuple[str, ...]:
        known = self.tables.get(fold(table.name))
        return known.keys if known is not None else ()

    def resolve(self, table: exp.Table) -> None:
        if stream := self._quarantined(table):
            name = f"{stream.name}{QUARANTINE}{self.suffix}"
            self.quarantines[name] = QueryInput(name, stream.name, PartSet(), False, is_quarantine=True)
            self._rename(table, name)
            return
        known = find_table(table, self.tables, self.text)
        definition = self.definitions[fold(known.name)]
        if known.kind == "dimension":
            if isinstance(table, PartTable):
                self._fail(f"{known.name} is a dimension table, which has no parts; leave the subscript out.", table)
            name = f"{known.name}{self.suffix}"
            self.dimensions[name] = known.name
            self._rename(table, name)
        elif isinstance(table, PartTable):
            table.meta["read"] = self._read(definition, self._named_parts(table, definition))
        else:
            kept = self.existing(definition.name) - self.archived(definition.name)
            parts = kept & prune_parts(table, definition.partitioning, self._has_parts)
            node = PartTable(**table.args)
            node.meta.update(table.meta)
            node.meta["read"] = self._read(definition, parts)
            table.replace(node)

    def _has_parts(self, source: exp.Expr) -> bool:
        if not isinstance(source, exp.Table) or is_common_table(source):
            return isinstance(source, PartTable)
        known = self.tables.get(fold(source.name))
        return known is not None and known.kind != "dimension"

    def _quarantined(self, table: exp.Table) -> Definition | None:
        if not fold(table.name).endswith(QUARANTINE) or table.args.get("db") or fold(table.name) in self.definitions:
            return None
        stream = self.definitions.get(fold(table.name).removesuffix(QUARANTINE))
        if stream is None or stream.kind != "stream":
            return None
        if isinstance(table, PartTable):
            self._fail(f"{table.name} has no parts; leave the subscript out.", table)
        return stream

    def _rename(self, table: exp.Table, name: str) -> None:
        alias = table.args.get("alias") or exp.TableAlias(this=write_name(table.name))
        replace_table(table, exp.Table(this=write_name(name), alias=alias))

    def _read(self, definition: Definition, parts: PartSet) -> PartRead:
        key = (fold(definition.name), parts)
        if key not in self.compilation.reads:
            if len(parts.ranges) == 1:
                name = name_parts(definition.name, parts.ranges[0])
            else:
                name = f"{definition.name}_parts{len(self.compilation.reads) + 1}"
            name = f"{name}{self.suffix}"
            self.compilation.reads[key] = PartRead(name, definition.name, parts, definition.partitioning)
        return self.compilation.reads[key]

    def _named_parts(self, table: PartTable, definition: Definition) -> PartSet:
        subscript = table.meta["subscript"]
        assert isinstance(subscript, SubscriptRange)
        low = self._index(subscript.low, definition)
        high = low if subscript.high is subscript.low else self._index(subscript.high, definition)
        start, end = place_of(table)
        if low > high:
            raise SubscriptError(
                f"The range {subscript.low} .. {subscript.high} runs backwards; write the earlier part first.",
                text=self.text,
                start=start,
                end=end,
            )
        parts = PartSet((PartRange(low, high),))
        if subscript.is_partial and (existing := self.existing(definition.name)):
            parts &= PartSet.between(existing.first, LATEST)
        gone = parts & self.archived(definition.name)
        if gone:
            raise ArchivedPartError(
                f"The query reads {definition.describe_parts(gone)}, archived: the rows are no longer kept. Leave it out."
            )
        missing = parts - self.existing(definition.name)
        if missing:
            raise MissingPartError(explain_missing(definition, missing))
        return parts

    def _index(self, term: Term, definition: Definition) -> int:
        if term.operator == "text":
            try:
                return definition.partitioning.index_at(parse_time(term.value))
            except TimeFormatError as error:
                raise SubscriptError(str(error), text=self.text, start=term.start, end=term.end) from None
        for name in _names_in(term):
            raise SubscriptError(
                f"{name.value} is not in scope: outside of a view there is no subscript variable; "
                f"write a number, or a time in quotes.",
                text=self.text,
                start=name.start,
                end=name.end,
            )
        return bind_term(term, "j", "", self.text)(0)

    def _fail(self, message: str, table: exp.Table) -> None:
        start, end = place_of(table)
        raise LanguageError(message, text=self.text, start=start, end=end)


def _names_in(term: Term) -> list[Term]:
    if term.operator == "name":
        return [term]
    return [name for operand in term.operands for name in _names_in(operand)]


def explain_missing(definition: Definition, missing: PartSet) -> str:
    """Which parts a query lacks, and what to do about it."""
    partitioning = definition.partitioning
    which = "which do" if len(missing) > 1 else "which does"
    read = f"The query reads {definition.describe_parts(missing)}"
    try:
        first, end = (format_time(partitioning.start_of(missing.first)), format_time(partitioning.end_of(missing.last)))
    except OverflowError:
        return f"{read}, {which} not exist."
    if definition.kind == "stream":
        have = "have" if len(missing) > 1 else "has"
        them, where = ("them", f"--at {first} --until {end}") if len(missing) > 1 else ("it", f"--at {first}")
        return (
            f"{read}, which {have} not been loaded. Load {them}, or declare {them} empty: "
            f"viewdf declare-empty {definition.name} {where}"
        )
    command = f"viewdf refresh {definition.name} --from {first} --to {end}"
    return f"{read}, {which} not exist. Compute what is missing: {command}"
