"""Calls of aggregates in a query: `sum(DISTINCT x) FILTER (WHERE y)` with all that hangs on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold

# What a call can be wrapped in, and still is the same call.
_WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@dataclass(frozen=True, slots=True)
class Call:
    """`node` is the whole call, with its FILTER and the like; `text` tells calls apart."""

    function: str
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool
    ignores_nulls: bool
    is_ordered: bool
    filter: str
    node: exp.Expr
    text: str

    @property
    def subject(self) -> str:
        """The arguments and the filter as text, by which states of different calls are told apart."""
        return ", ".join(write(argument) for argument in self.arguments) + self.filter

    @property
    def is_plain(self) -> bool:
        """Whether it is about one column, and all rows."""
        return (
            len(self.arguments) == 1
            and not self.filter
            and isinstance(self.arguments[0], exp.Column)
            and not self.arguments[0].table
        )


def write(node: exp.Expr) -> str:
    """An expression as Spark SQL."""
    return node.sql(dialect="spark", normalize_functions=False, comments=False)


def canonical(node: exp.Expr, qualifiers: set[str]) -> exp.Expr:
    """A copy in which the same things are written the same: functions and columns in lower case, and these unqualified.

    Not as the columns are declared: of a view, that is known only once it has been applied, and the text must not change then.
    """
    copy = node.copy()
    for item in list(copy.walk()):
        if isinstance(item, exp.Anonymous):
            item.set("this", fold(item.name))
        elif isinstance(item, exp.Any):
            argument = item.this.this if isinstance(item.this, exp.Paren) else item.this
            call = exp.Anonymous(this="any", expressions=[argument])
            call.meta.update(item.meta)
            if item is copy:
                copy = call
            else:
                item.replace(call)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier):
            if fold(item.table) in qualifiers and not item.args.get("db"):
                item.set("table", None)
            elif item.table and not item.args.get("db"):
                # A field of a struct column.
                item.args["table"].set("this", fold(item.table))
            item.this.set("this", fold(item.name))
    return copy


def read_call(node: exp.Expr) -> Call | None:
    """The call of a function with all that is wrapped around it, or None if the node is none."""
    inner, filter_text, ignores_nulls, is_ordered = node, "", False, False
    while isinstance(inner, _WRAPPERS):
        if isinstance(inner, exp.Filter):
            filter_text = f" FILTER ({write(inner.expression)})"
        ignores_nulls = ignores_nulls or isinstance(inner, exp.IgnoreNulls)
        is_ordered = is_ordered or isinstance(inner, exp.WithinGroup)
        inner = inner.this
    if not isinstance(inner, exp.Anonymous):
        return None
    arguments = list(inner.expressions)
    is_distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if is_distinct:
        arguments = list(arguments[0].expressions)
    return Call(
        fold(inner.name),
        tuple(arguments),
        is_distinct,
        ignores_nulls,
        is_ordered,
        filter_text,
        node,
        write(node),
    )


def outermost_calls(node: exp.Expr, functions: frozenset[str]) -> Iterator[Call]:
    """The calls of these functions that are not inside another, in the order of the text."""
    if isinstance(node, exp.Window):
        # sum(x) OVER (...) is no aggregate of the query, but what stands in it may be.
        over = read_call(node.this)
        inside = [
            *(over.arguments if over else ()),
            *(child for child in node.iter_expressions() if child is not node.this),
        ]
        for child in inside:
            yield from outermost_calls(child, functions)
        return
    call = read_call(node)
    if call is not None and call.function in functions:
        yield call
        return
    for child in node.iter_expressions():
        yield from outermost_calls(child, functions)
