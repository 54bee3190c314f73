"""The type of an expression over declared columns, as far as it can be told for certain; else None."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold

# How many digits an integer of a type may have when Spark computes with it as a decimal.
DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_RANKS = ("tinyint", "smallint", "int", "bigint")
_INEXACT = ("float", "double")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NAMES = {
    exp.DataType.Type.TINYINT: "tinyint",
    exp.DataType.Type.SMALLINT: "smallint",
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.BOOLEAN: "boolean",
    exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.DATE: "date",
}
# Functions whose value is one of their arguments, and so has their type if that is the same for all.
_CHOOSING = ("coalesce", "ifnull", "nvl", "least", "greatest")


def infer_type(node: exp.Expr, columns: Mapping[str, str]) -> str | None:
    """`columns` are the types of the columns by folded name."""
    if isinstance(node, exp.Paren):
        return infer_type(node.this, columns)
    if isinstance(node, exp.Column):
        return columns.get(fold(node.name)) if not node.table else None
    if isinstance(node, exp.Literal):
        return _literal_type(node)
    if isinstance(node, exp.Neg):
        return infer_type(node.this, columns)
    if isinstance(node, exp.Cast):
        return _cast_type(node)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        return _arithmetic_type(node, columns)
    if isinstance(node, exp.Div):
        sides = {infer_type(node.left, columns), infer_type(node.right, columns)}
        return "double" if sides <= {*_RANKS, *_INEXACT} else None
    if isinstance(node, exp.Anonymous) and fold(node.name) in ("count", "sum", "min", "max"):
        return _aggregate_type(node, columns)
    branches = _branches(node)
    if branches is None:
        return None
    found = {infer_type(branch, columns) for branch in branches if not isinstance(branch, exp.Null)}
    return found.pop() if len(found) == 1 else _widest(found)


def _aggregate_type(node: exp.Anonymous, columns: Mapping[str, str]) -> str | None:
    if fold(node.name) == "count":
        return "bigint"
    inside = node.expressions[0] if len(node.expressions) == 1 else None
    type_name = infer_type(inside, columns) if inside is not None else None
    if fold(node.name) in ("min", "max"):
        return type_name
    if digits := decimal_of(type_name):
        return f"decimal({min(38, digits[0] + 10)},{digits[1]})"
    return "bigint" if is_integer(type_name) else "double" if is_inexact(type_name) else None


def decimal_of(type_name: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal."""
    match = _DECIMAL.fullmatch(type_name or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


def is_inexact(type_name: str | None) -> bool:
    return type_name in _INEXACT


def is_integer(type_name: str | None) -> bool:
    return type_name in DIGITS


def _branches(node: exp.Expr) -> list[exp.Expr] | None:
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return [*(item.args["true"] for item in node.args["ifs"]), *([default] if default is not None else [])]
    if isinstance(node, exp.If):
        other = node.args.get("false")
        return [node.args["true"], *([other] if other is not None else [])]
    if isinstance(node, exp.Anonymous) and fold(node.name) in _CHOOSING:
        return list(node.expressions)
    if isinstance(node, exp.Anonymous) and fold(node.name) == "abs" and len(node.expressions) == 1:
        return list(node.expressions)
    return None


def _widest(found: set[str | None]) -> str | None:
    """The type that integers and decimals have in common."""
    if not any(decimal_of(item) for item in found):
        return _widest_integer(found)
    sizes = [(DIGITS[item], 0) if item in DIGITS else decimal_of(item) for item in found]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    scale = max(size[1] for size in known)
    precision = max(size[0] - size[1] for size in known) + scale
    return f"decimal({precision},{scale})" if precision <= 38 else None


def _widest_integer(found: set[str | None]) -> str | None:
    if found and found <= set(_RANKS):
        return max((name for name in found if name is not None), key=_RANKS.index)
    return None


def _literal_type(node: exp.Literal) -> str | None:
    if node.is_string:
        return "string"
    if node.name.isdigit():
        return "int" if int(node.name) < 2**31 else "bigint" if int(node.name) < 2**63 else None
    whole, point, decimals = node.name.partition(".")
    if point and (whole + decimals).isdigit():
        digits = len(whole.lstrip("0")) + len(decimals)
        return f"decimal({max(digits, len(decimals), 1)},{len(decimals)})"
    return None


def _cast_type(node: exp.Cast) -> str | None:
    kind = node.to
    if kind.this == exp.DataType.Type.DECIMAL:
        digits = [int(parameter.name) for parameter in kind.expressions] or [10]
        return f"decimal({digits[0]},{digits[1] if len(digits) > 1 else 0})"
    return _NAMES.get(kind.this)


def _arithmetic_type(node: exp.Add | exp.Sub | exp.Mul, columns: Mapping[str, str]) -> str | None:
    left, right = infer_type(node.left, columns), infer_type(node.right, columns)
    if left in DIGITS and right in DIGITS:
        return _widest_integer({left, right})
    if is_inexact(left) or is_inexact(right):
        both = {left, right}
        if both == {"float"}:
            return "float"
        return "double" if all(is_inexact(item) or is_integer(item) or decimal_of(item) for item in both) else None
    first, second = _as_decimal(node.left, left), _as_decimal(node.right, right)
    if first is None or second is None:
        return None
    if isinstance(node, exp.Mul):
        precision, scale = first[0] + second[0] + 1, first[1] + second[1]
    else:
        scale = max(first[1], second[1])
        precision = max(first[0] - first[1], second[0] - second[1]) + scale + 1
    # Beyond 38 digits Spark gives up decimals by rules of its own.
    return f"decimal({precision},{scale})" if precision <= 38 else None


def _as_decimal(node: exp.Expr, type_name: str | None) -> tuple[int, int] | None:
    if isinstance(node, (exp.Neg, exp.Paren)):
        return _as_decimal(node.this, type_name)
    if isinstance(node, exp.Literal) and type_name in DIGITS:
        # Spark takes a number that is written out for as long as it is.
        return len(node.name.lstrip("0")) or 1, 0
    if type_name in DIGITS:
        return DIGITS[type_name or ""], 0
    return decimal_of(type_name)
