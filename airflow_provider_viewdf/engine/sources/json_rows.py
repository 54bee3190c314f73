"""Rows of JSON files: an object on each line, or one array of objects."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

import pyarrow as pa
import pyarrow.json as pajson

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.engine.sources.blocks import BLOCK_BYTES, find_last_line_end, read_blocks
from airflow_provider_viewdf.engine.sources.columns import convert_texts, narrow_floats
from airflow_provider_viewdf.engine.sources.layouts import Layout, RowBatch, RowCollector
from airflow_provider_viewdf.engine.sources.texts import JSON, Misfit, parse_json
from airflow_provider_viewdf.errors import LoadError

ROWS_PER_BATCH = 20_000

_SPACE = " \t\r\n"
# Every line an object from its first character to its last: then no object runs over a line end.
_OBJECT_LINES = re.compile(rb"(?:\{[^\n]*+(?<=\})\n|\{[^\n]*+(?<=\}\r)\n)*+")
# Python reads the integer -0 as 0, Arrow the double as -0.0.
_NEGATIVE_ZERO = re.compile(rb"-0[\s,}\]]")


def read_json(handle: BinaryIO, name: str, layout: Layout, block_bytes: int = BLOCK_BYTES) -> Iterator[RowBatch]:
    """The rows of a JSON file. Lines are read block by block; an array has to be read whole."""
    blocks = read_blocks(handle, name, find_last_line_end, block_bytes)
    leading: list[tuple[int, bytes]] = []
    for line, block in blocks:
        leading.append((line, block))
        if block.strip():
            break
    if leading and leading[-1][1].lstrip().startswith(b"["):
        yield from _read_array(b"".join(block for _, block in chain(leading, blocks)), name, layout)
        return
    for line, block in chain(leading, blocks):
        rows = read_block_fast(block, layout)
        if rows is None:
            yield read_block_exactly(line, block, name, layout)
        else:
            yield RowBatch(name, "line", rows, line.__add__)


def read_block_fast(block: bytes, layout: Layout) -> pa.RecordBatch | None:
    """The block through Arrow, or None if anything in it is not plain."""
    plain = _OBJECT_LINES.match(block)
    if plain is None or plain.end() != len(block) or _NEGATIVE_ZERO.search(block):
        return None
    spellings = _spell_keys(block, layout)
    types = [_read_as(column.type) for column in layout.columns]
    if spellings is None or None in types:
        return None
    schema = pa.schema([pa.field(name, type_) for name, type_ in zip(spellings, types, strict=True)])
    try:
        table = pajson.read_json(
            io.BytesIO(block),
            pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
            pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if table.num_rows != block.count(b"\n"):
        return None
    arrays: list[pa.Array] = []
    for spelling, column in zip(spellings, layout.columns, strict=True):
        array = table.column(spelling).combine_chunks()
        if pa.types.is_floating(column.type):
            array = narrow_floats(array, column.type)
        elif pa.types.is_decimal(column.type):
            array = _check_digits(array)
        elif pa.types.is_string(array.type):
            array = convert_texts(array, column.type)
        if array is None:
            return None
        arrays.append(array)
    if arrays[layout.ordered].null_count:
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def read_block_exactly(line: int, block: bytes, name: str, layout: Layout) -> RowBatch:
    """The block row by row, with the rows that do not fit."""
    collector = RowCollector(layout, name, "line")
    for number, raw in enumerate(block.removesuffix(b"\n").split(b"\n"), line):
        if not raw.strip():
            continue
        try:
            text = raw.decode().strip(_SPACE)
            collector.accept(number, layout.read_mapping(parse_json(text)))
        except UnicodeDecodeError:
            collector.reject(number, "the row is not UTF-8 text", raw.decode(errors="replace"))
        except Misfit as error:
            collector.reject(number, str(error), text)
    return collector.batch()


def _spell_keys(block: bytes, layout: Layout) -> list[str] | None:
    """Each column's key as the first line spells it; Arrow refuses a block that goes on to spell it otherwise."""
    try:
        first = parse_json(block[: block.index(b"\n")].decode())
    except (UnicodeDecodeError, Misfit):
        return None
    spelled = {fold(key): key for key in first} if isinstance(first, dict) else {}
    return [spelled.get(fold(column.name), column.name) for column in layout.columns]


def _read_as(type_: pa.DataType) -> pa.DataType | None:
    """The type to ask Arrow's reader for: a text for what `convert_texts` converts, None for what it cannot read."""
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return pa.string()
    if pa.types.is_floating(type_):
        return pa.float64()
    if pa.types.is_nested(type_) or pa.types.is_binary(type_):
        return None
    return type_


def _check_digits(array: pa.Array) -> pa.Array | None:
    """The decimals, if each has no more digits than its type: Arrow's reader checks that only before it scales them."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return array


def _read_array(content: bytes, name: str, layout: Layout) -> Iterator[RowBatch]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise LoadError(f"{name} is not UTF-8 text.") from None
    collector = RowCollector(layout, name, "line")
    line, counted = 1, 0
    position = _skip_space(text, text.index("[") + 1)
    if text[position : position + 1] == "]":
        position = _skip_space(text, position + 1)
    else:
        while True:
            line, counted = line + text.count("\n", counted, position), position
            try:
                row, end = JSON.raw_decode(text, position)
            except json.JSONDecodeError as error:
                raise LoadError(f"{name}, line {error.lineno}: the array is not JSON: {error.msg}.") from None
            except (ValueError, RecursionError) as error:
                raise LoadError(f"{name}, line {line}: the array is not JSON: {error}.") from None
            try:
                collector.accept(line, layout.read_mapping(row))
            except Misfit as error:
                collector.reject(line, str(error), text[position:end])
            if len(collector.values) >= ROWS_PER_BATCH:
                yield collector.batch()
                collector = RowCollector(layout, name, "line")
            position = _skip_space(text, end)
            separator = text[position : position + 1]
            position = _skip_space(text, position + 1)
            if separator == "]":
                break
            if separator != ",":
                line += text.count("\n", counted, position)
                raise LoadError(f"{name}, line {line}: the array is not JSON: expecting a comma or its end.")
    if text[position:].strip(_SPACE):
        line += text.count("\n", counted, position)
        raise LoadError(f"{name}, line {line}: there is text after the end of the array.")
    yield collector.batch()


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position
