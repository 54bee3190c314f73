from __future__ import annotations

from sqlglot import exp

from airflow_provider_viewdf.compiler.reading import Compilation, PartRead, name_parts
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import SubscriptError
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.translate.tree import PartTable, named_tables


def bind_subscripts(tree: exp.Expr, compilation: Compilation) -> exp.Expr:
    """Find which parts each subscript means for the part being computed. The same parts twice are one read."""
    index = compilation.index
    assert index is not None
    for table in named_tables(tree):
        if not isinstance(table, PartTable):
            continue
        reference = table.reference
        low, high = reference.low(index), reference.high(index)
        if low > high:
            raise SubscriptError(
                f"{compilation.describes} reads {reference}, which is {reference.table}[{low} .. {high}] and runs "
                f"backwards; it cannot be computed."
            )
        reach = parts = PartRange(low, high)
        if compilation.first_of is not None:
            parts = reference.reads_from(index, compilation.first_of(reference.table))
        key = (fold(reference.table), PartSet((parts,)))
        if key not in compilation.reads:
            read = compilation.definitions[key[0]]
            compilation.reads[key] = PartRead(
                name_parts(read.name, parts), read.name, key[1], read.partitioning, reach=reach
            )
        table.meta["read"] = found = compilation.reads[key]
        if found.reach is not None and found.reach.low > reach.low:
            found.reach = reach
    return tree
