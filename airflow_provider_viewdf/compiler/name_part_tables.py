from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from airflow_provider_viewdf.compiler.bind_time import write_timestamp
from airflow_provider_viewdf.compiler.reading import Compilation, PartRead, read_of
from airflow_provider_viewdf.translate.tree import PART, PART_TIMESTAMP, PartTable, replace_table


def name_part_tables(tree: exp.Expr, compilation: Compilation) -> exp.Expr:
    """Write the name that Spark knows the parts by in the place of every part table.

    Its columns can still be addressed by the alias it had, or by the table's own name.
    """
    for table in list(tree.find_all(PartTable)):
        read = read_of(table)
        alias = table.args.get("alias") or exp.TableAlias(this=write_name(table.name))
        named = exp.Table(this=write_name(read.name))
        if id(table) in compilation.with_part_columns:
            replacement: exp.Expr = exp.Subquery(this=_select_with_part(read, named), alias=alias)
        elif read.has_part_column:
            rows = exp.Select(expressions=[exp.Star(except_=[exp.column(PART)])]).from_(named)
            replacement = exp.Subquery(this=rows, alias=alias)
        else:
            named.set("alias", alias)
            replacement = named
        replace_table(table, replacement)
    return tree


def _select_with_part(read: PartRead, named: exp.Table) -> exp.Select:
    index = read.only_index
    columns: list[exp.Expr] = [exp.Star()]
    if index is not None and not read.has_part_column:
        columns.append(exp.alias_(exp.cast(exp.convert(index), "BIGINT"), PART))
        columns.append(exp.alias_(write_timestamp(read.partitioning.start_of(index)), PART_TIMESTAMP))
    else:
        seconds = exp.Mul(this=exp.column(PART), expression=exp.convert(read.partitioning.length_seconds))
        columns.append(exp.alias_(exp.Anonymous(this="timestamp_seconds", expressions=[seconds]), PART_TIMESTAMP))
    return exp.Select(expressions=columns).from_(named)


def write_name(name: str) -> exp.Identifier:
    """A name, in quotes if Spark's grammar has a use for the word."""
    return exp.to_identifier(name, quoted=name.upper() in Spark.Tokenizer.KEYWORDS)
