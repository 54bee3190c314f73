"""One value at a time, exactly: what a text (CSV) or a value (JSON, dicts) is in a column's type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from numbers import Integral, Rational, Real
from typing import Any

import pyarrow as pa

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.engine.sources import texts
from airflow_provider_viewdf.engine.sources.spark_types import name_type
from airflow_provider_viewdf.engine.sources.texts import Misfit, is_not_a, show
from airflow_provider_viewdf.parts import EPOCH, unix_microseconds

TextReader = Callable[[str], Any]
ValueReader = Callable[[Any], Any]


def text_reader(type_: pa.DataType) -> TextReader:
    """The function that reads a CSV field of the type. It raises Misfit; it is never given a NULL."""
    if pa.types.is_boolean(type_):
        return texts.parse_boolean
    if pa.types.is_integer(type_):
        return partial(texts.parse_integer, type_=type_)
    if pa.types.is_floating(type_):
        return partial(texts.parse_float, type_=type_)
    if pa.types.is_decimal(type_):
        return partial(texts.parse_decimal, type_=type_)
    if pa.types.is_date(type_):
        return texts.parse_date
    if pa.types.is_timestamp(type_):
        return texts.parse_timestamp
    if pa.types.is_binary(type_):
        return texts.parse_binary
    if pa.types.is_string(type_):
        return texts.parse_string
    read = value_reader(type_)
    return lambda text: read(texts.parse_json(text))


def value_reader(type_: pa.DataType) -> ValueReader:
    """The function that reads a JSON or Python value of the type. None stays None; it raises Misfit."""
    read: Callable[[Any, pa.DataType], Any]
    if pa.types.is_map(type_):
        read = partial(
            _read_map,
            read_key=value_reader(type_.key_type),
            read_key_text=text_reader(type_.key_type),
            read_item=value_reader(type_.item_type),
        )
    elif pa.types.is_list(type_):
        read = partial(_read_list, read_item=value_reader(type_.value_type))
    elif pa.types.is_struct(type_):
        read = partial(_read_struct, readers={field.name: value_reader(field.type) for field in type_})
    else:
        read = _SCALARS[_family(type_)]
    return lambda value: None if value is None else read(value, type_)


def _family(type_: pa.DataType) -> str:
    for name in ("boolean", "integer", "floating", "decimal", "date", "timestamp", "binary", "string"):
        if getattr(pa.types, f"is_{name}")(type_):
            return name
    raise AssertionError(f"no reader for {type_}")


def _read_boolean(value: Any, type_: pa.DataType) -> bool:
    if not isinstance(value, bool):
        raise is_not_a(value, type_)
    return value


def _read_integer(value: Any, type_: pa.DataType) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise is_not_a(value, type_)
    return texts.fit_integer(int(value), type_)


def _read_float(value: Any, type_: pa.DataType) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise is_not_a(value, type_)
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise texts.out_of_range(value, type_) from None
    is_finite_given = value.is_finite() if isinstance(value, Decimal) else math.isfinite(number)
    return texts.fit_float(number, type_, value) if is_finite_given else number


def _read_decimal(value: Any, type_: pa.DataType) -> Decimal:
    if isinstance(value, str):
        return texts.parse_decimal(value, type_)
    if isinstance(value, Decimal):
        return texts.fit_decimal(value, type_)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise is_not_a(value, type_)
    if isinstance(value, Integral):
        return texts.fit_decimal(Decimal(int(value)), type_)
    if isinstance(value, Rational):
        raise is_not_a(value, type_)
    # The shortest text of a float is what its writer meant: 0.1, and not the 55 digits of its binary value.
    return texts.fit_decimal(Decimal(repr(float(value))), type_)


def _read_date(value: Any, type_: pa.DataType) -> date:
    if isinstance(value, str):
        return texts.parse_date(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise is_not_a(value, type_)
    return date(value.year, value.month, value.day)


def _read_timestamp(value: Any, type_: pa.DataType) -> datetime:
    if isinstance(value, str):
        return texts.parse_timestamp(value)
    if not isinstance(value, datetime):
        raise Misfit(f"{show(value)} is not a time; give an aware datetime or a text like 2015-01-01T10:04")
    if value.utcoffset() is None:
        raise Misfit(f"{show(value)} has no time zone; give an aware datetime")
    if getattr(value, "nanosecond", 0):
        raise Misfit(f"{show(value)} is finer than a microsecond")
    try:
        return EPOCH + timedelta(microseconds=unix_microseconds(value))
    except (OverflowError, ValueError):
        raise Misfit(f"{show(value)} is outside the years 1 to 9999") from None


def _read_binary(value: Any, type_: pa.DataType) -> bytes:
    if isinstance(value, str):
        return texts.parse_binary(value)
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise is_not_a(value, type_)
    return bytes(value)


def _read_string(value: Any, type_: pa.DataType) -> str:
    if not isinstance(value, str):
        raise is_not_a(value, type_)
    return texts.parse_string(value)


def _read_list(value: Any, type_: pa.DataType, read_item: ValueReader) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise is_not_a(value, type_)
    return [read_item(item) for item in value]


def _read_map(
    value: Any, type_: pa.DataType, read_key: ValueReader, read_key_text: TextReader, read_item: ValueReader
) -> list[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise is_not_a(value, type_)
    pairs = []
    for key, item in value.items():
        if key is None:
            raise Misfit("a key of a map is NULL")
        # JSON has no keys but texts.
        pairs.append((read_key_text(key) if isinstance(key, str) else read_key(key), read_item(item)))
    if len({repr(key) for key, _ in pairs}) < len(pairs):
        raise Misfit(f"{show(value)} has one key twice")
    return pairs


def _read_struct(value: Any, type_: pa.DataType, readers: dict[str, ValueReader]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise is_not_a(value, type_)
    names = {fold(name): name for name in readers}
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(fold(key)) if isinstance(key, str) else None
        if name is None:
            raise Misfit(f"the key {show(key)} is not a field of {name_type(type_)}")
        if name in found:
            raise Misfit(f"the field {name} is given twice")
        found[name] = readers[name](item)
    return found


_SCALARS: dict[str, Callable[[Any, pa.DataType], Any]] = {
    "boolean": _read_boolean,
    "integer": _read_integer,
    "floating": _read_float,
    "decimal": _read_decimal,
    "date": _read_date,
    "timestamp": _read_timestamp,
    "binary": _read_binary,
    "string": _read_string,
}
