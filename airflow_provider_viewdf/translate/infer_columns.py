"""The columns of a query, as far as they can be told before Spark has seen it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from airflow_provider_viewdf.definitions import Column, fold
from airflow_provider_viewdf.translate.tree import source_name, sources_of
from airflow_provider_viewdf.translate.window.infer_type import infer_type

ColumnsOf = Callable[[exp.Table], Sequence[Column]]


def infer_columns(tree: exp.Expr, columns_of: ColumnsOf) -> tuple[Column, ...]:
    """The columns with their types, "" where a type cannot be told; none at all if not every name can."""
    if isinstance(tree, exp.SetOperation):
        pairs = zip(infer_columns(tree.left, columns_of), infer_columns(tree.right, columns_of))
        return tuple(Column(one.name, one.type if one.type == other.type else "") for one, other in pairs)
    if not isinstance(tree, exp.Select):
        return ()
    sources = [(fold(source_name(item)), _find_columns(item, columns_of)) for item in sources_of(tree)]
    types = _name_types(sources)
    found: list[Column] = []
    for output in tree.expressions:
        node = output.unalias()
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            wanted = fold(node.table) if isinstance(node, exp.Column) else ""
            stars = [columns for name, columns in sources if wanted in ("", name)]
            # What * is of a join depends on its kind.
            if len(stars) != 1 or not stars[0]:
                return ()
            found += stars[0]
        elif not isinstance(output, (exp.Alias, exp.Column)):
            return ()
        else:
            found.append(Column(output.alias_or_name, infer_type(_unqualify(node), types) or ""))
    return tuple(found)


def _find_columns(source: exp.Expr, columns_of: ColumnsOf) -> tuple[Column, ...]:
    if source.args.get("pivots") or source.alias_column_names:
        return ()
    if isinstance(source, exp.Subquery):
        return infer_columns(source.this, columns_of)
    return tuple(columns_of(source)) if isinstance(source, exp.Table) else ()


def _name_types(sources: Sequence[tuple[str, Sequence[Column]]]) -> Mapping[str, str]:
    """By `alias.name`, and by `name` where every table of the query is known and gives it the same type."""
    types = {f"{alias}.{fold(column.name)}": column.type for alias, columns in sources for column in columns}
    if all(columns for _, columns in sources):
        for name in {fold(column.name) for _, columns in sources for column in columns}:
            kinds = {column.type for _, columns in sources for column in columns if fold(column.name) == name}
            types[name] = kinds.pop() if len(kinds) == 1 else ""
    return types


def _unqualify(node: exp.Expr) -> exp.Expr:
    """A copy in which `a.x` is one name, as the types are listed."""
    copy = node.copy()
    for column in copy.find_all(exp.Column):
        if column.table and not column.args.get("db"):
            column.set("this", exp.to_identifier(f"{fold(column.table)}.{fold(column.name)}"))
            column.set("table", None)
    return copy
