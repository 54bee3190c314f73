"""Rows of Parquet files, whose types must widen into the table's without loss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_viewdf.engine.sources.dict_rows import render_row
from airflow_provider_viewdf.engine.sources.layouts import Layout, RowBatch, cut_row
from airflow_provider_viewdf.engine.sources.spark_types import TIMESTAMP, name_type
from airflow_provider_viewdf.errors import LoadError
from airflow_provider_viewdf.parts import unix_microseconds
from airflow_provider_viewdf.versions import RejectedRow

ROWS_PER_BATCH = 65_536

_EARLIEST = unix_microseconds(datetime.min.replace(tzinfo=UTC))
_LATEST = unix_microseconds(datetime.max.replace(tzinfo=UTC))
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DECIMAL_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def read_parquet(handle: BinaryIO, name: str, layout: Layout) -> Iterator[RowBatch]:
    """The rows of a Parquet file; LoadError if its columns are not the table's or do not widen into them."""
    try:
        file = pq.ParquetFile(handle)
        schema = file.schema_arrow
    except pa.ArrowException as error:
        raise LoadError(f"{name} is not a Parquet file: {_first_line(error)}.") from None
    positions = layout.match_names(schema.names, name)
    for field, position in zip(schema, positions, strict=True):
        column = layout.columns[position]
        if not can_widen(field.type, column.type):
            raise LoadError(
                f"{name}: the column {column.name} is of type {name_type(field.type)}, "
                f"which does not widen into {name_type(column.type)}; cast it first."
            )
    fields = [positions.index(position) for position in range(len(positions))]
    row = 0
    batches = file.iter_batches(ROWS_PER_BATCH)
    while True:
        try:
            batch = next(batches, None)
        except pa.ArrowException as error:
            raise LoadError(f"{name} cannot be read: {_first_line(error)}.") from None
        if batch is None:
            return
        yield _widen_batch(batch, fields, row, name, layout)
        row += batch.num_rows


