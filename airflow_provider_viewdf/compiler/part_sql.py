"""From a definition and a part to one statement of Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_viewdf.compiler.add_part_columns import add_part_columns
from airflow_provider_viewdf.compiler.bind_part_number import bind_part_number
from airflow_provider_viewdf.compiler.bind_subscripts import bind_subscripts
from airflow_provider_viewdf.compiler.bind_time import bind_time
from airflow_provider_viewdf.compiler.name_part_tables import name_part_tables
from airflow_provider_viewdf.compiler.reading import Compilation
from airflow_provider_viewdf.compiler.write_part_times import write_part_times
from airflow_provider_viewdf.definitions import Definition, Rule
from airflow_provider_viewdf.language.limits import refuse_deep_nesting
from airflow_provider_viewdf.parts import PartRange

PASSES = (
    bind_subscripts,
    bind_part_number,
    bind_time,
    write_part_times,
    add_part_columns,
    name_part_tables,
)


@dataclass(frozen=True, slots=True)
class PartInput:
    """Parts that a statement reads as one table called `name`; with `has_part_column`, it must have a column PART.

    `reach` are the parts that it would read if they existed: more than `parts` if a partial range is cut.
    """

    name: str
    table: str
    parts: PartRange
    has_part_column: bool
    reach: PartRange


@dataclass(frozen=True, slots=True)
class CompiledPart:
    """The statement that computes a part, and the tables it reads. Dimension tables keep their names."""

    sql: str
    inputs: tuple[PartInput, ...]
    dimensions: tuple[str, ...]


def compile_part(
    definition: Definition,
    rule: Rule,
    index: int,
    definitions: Mapping[str, Definition],
    first_of: Callable[[str], int | None] | None = None,
) -> CompiledPart:
    """The statement that computes part `index` of a view by one of its rules.

    `first_of` finds the first part of a table, at which PARTIAL ranges are cut; without it they are written out whole.
    """
    query = definition.query_for(rule)
    compilation = Compilation(
        definition.text,
        definition.offset,
        index,
        definition.partitioning,
        {**definitions},
        definition.describe_part(index),
        first_of,
    )
    with refuse_deep_nesting(definition.text):
        tree: exp.Expr = query.tree.copy()
        for apply_pass in PASSES:
            tree = apply_pass(tree, compilation)
        sql = write_sql(tree)
    inputs = tuple(
        PartInput(read.name, read.table, read.parts.ranges[0], read.has_part_column, read.reach or read.parts.ranges[0])
        for read in compilation.reads.values()
    )
    return CompiledPart(sql, inputs, query.dimensions)


def write_sql(tree: exp.Expr) -> str:
    """Spark SQL. A part table left in the tree would be an error of ours, and Spark's generator refuses it."""
    return tree.sql(dialect="spark", normalize_functions=False, comments=False, pretty=True)
