"""The texts that count as a value: the one place that says which.

    boolean                  true or false, in any case
    tinyint ... bigint       decimal digits with an optional sign
    float, double            a number such as 1.5, .5, 5. or 1e-3; NaN, Infinity and Inf, in any case, with a sign
    decimal(p,s)             a number as above that the type holds without rounding
    date                     YYYY-MM-DD
    timestamp                the forms of `parse_time`, UTC unless they say otherwise, to the microsecond
    binary                   Base64
    array, map, struct       JSON

No text but that of a string or of a time may have space around it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_provider_viewdf.engine.sources.spark_types import name_type
from airflow_provider_viewdf.errors import TimeFormatError
from airflow_provider_viewdf.parts import parse_time

_LONGEST_SHOWN = 80

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TOO_FINE = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")


class Misfit(Exception):
    """A value, or a whole row, that does not fit; the text says why."""


class RepeatedKey:
    """Stands for a JSON object that has one key twice, so that it fits nowhere."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __repr__(self) -> str:
        return f"an object with the key {self.key!r} twice"


def show(value: object) -> str:
    """A value for a message: not too long, and numbers as plain numbers."""
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def is_not_a(value: object, type_: pa.DataType) -> Misfit:
    name = name_type(type_)
    article = "an" if name[0] in "aeiou" else "a"
    return Misfit(f"{show(value)} is not {article} {name}")


def parse_boolean(text: str) -> bool:
    folded = text.lower()
    if folded not in ("true", "false"):
        raise is_not_a(text, pa.bool_())
    return folded == "true"


def parse_integer(text: str, type_: pa.DataType) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise is_not_a(text, type_)
    # Python refuses to convert thousands of digits, and no type holds more than nineteen.
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 19:
        raise out_of_range(text, type_)
    return fit_integer(int(text), type_)


def fit_integer(value: int, type_: pa.DataType) -> int:
    limit = 1 << (type_.bit_width - 1)
    if not -limit <= value < limit:
        raise out_of_range(value, type_)
    return value


def parse_float(text: str, type_: pa.DataType) -> float:
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    if _NUMBER.fullmatch(text) is None:
        raise is_not_a(text, type_)
    return fit_float(float(text), type_, text)


def fit_float(value: float, type_: pa.DataType, shown: object) -> float:
    """A finite number that stays finite in the type."""
    if value in (float("inf"), float("-inf")):
        raise out_of_range(shown, type_)
    if pa.types.is_float32(type_):
        try:
            # Only with a byte order does pack() check the range.
            struct.pack("<f", value)
        except OverflowError:
            raise out_of_range(shown, type_) from None
    return value


def parse_decimal(text: str, type_: pa.DataType) -> Decimal:
    if _NUMBER.fullmatch(text) is None:
        raise is_not_a(text, type_)
    return fit_decimal(Decimal(text), type_)


def fit_decimal(value: Decimal, type_: pa.DataType) -> Decimal:
    """The same number with exactly the type's scale."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise is_not_a(value, type_)
    if not any(digits):
        return Decimal((0, (0,), -type_.scale))
    kept = len(digits)
    while digits[kept - 1] == 0:
        kept -= 1
    digits, exponent = digits[:kept], exponent + len(digits) - kept
    leading = next(position for position, digit in enumerate(digits) if digit)
    digits = digits[leading:]
    if -exponent > type_.scale:
        raise Misfit(f"{show(value)} has more decimal places than {name_type(type_)}")
    if len(digits) + exponent > type_.precision - type_.scale:
        raise out_of_range(value, type_)
    return Decimal((sign, digits + (0,) * (exponent + type_.scale), -type_.scale))


def parse_date(text: str) -> date:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise Misfit(f"{show(text)} is not a date; write it like 2015-01-31")


def parse_timestamp(text: str) -> datetime:
    if len(text) > _LONGEST_SHOWN:
        raise Misfit(f"{show(text)} is not a time; write it like 2015-01-01T10:04")
    try:
        time = parse_time(text)
    except TimeFormatError as error:
        raise Misfit(str(error).rstrip(".")) from None
    if _TOO_FINE.search(text):
        raise Misfit(f"{show(text)} is finer than a microsecond")
    return time


def parse_binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit(f"{show(text)} is not Base64, the text of a binary") from None


def parse_string(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Misfit(f"{show(text)} is not Unicode text") from None
    return text


def parse_json(text: str) -> Any:
    """JSON with exact numbers. What Python takes beyond JSON is only NaN, Infinity and -Infinity."""
    try:
        return JSON.decode(text)
    except json.JSONDecodeError as error:
        raise Misfit(f"{show(text)} is not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise Misfit(f"{show(text)} is not JSON: {error}") from None


def out_of_range(value: object, type_: pa.DataType) -> Misfit:
    return Misfit(f"{show(value)} is out of the range of {name_type(type_)}")


def _collect_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any] | RepeatedKey:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    keys = [key for key, _ in pairs]
    return RepeatedKey(next(key for key in keys if keys.count(key) > 1))


JSON = json.JSONDecoder(parse_float=Decimal, object_pairs_hook=_collect_pairs)
