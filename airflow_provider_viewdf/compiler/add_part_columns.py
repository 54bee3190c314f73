from __future__ import annotations

from sqlglot import exp

from airflow_provider_viewdf.compiler.reading import Compilation, read_of
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.translate.tree import (
    PART,
    PART_TIMESTAMP,
    PartTable,
    enclosing_select,
    source_name,
    sources_of,
)

COLUMNS = (PART, PART_TIMESTAMP)


def add_part_columns(tree: exp.Expr, compilation: Compilation) -> exp.Expr:
    """Find the tables whose PART or PART_TIMESTAMP is asked for, and keep these columns out of every `*`.

    The tables themselves are given the columns when they get their names.
    """
    for column in list(tree.find_all(exp.Column)):
        if column.name.upper() in COLUMNS and (table := owner_of(column, compilation)) is not None:
            _mark(table, compilation)
    for join in tree.find_all(exp.Join):
        select = enclosing_select(join)
        if select is not None and any(key.name.upper() in COLUMNS for key in join.args.get("using") or ()):
            for source in sources_of(select):
                if isinstance(source, PartTable) and "read" in source.meta:
                    _mark(source, compilation)
    for select in list(tree.find_all(exp.Select)):
        _restrict_stars(select, compilation)
    return tree


def owner_of(column: exp.Column, compilation: Compilation) -> PartTable | None:
    """The part table that a column PART or PART_TIMESTAMP belongs to, in its SELECT or one around it."""
    select = enclosing_select(column)
    while select is not None:
        sources = sources_of(select)
        if column.table:
            named = [source for source in sources if fold(source_name(source)) == fold(column.table)]
            if named:
                return named[0] if isinstance(named[0], PartTable) and "read" in named[0].meta else None
        else:
            tables = [source for source in sources if isinstance(source, PartTable) and "read" in source.meta]
            if len(tables) > 1:
                choices = " or ".join(f"{source_name(table)}.{column.name}" for table in tables)
                raise compilation.fail(f"{column.name} is ambiguous; write {choices}.", column)
            if tables:
                return tables[0]
        select = enclosing_select(select)
    return None


def _mark(table: PartTable, compilation: Compilation) -> None:
    compilation.with_part_columns.add(id(table))
    read = read_of(table)
    # For a single part both columns are constants.
    read.has_part_column = read.has_part_column or read.only_index is None


def _restrict_stars(select: exp.Select, compilation: Compilation) -> None:
    sources = sources_of(select)
    marked = {fold(source_name(item)): item for item in sources if id(item) in compilation.with_part_columns}
    if not marked:
        return
    for join in select.args.get("joins") or ():
        if join.method == "NATURAL" and len(marked) > 1:
            raise compilation.fail(
                "PART and PART_TIMESTAMP of both sides of a NATURAL JOIN would become columns to join on; "
                "write ON or USING.",
                join,
            )
    for star in list(select.find_all(exp.Star)):
        if enclosing_select(star) is not select or _is_counted(star):
            continue
        qualifier = star.parent.table if isinstance(star.parent, exp.Column) else ""
        if qualifier and fold(qualifier) not in marked:
            continue
        if qualifier or len(sources) == 1:
            hidden = [exp.column(name) for name in COLUMNS]
        else:
            hidden = [exp.column(name, table=source_name(item)) for item in marked.values() for name in COLUMNS]
        star.set("except_", [*(star.args.get("except_") or ()), *hidden])


def _is_counted(star: exp.Star) -> bool:
    """Whether it is that of count(*), which means rows, not columns."""
    parent = star.parent
    return isinstance(parent, exp.Count) or (isinstance(parent, exp.Anonymous) and fold(parent.name) == "count")