def can_widen(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of the one type, but for its range in time, is a value of the other."""
    types = pa.types
    if given == wanted or types.is_null(given):
        return True
    if types.is_dictionary(given):
        return can_widen(given.value_type, wanted)
    if types.is_integer(given):
        return _can_widen_integer(given, wanted)
    if types.is_floating(given):
        return bool(types.is_floating(wanted) and given.bit_width <= wanted.bit_width)
    if types.is_decimal(given):
        return bool(
            types.is_decimal(wanted)
            and 0 <= given.scale <= wanted.scale
            and given.precision - given.scale <= wanted.precision - wanted.scale
        )
    if types.is_nested(wanted):
        return _can_widen_nested(given, wanted)
    return any(
        is_wanted(wanted) and any(is_given(given) for is_given in allowed) for is_wanted, allowed in _SAME_VALUES
    )


_SAME_VALUES = (
    (pa.types.is_string, (pa.types.is_large_string, pa.types.is_string_view)),
    (pa.types.is_binary, (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)),
    (pa.types.is_date, (pa.types.is_date,)),
    (pa.types.is_timestamp, (pa.types.is_timestamp,)),
)


def _can_widen_integer(given: pa.DataType, wanted: pa.DataType) -> bool:
    bits = given.bit_width + (0 if pa.types.is_signed_integer(given) else 1)
    if pa.types.is_integer(wanted):
        return bool(bits <= wanted.bit_width)
    if pa.types.is_floating(wanted):
        return bool(bits <= (25 if pa.types.is_float32(wanted) else 54))
    return bool(pa.types.is_decimal(wanted) and wanted.precision - wanted.scale >= _DECIMAL_DIGITS[given.bit_width])


def _can_widen_nested(given: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_map(wanted):
        return (
            types.is_map(given)
            and can_widen(given.key_type, wanted.key_type)
            and can_widen(given.item_type, wanted.item_type)
        )
    if types.is_list(wanted):
        is_list = types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given)
        return is_list and can_widen(given.value_type, wanted.value_type)
    # By name and in the same order: Arrow's cast of structs fills in or drops what does not line up.
    return (
        types.is_struct(given)
        and given.num_fields == wanted.num_fields
        and all(
            mine.name == theirs.name and can_widen(mine.type, theirs.type)
            for mine, theirs in zip(given, wanted, strict=True)
        )
    )


def _widen_batch(batch: pa.RecordBatch, fields: list[int], row: int, name: str, layout: Layout) -> RowBatch:
    arrays: list[pa.Array] = []
    reasons: dict[int, str] = {}
    for position, (field, column) in enumerate(zip(fields, layout.columns, strict=True)):
        given = batch.column(field)
        array, misfits = widen(given, column.type)
        if position == layout.ordered and given.null_count:
            misfits |= dict.fromkeys(_indexes(pc.is_null(given)), "no event time")
        for index, reason in misfits.items():
            reasons.setdefault(index, f"column {column.name}: {reason}")
        arrays.append(array)
    rows = pa.RecordBatch.from_arrays(arrays, schema=layout.schema)
    if not reasons:
        return RowBatch(name, "row", rows, (row + 1).__add__)
    rejected = tuple(
        RejectedRow(name, row + index + 1, reasons[index], _render(batch, index)) for index in sorted(reasons)
    )
    kept = [index for index in range(batch.num_rows) if index not in reasons]
    taken = rows.take(pa.array(kept, pa.int64()))
    return RowBatch(name, "row", taken, lambda index: row + kept[index] + 1, rejected)


def widen(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    """The array in the type, with NULL and a reason where a value does not fit."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == wanted and not (pa.types.is_timestamp(wanted) or pa.types.is_date(wanted)):
        return array, {}
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(array.type):
        return _widen_times(array)
    if pa.types.is_date(wanted) and pa.types.is_date(array.type):
        return _widen_dates(array)
    try:
        return array.cast(wanted), {}
    except pa.ArrowInvalid:
        return _widen_each(array, wanted)


def _widen_times(array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    per_second = _PER_SECOND[array.type.unit]
    numbers = array.view(pa.int64())
    if per_second > 10**6:
        step = per_second // 10**6
        whole = pc.divide(numbers, step)
        is_fine = pc.equal(pc.multiply(whole, step), numbers)
        micros, is_within = whole, pa.array([True] * len(array))
    else:
        step = 10**6 // per_second
        is_fine = pa.array([True] * len(array))
        is_within = pc.and_(pc.greater_equal(numbers, -(-_EARLIEST // step)), pc.less_equal(numbers, _LATEST // step))
        micros = pc.multiply(pc.if_else(is_within, numbers, None), step)
    reasons: dict[int, str] = {}
    for index in _indexes(pc.invert(is_fine)):
        reasons[index] = f"{array[index].cast(pa.string()).as_py()} is finer than a microsecond"
    for index in _indexes(pc.invert(is_within)):
        reasons[index] = "the time is outside the years 1 to 9999"
    if reasons:
        micros = pc.if_else(pc.and_(is_fine, is_within), micros, None)
    return micros.view(TIMESTAMP), reasons


def _widen_dates(array: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    per_day = 1 if pa.types.is_date32(array.type) else 86_400_000
    numbers = array.view(pa.int32() if per_day == 1 else pa.int64()).cast(pa.int64())
    day = 86_400 * 10**6
    low, high = _EARLIEST // day * per_day, _LATEST // day * per_day
    is_within = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    days = pc.divide(pc.if_else(is_within, numbers, None), per_day)
    is_whole = pc.fill_null(pc.equal(pc.multiply(days, per_day), numbers), True)
    reasons = dict.fromkeys(_indexes(pc.invert(is_within)), "the date is outside the years 1 to 9999")
    reasons |= dict.fromkeys(_indexes(pc.invert(is_whole)), "the date is not a whole day")
    return pc.if_else(is_whole, days, None).cast(pa.int32()).view(pa.date32()), reasons


def _widen_each(array: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, dict[int, str]]:
    pieces, reasons = [], {}
    for index in range(len(array)):
        try:
            # Not a slice: Arrow would cast the items of all lists, also of those outside it.
            pieces.append(array.take(pa.array([index])).cast(wanted))
        except pa.ArrowInvalid as error:
            pieces.append(pa.nulls(1, wanted))
            reasons[index] = f"the value does not fit {name_type(wanted)}: {_first_line(error)}"
    return pa.concat_arrays(pieces), reasons


def _indexes(mask: pa.Array) -> list[int]:
    return [int(index) for index in pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()]


def _render(batch: pa.RecordBatch, index: int) -> str:
    row: dict[str, object] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            row[name] = column[index].as_py()
        except (ValueError, OverflowError, ImportError):
            # A time that Python's datetime cannot hold.
            row[name] = " ".join(str(column.slice(index, 1)).split())
    return cut_row(render_row(row))


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")
