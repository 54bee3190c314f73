"""Plain queries: `CREATE VIEW V AS SELECT ... FROM R1 JOIN R2` reads its tables at the time that a part of V covers."""

from __future__ import annotations

import math
from collections.abc import Callable

from sqlglot import exp

from airflow_provider_viewdf.definitions import PartReference
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.parts import format_length
from airflow_provider_viewdf.subscripts import Subscript
from airflow_provider_viewdf.translate.tree import PartTable, named_tables, place_of, subscript_table

VARIABLE = "j"


def find_length(tree: exp.Expr, view: str, length_of: Callable[[exp.Table], int], text: str) -> int:
    """The partition length of a plain view: the longest of its tables'. `length_of` a dimension table is 0."""
    lengths = [length_of(table) for table in named_tables(tree)]
    if not any(lengths):
        start, end = place_of(tree)
        raise LanguageError(
            f"The view {view} reads no stream and no view, so it has no parts; read at least one of them.",
            text=text,
            start=start,
            end=end,
        )
    return max(lengths)


def check_length(view: str, length: int, longest: int, text: str, place: tuple[int, int]) -> None:
    if length % longest:
        raise LanguageError(
            f"The partition length of the view {view} must be {format_length(longest)}, the longest of its tables, "
            f"or a multiple of it.",
            text=text,
            start=place[0],
            end=place[1],
        )


def add_subscripts(
    tree: exp.Expr, view: str, length: int, length_of: Callable[[exp.Table], int], text: str
) -> exp.Expr:
    """The query with every partitioned table read at the parts that a part of the view covers."""
    tables = list(named_tables(tree))
    for table in tables:
        if isinstance(table, PartTable):
            start, end = place_of(table)
            raise LanguageError(
                f"The view {view} has a subscript but neither INITIALIZE nor UPDATE; write INITIALIZE {view}[i] AS ... "
                f"UPDATE {view}[j] AS ..., or no subscript at all.",
                text=text,
                start=start,
                end=end,
            )
    for table in tables:
        table_length = length_of(table)
        if table_length:
            low, high = cover(length, table_length)
            start, end = place_of(table)
            table.replace(subscript_table(table, PartReference(table.name, low, high, start=start, end=end)))
    return tree


def cover(length: int, table_length: int) -> tuple[Subscript, Subscript]:
    """The first and the last part of a table of one length that overlap part j of a view of another length."""
    divisor = math.gcd(length, table_length)
    times, by = length // divisor, table_length // divisor
    first = _scale(Subscript.variable(VARIABLE), times, by)
    if times == 1 and by == 1:
        return first, first
    name = VARIABLE if times == 1 else f"{VARIABLE} * {times}"
    product = Subscript.variable(VARIABLE).multiply(Subscript.constant(times), name)
    last = product.add(Subscript.constant(times - 1), f"{name} + {times - 1}" if times > 1 else name)
    if by > 1:
        last = last.divide(Subscript.constant(by), f"({last.text}) / {by}" if times > 1 else f"{name} / {by}")
    return first, last


def _scale(variable: Subscript, times: int, by: int) -> Subscript:
    result = variable
    if times > 1:
        result = result.multiply(Subscript.constant(times), f"{result.text} * {times}")
    if by > 1:
        result = result.divide(Subscript.constant(by), f"{result.text} / {by}")
    return result
