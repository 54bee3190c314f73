"""From a definition and many of its parts to one statement of Spark SQL.

The statement joins a small table, which has a row for each part to be computed, laterally with the view's query. Whatever
in the query depends on the part is a column of that row: which parts of a table are read, the part's number, its end. Spark
itself turns that into joins on the part, for every query that it knows to be the same afterwards, and refuses the others
when it analyzes the statement. Those are computed by `unite_parts`: one statement for each part, with UNION ALL between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from airflow_provider_viewdf.compiler.add_part_columns import add_part_columns
from airflow_provider_viewdf.compiler.bind_part_number import replace_value
from airflow_provider_viewdf.compiler.bind_time import find_clock
from airflow_provider_viewdf.compiler.name_part_tables import write_name
from airflow_provider_viewdf.compiler.part_sql import CompiledPart, PartInput, compile_part, write_sql
from airflow_provider_viewdf.compiler.reading import Compilation, PartRead, read_of
from airflow_provider_viewdf.compiler.write_part_times import write_part_times
from airflow_provider_viewdf.definitions import Definition, PartReference, Rule, fold
from airflow_provider_viewdf.language.limits import refuse_deep_nesting
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.translate.tree import (
    PART,
    PART_NUMBER,
    PART_TIMESTAMP,
    PartTable,
    named_tables,
    replace_table,
)

# The column that says which part a row of a batch belongs to.
BATCH_PART = "__part"

FirstOf = Callable[[str], int | None]

_BATCH, _ROWS, _END = "__of", "__rows", "__end"


@dataclass(frozen=True, slots=True)
class BatchInput:
    """Parts that a statement reads as one table called `name`; with `has_part_column`, it must have a column PART."""

    name: str
    table: str
    parts: PartSet
    has_part_column: bool


@dataclass(frozen=True, slots=True)
class CompiledBatch:
    """A statement that computes many parts: its first column says which. `values` is a table of numbers that it reads."""

    sql: str
    inputs: tuple[BatchInput, ...]
    dimensions: tuple[str, ...]
    values_name: str = ""
    values_columns: tuple[str, ...] = ()
    values: tuple[tuple[int, ...], ...] = ()


def find_inputs(
    definition: Definition,
    rule: Rule,
    index: int,
    definitions: Mapping[str, Definition],
    first_of: FirstOf | None = None,
) -> list[tuple[str, PartRange]]:
    """What `compile_part` finds to be in reach, in its order, without compiling."""
    found: dict[tuple[str, PartRange], PartRange] = {}
    for reference in _references(definition, rule):
        key = (fold(reference.table), _reads(reference, index, first_of))
        reach = reference.reads(index)
        found[key] = min(found.get(key, reach), reach, key=lambda item: item.low)
    return [(definitions[table].name, reach) for (table, _), reach in found.items()]


def _reads(reference: PartReference, index: int, first_of: FirstOf | None) -> PartRange:
    return reference.reads(index) if first_of is None else reference.reads_from(index, first_of(reference.table))


def _references(definition: Definition, rule: Rule) -> list[PartReference]:
    tables = named_tables(definition.query_for(rule).tree)
    return [table.reference for table in tables if isinstance(table, PartTable)]


def compile_batch(
    definition: Definition,
    rule: Rule,
    indexes: Sequence[int],
    definitions: Mapping[str, Definition],
    suffix: str,
    first_of: FirstOf | None = None,
) -> CompiledBatch:
    """The statement that computes these parts at once. `suffix` makes the names of what it reads its own.

    `first_of` finds the first part of a table, at which PARTIAL ranges are cut.
    """
    query = definition.query_for(rule)
    compilation = Compilation(
        definition.text, definition.offset, None, definition.partitioning, {**definitions}, definition.name
    )
    writer = _BatchWriter(definitions, indexes, suffix, compilation, first_of)
    with refuse_deep_nesting(definition.text):
        tree: exp.Expr = query.tree.copy()
        for table in list(named_tables(tree)):
            if isinstance(table, PartTable):
                writer.bind(table)
        _bind_part_number(tree)
        _bind_time(tree)
        tree = write_part_times(tree, compilation)
        tree = add_part_columns(tree, compilation)
        for table in list(tree.find_all(PartTable)):
            writer.write(table)
        inner = write_sql(tree)
    partitioning = definition.partitioning
    rows = [(index, partitioning.end_seconds(index), *writer.find_ends(index)) for index in indexes]
    columns = [BATCH_PART, _END, *(f"__{side}{number}" for number in range(writer.count) for side in _SIDES)]
    sql = (
        f"SELECT {_BATCH}.{BATCH_PART}, {_ROWS}.*\nFROM {writer.values_name} AS {_BATCH}, LATERAL (\n"
        f"{inner}\n) AS {_ROWS}"
    )
    return CompiledBatch(
        sql, tuple(writer.inputs.values()), query.dimensions, writer.values_name, tuple(columns), tuple(rows)
    )


_SIDES = ("low", "high")


class _BatchWriter:
    """Writes, in the place of each part table, the rows that the part being computed reads."""

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        indexes: Sequence[int],
        suffix: str,
        compilation: Compilation,
        first_of: FirstOf | None,
    ) -> None:
        self._definitions = definitions
        self._indexes = indexes
        self._suffix = suffix
        self._compilation = compilation
        self._first_of = first_of
        self.values_name = f"batch_{suffix}"
        self.inputs: dict[str, BatchInput] = {}
        self._references: list[PartReference] = []

    @property
    def count(self) -> int:
        return len(self._references)

    def find_ends(self, index: int) -> list[int]:
        """The first and the last part that each reference reads for a part."""
        return [
            end for item in self._references for end in (self._reads(item, index).low, self._reads(item, index).high)
        ]

    def _reads(self, reference: PartReference, index: int) -> PartRange:
        return _reads(reference, index, self._first_of)

    def bind(self, table: PartTable) -> None:
        reference = table.reference
        definition = self._definitions[fold(reference.table)]
        parts = PartSet.of(self._reads(reference, index) for index in self._indexes)
        name = f"{definition.name}_{self._suffix}"
        before = self.inputs.get(name)
        self.inputs[name] = BatchInput(
            name, definition.name, parts if before is None else before.parts | parts, has_part_column=True
        )
        if reference not in self._references:
            self._references.append(reference)
        # As a read of many parts, so that PART is a column and no constant.
        table.meta["read"] = PartRead(name, definition.name, PartSet(), definition.partitioning)

    def write(self, table: PartTable) -> None:
        read = read_of(table)
        number = self._references.index(table.reference)
        definition = self._definitions[fold(read.table)]
        columns = [f"__t.{_quote(column.name)}" for column in definition.shown_columns]
        if id(table) in self._compilation.with_part_columns:
            columns += [
                f"__t.{PART}",
                f"timestamp_seconds(__t.{PART} * {read.partitioning.length_seconds}) AS {PART_TIMESTAMP}",
            ]
        reference = table.reference
        if str(reference.low) == str(reference.high):
            rows = f"FROM {_quote(read.name)} AS __t WHERE __t.{PART} = {_BATCH}.__low{number}"
        else:
            # An equality, where BETWEEN would compare every row with every part.
            reads = (
                f"SELECT {BATCH_PART} AS __for, explode(sequence(__low{number}, __high{number})) AS __read "
                f"FROM {self.values_name}"
            )
            rows = (
                f"FROM {_quote(read.name)} AS __t JOIN ({reads}) AS __r ON __t.{PART} = __r.__read "
                f"WHERE __r.__for = {_BATCH}.{BATCH_PART}"
            )
        alias = table.args.get("alias") or exp.TableAlias(this=write_name(table.name))
        select = sqlglot.parse_one(f"SELECT {', '.join(columns)} {rows}", dialect="spark")
        replace_table(table, exp.Subquery(this=select, alias=alias))


def _bind_part_number(tree: exp.Expr) -> None:
    for column in list(tree.find_all(exp.Column)):
        if fold(column.name) == PART_NUMBER and not column.table:
            replace_value(column, exp.column(BATCH_PART, table=_BATCH), PART_NUMBER)


def _bind_time(tree: exp.Expr) -> None:
    end = f"timestamp_seconds({_BATCH}.{_END})"
    for node, name in find_clock(tree):
        text = {
            "current_date": f"CAST({end} AS DATE)",
            "curdate": f"CAST({end} AS DATE)",
            "localtimestamp": f"CAST({end} AS TIMESTAMP_NTZ)",
            "unix_timestamp": f"{_BATCH}.{_END}",
        }.get(name, end)
        replace_value(node, sqlglot.parse_one(text, dialect="spark"), f"{name}()")


def _quote(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def unite_parts(
    definition: Definition,
    rule: Rule,
    indexes: Sequence[int],
    definitions: Mapping[str, Definition],
    first_of: FirstOf | None = None,
) -> CompiledBatch | None:
    """One statement for each part, with UNION ALL between them; None if two of them give one name two meanings."""
    compiled: dict[int, CompiledPart] = {
        index: compile_part(definition, rule, index, definitions, first_of) for index in indexes
    }
    inputs: dict[str, PartInput] = {}
    for part in compiled.values():
        for item in part.inputs:
            # Two parts may reach further back than the table, one more than the other, and read the same of it.
            known = inputs.setdefault(item.name, item)
            if (known.table, known.parts, known.has_part_column) != (item.table, item.parts, item.has_part_column):
                return None
    statements = [
        f"SELECT CAST({index} AS BIGINT) AS {BATCH_PART}, {_ROWS}.* FROM (\n{part.sql}\n) AS {_ROWS}"
        for index, part in compiled.items()
    ]
    return CompiledBatch(
        "\nUNION ALL\n".join(statements),
        tuple(
            BatchInput(item.name, item.table, PartSet((item.parts,)), item.has_part_column) for item in inputs.values()
        ),
        definition.query_for(rule).dimensions,
    )
