"""Spark's type names as Arrow types, and back."""

from __future__ import annotations

import re

import pyarrow as pa

from airflow_provider_viewdf.errors import LoadError

TIMESTAMP = pa.timestamp("us", tz="UTC")

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "decimal": pa.decimal128(10, 0),
    "dec": pa.decimal128(10, 0),
    "numeric": pa.decimal128(10, 0),
}

# The first name of each type above is the one that Spark itself writes.
_NAMES: dict[pa.DataType, str] = {}
for _name, _type in _SIMPLE.items():
    _NAMES.setdefault(_type, _name)

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.DOTALL)
_FIELD = re.compile(r"\s*(?:`([^`]+)`|([^\s:`]+))\s*[:\s]\s*(.+)", re.DOTALL)


def parse_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark type such as `decimal(10,2)` or `array<struct<a:int>>`."""
    text = text.strip()
    folded = text.lower()
    if folded in _SIMPLE:
        return _SIMPLE[folded]
    if match := _DECIMAL.fullmatch(folded):
        precision, scale = int(match[1]), int(match[2] or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    # Found in the folded text, cut from the text itself: field names keep their case.
    if match := _NESTED.fullmatch(folded):
        inner = _split_outside_brackets(text[match.start(2) : match.end(2)])
        if match[1] == "array" and len(inner) == 1:
            return pa.list_(parse_type(inner[0]))
        if match[1] == "map" and len(inner) == 2:
            return pa.map_(parse_type(inner[0]), parse_type(inner[1]))
        if match[1] == "struct" and inner:
            return pa.struct([_parse_field(field) for field in inner])
    raise LoadError(f"The type {text!r} is not one that rows can be loaded into.")


def name_type(type_: pa.DataType) -> str:
    """A type as Spark writes it; Arrow's own name for a type that Spark does not have."""
    if pa.types.is_decimal128(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_map(type_):
        return f"map<{name_type(type_.key_type)},{name_type(type_.item_type)}>"
    if pa.types.is_list(type_):
        return f"array<{name_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{field.name}:{name_type(field.type)}' for field in type_)}>"
    return _NAMES.get(type_, str(type_))


def _parse_field(text: str) -> pa.Field:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise LoadError(f"The field {text.strip()!r} of a struct type has no type; write it like name:int.")
    return pa.field(match[1] or match[2], parse_type(match[3]))


def _split_outside_brackets(text: str) -> list[str]:
    """The pieces between the commas that stand in no brackets."""
    pieces, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == "," and depth == 0:
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    return pieces if text.strip() else []
