"""What Spark's sum and avg of a value would be typed as, as far as the text of a query shows it.

In Spark SQL a running sum has to keep one type, and for decimals `a + b` has another than `a` and `b`. So the type must be
written down; where it cannot be told, and it is no decimal, adding a BIGINT zero gives the same type as sum().
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,\s*(-?\d+))?\))?")
_WHOLE = ("tinyint", "smallint", "int", "bigint", "byte", "short", "integer", "long")
_BINARY = ("float", "double", "real")


@dataclass(frozen=True, slots=True)
class SumType:
    """`sum` is the type to cast each value and each sum to, "" if it is not known; `average` that of their average."""

    sum: str
    average: str
    is_decimal: bool = False

    def write_term(self, value: str) -> str:
        return f"CAST({value} AS {self.sum})" if self.sum else f"{value} + CAST(0 AS BIGINT)"


UNKNOWN = SumType("", "DOUBLE")


def find_sum_type(tree: exp.Expr, types: Mapping[str, str]) -> SumType:
    """The type of a sum over the values of an expression. `types` are those of the columns, by folded name."""
    name = _find_type(tree, types)
    if name in _WHOLE:
        return SumType("BIGINT", "DOUBLE")
    if name in _BINARY:
        return SumType("DOUBLE", "DOUBLE")
    if decimal := _DECIMAL.fullmatch(name):
        digits, decimals = int(decimal.group(1) or 10), int(decimal.group(2) or 0)
        average = f"DECIMAL({min(38, digits + 4)}, {min(38, decimals + 4)})"
        return SumType(f"DECIMAL({min(38, digits + 10)}, {decimals})", average, is_decimal=True)
    return UNKNOWN


def _find_type(tree: exp.Expr, types: Mapping[str, str]) -> str:
    if isinstance(tree, exp.Column):
        return types.get(fold(tree.name), "").lower()
    if isinstance(tree, (exp.Paren, exp.Neg)):
        return _find_type(tree.this, types)
    if isinstance(tree, exp.Cast):
        return tree.to.sql(dialect="spark").lower()
    if isinstance(tree, exp.Literal):
        return "int" if tree.is_int else ""
    if isinstance(tree, (exp.Add, exp.Sub, exp.Mul)):
        left, right = _find_type(tree.this, types), _find_type(tree.expression, types)
        if left in _WHOLE and right in _WHOLE:
            return "bigint"
        if (left in _BINARY and right in _BINARY + _WHOLE) or (right in _BINARY and left in _WHOLE):
            return "double"
    return ""
