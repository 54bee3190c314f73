"""The pieces of a pattern query as a person wrote them, each as SQL of its own.

Spark refuses the helper view in words that nobody has written. Asked about one piece after the other, it refuses the one that is wrong.
Every variable stands for rows of the same source, so for its types a piece is a query over that source alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.translate.pattern.memory import write_sql
from airflow_provider_viewdf.translate.pattern.query import Aggregate, Value
from airflow_provider_viewdf.translate.pattern.sums import find_sum_type

if TYPE_CHECKING:
    from airflow_provider_viewdf.translate.translation import Source

# What the pieces call the source of the pattern query.
PIECES_SOURCE = "pattern_source"
_NO_NUMBERS = ("timestamp", "timestamp_ntz", "date", "boolean", "binary")


@dataclass(frozen=True, slots=True)
class Piece:
    """`written` is the person's text, `sql` a query of one column over `source`, which must be of a type that `kind` allows."""

    source: str
    written: str
    sql: str
    kind: Literal["condition", "value", "sum"]

    def find_problem(self, type_: str) -> str:
        """What is wrong with a piece of this type, and what to write instead, or ""."""
        if "map<" in type_:
            return f"{self.written} has a MAP, which a run cannot remember; take the value out in a plain view first and read that."
        if self.kind == "condition" and type_ != "boolean":
            return f"{self.written} is a condition, but of the type {type_.upper()}; compare it with something."
        if self.kind == "sum" and type_.startswith("decimal"):
            return (
                f"{self.written} sums values of the type {type_.upper()}, which cannot be seen from the query; write it there, as in "
                f"sum(CAST(x AS {type_.upper()}))."
            )
        if self.kind == "sum" and type_ in _NO_NUMBERS:
            return f"{self.written} sums values of the type {type_.upper()}, which are no numbers; sum something else."
        return ""


def cut_pieces(tree: exp.Expr, written: str, source: Source, *, is_condition: bool) -> Iterator[Piece]:
    """The values and sums in an expression, and then the expression itself."""
    types = {fold(column.name): column.type for column in source.columns if source.kind == "stream"}
    for node in tree.find_all(Aggregate):
        if node.this is not None and node.function in ("sum", "avg"):
            is_safe = node.function == "avg" or bool(find_sum_type(node.this, types).sum)
            yield Piece(source.name, written, _select(write_sql(node.this)), "value" if is_safe else "sum")
        elif node.this is not None:
            yield Piece(source.name, written, _select(write_sql(node.this)), "value")
    for value in tree.find_all(Value):
        yield Piece(source.name, written, _select(value.attribute), "value")
    yield Piece(source.name, written, _select(write_sql(tree, _write_node)), "condition" if is_condition else "value")


def _write_node(node: exp.Expr) -> str | None:
    if isinstance(node, Value):
        return node.attribute
    if isinstance(node, Aggregate):
        argument = write_sql(node.this) if node.this is not None else "*"
        return f"(SELECT {node.function}({argument}) FROM {PIECES_SOURCE})"
    return None


def _select(sql: str) -> str:
    return f"SELECT {sql} AS piece FROM {PIECES_SOURCE}"
