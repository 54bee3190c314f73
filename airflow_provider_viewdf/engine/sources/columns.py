"""A column of texts at once: only where the result is what `texts` gives for each of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_viewdf.engine.sources.spark_types import TIMESTAMP
from airflow_provider_viewdf.engine.sources.texts import Misfit
from airflow_provider_viewdf.engine.sources.values import text_reader

_BOOLEAN = "^(?i:true|false)$"
_INTEGER = "^-?[0-9]+$"
_NUMBER = r"^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
# Years of four digits that no zone offset can carry out of Python's calendar.
_DAY = "[12][0-9]{3}-[0-9]{2}-[0-9]{2}"
_DATE = f"^{_DAY}$"
_HOUR_MINUTE = "(?:[01][0-9]|2[0-3]):?[0-5][0-9]"
_ZONE = f"(?:Z|[+-]{_HOUR_MINUTE})$"
_TIME = rf"^{_DAY}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?(?:Z|[+-]{_HOUR_MINUTE})?$"


def convert_texts(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """The typed column, or None if a text in it does not fit or needs a closer look."""
    try:
        if pa.types.is_string(type_):
            return column
        if pa.types.is_boolean(type_):
            return pc.equal(pc.utf8_lower(column), "true") if _all_match(column, _BOOLEAN) else None
        if pa.types.is_integer(type_):
            return column.cast(type_) if _all_match(column, _INTEGER) else None
        if pa.types.is_floating(type_):
            return narrow_floats(column.cast(pa.float64()), type_) if _all_match(column, _NUMBER) else None
        if pa.types.is_decimal(type_):
            return column.cast(type_) if _all_match(column, _decimal_pattern(type_)) else None
        if pa.types.is_date(type_):
            return column.cast(type_) if _all_match(column, _DATE) else None
        if pa.types.is_timestamp(type_):
            return _convert_times(column)
        read = text_reader(type_)
        return pa.array([None if text is None else read(text) for text in column.to_pylist()], type_)
    except (pa.ArrowInvalid, Misfit):
        return None


def narrow_floats(column: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Doubles in the type, if they are all finite there."""
    column = column.cast(type_)
    return column if pc.all(pc.is_finite(column)).as_py() is not False else None


def _convert_times(column: pa.Array) -> pa.Array | None:
    if pc.any(pc.match_substring(column, "/")).as_py():
        column = pc.replace_substring_regex(column, "^([0-9]{4})/([0-9]{2})/([0-9]{2})", r"\1-\2-\3")
    if not _all_match(column, _TIME):
        return None
    has_zone = pc.match_substring_regex(column, _ZONE)
    if not pc.any(has_zone).as_py():
        return column.cast(pa.timestamp("us")).view(TIMESTAMP)
    return pc.if_else(has_zone, column, pc.binary_join_element_wise(column, "Z", "")).cast(TIMESTAMP)


def _decimal_pattern(type_: pa.DataType) -> str:
    whole, places = type_.precision - type_.scale, type_.scale
    if whole == 0:
        return rf"^-?0?\.[0-9]{{1,{places}}}$"
    return rf"^-?[0-9]{{1,{whole}}}(?:\.[0-9]{{1,{places}}})?$" if places else f"^-?[0-9]{{1,{whole}}}$"


def _all_match(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False
