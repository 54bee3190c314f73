"""The types of columns, as Spark writes them: `int`, `decimal(10,2)`, `struct<a:int,b:array<string>>`."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from airflow_provider_viewdf.language.dialect import ViewDF

_TYPE = exp.DataType.Type

_SIMPLE = {
    _TYPE.BOOLEAN: "boolean",
    _TYPE.TINYINT: "tinyint",
    _TYPE.SMALLINT: "smallint",
    _TYPE.INT: "int",
    _TYPE.BIGINT: "bigint",
    _TYPE.FLOAT: "float",
    _TYPE.DOUBLE: "double",
    _TYPE.TEXT: "string",
    _TYPE.BINARY: "binary",
    _TYPE.VARBINARY: "binary",
    _TYPE.DATE: "date",
    _TYPE.TIMESTAMP: "timestamp",
    _TYPE.TIMESTAMPTZ: "timestamp",
    _TYPE.TIMESTAMPLTZ: "timestamp",
    _TYPE.TIMESTAMPNTZ: "timestamp_ntz",
    _TYPE.NULL: "void",
    # Spark keeps the limit of a VARCHAR for tables only; in a query it is a string.
    _TYPE.VARCHAR: "string",
    _TYPE.CHAR: "string",
}


def read_type(text: str) -> str | None:
    """A type from a statement as Spark writes it, or None if Spark has no such type."""
    try:
        return _write(exp.DataType.build(text, dialect=ViewDF()))
    except (SqlglotError, ValueError, RecursionError):
        return None


def _write(node: exp.Expr) -> str:
    if not isinstance(node, exp.DataType):
        raise ValueError(node)
    kind, inner = node.this, node.expressions
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind == _TYPE.DECIMAL:
        digits = [int(parameter.name) for parameter in inner] or [10]
        precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise ValueError(node)
        return f"decimal({precision},{scale})"
    if kind == _TYPE.ARRAY and len(inner) == 1:
        return f"array<{_write(inner[0])}>"
    if kind == _TYPE.MAP and len(inner) == 2:
        return f"map<{_write(inner[0])},{_write(inner[1])}>"
    if kind == _TYPE.STRUCT and inner:
        return "struct<" + ",".join(f"{field.name}:{_write(field.args['kind'])}" for field in inner) + ">"
    raise ValueError(node)
