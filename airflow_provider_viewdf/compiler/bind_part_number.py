from __future__ import annotations

from sqlglot import exp

from airflow_provider_viewdf.compiler.reading import Compilation
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.translate.tree import PART_NUMBER


def bind_part_number(tree: exp.Expr, compilation: Compilation) -> exp.Expr:
    """Write the subscript of the part being computed wherever a query calls for `__part__`."""
    for column in list(tree.find_all(exp.Column)):
        if fold(column.name) == PART_NUMBER and not column.table and compilation.index is not None:
            replace_value(column, exp.cast(exp.convert(compilation.index), "BIGINT"), PART_NUMBER)
    return tree


def replace_value(node: exp.Expr, value: exp.Expr, name: str) -> None:
    """Put a value in the place of a node. An output column keeps its name, which would otherwise be the value."""
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        value = exp.alias_(value, exp.to_identifier(name, quoted=True))
    node.replace(value)
