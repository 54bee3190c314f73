"""Rows of CSV files: comma, double quotes, a header line, UTF-8."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from airflow_provider_viewdf.engine.sources.blocks import BLOCK_BYTES, read_blocks
from airflow_provider_viewdf.engine.sources.columns import convert_texts
from airflow_provider_viewdf.engine.sources.layouts import Layout, RowBatch, RowCollector
from airflow_provider_viewdf.engine.sources.texts import Misfit
from airflow_provider_viewdf.errors import LoadError

# A field that begins with a quotation mark runs to the one that closes it; in any other, a mark is a character.
_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'
_FIELD = rb"(?:" + _QUOTED + rb'[^,\n]*+|[^,"\n][^,\n]*+|)'
_RECORD = _FIELD + rb"(?:," + _FIELD + rb")*+\n"
_ONE_RECORD = re.compile(_RECORD)
_WHOLE_RECORDS = re.compile(rb"(?:" + _RECORD + rb")*+")

# What Arrow and this module read alike: no blank line, no stray quotation mark or carriage return.
_PLAIN_FIELD = rb"(?:" + _QUOTED + rb'(?=,|\r?\n)|[^,"\r\n]*+)'
_PLAIN_RECORDS = re.compile(rb"(?:(?!\r?\n)" + _PLAIN_FIELD + rb"(?:," + _PLAIN_FIELD + rb")*+\r?\n)*+")

_TEXT_FIELD = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"([^,]*+)|([^,]*+))(,|\Z)')


def read_csv(handle: BinaryIO, name: str, layout: Layout, block_bytes: int = BLOCK_BYTES) -> Iterator[RowBatch]:
    """The rows of a CSV file, block by block; LoadError if its header does not name the table's columns."""
    positions: list[int] = []
    for line, block in read_blocks(handle, name, find_last_record_end, block_bytes):
        if not positions:
            header = _ONE_RECORD.match(block)
            positions = _read_header(header[0] if header else block, name, layout)
            if header is None or header.end() == len(block):
                continue
            line, block = line + header[0].count(b"\n"), block[header.end() :]
        rows = read_block_fast(block, positions, layout)
        if rows is None:
            yield read_block_exactly(line, block, positions, name, layout)
        else:
            yield RowBatch(name, "line", rows, _Locator(line, block))
    if not positions:
        raise LoadError(f"{name} has no header line; its first line must name the columns {layout.column_names}.")


def find_last_record_end(block: bytes) -> int:
    if b'"' not in block:
        return block.rfind(b"\n") + 1
    match = _WHOLE_RECORDS.match(block)
    return match.end() if match else 0


def read_block_fast(block: bytes, positions: list[int], layout: Layout) -> pa.RecordBatch | None:
    """The block through Arrow, or None if anything in it is not plain. `positions`: the column of each field."""
    plain = _PLAIN_RECORDS.match(block)
    if plain is None or plain.end() != len(block):
        return None
    names = [layout.columns[position].name for position in positions]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(block),
            pacsv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
            pacsv.ParseOptions(newlines_in_values=True),
            pacsv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    arrays: list[pa.Array] = []
    for column in layout.columns:
        array = convert_texts(table.column(column.name).combine_chunks(), column.type)
        if array is None:
            return None
        arrays.append(array)
    if arrays[layout.ordered].null_count:
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def read_block_exactly(line: int, block: bytes, positions: list[int], name: str, layout: Layout) -> RowBatch:
    """The block row by row, with the rows that do not fit."""
    collector = RowCollector(layout, name, "line")
    for row_line, record, is_closed in split_records(line, block):
        try:
            if not is_closed:
                raise Misfit("a quotation mark is never closed")
            collector.accept(row_line, _read_record(record, positions, layout))
        except Misfit as error:
            collector.reject(row_line, str(error), record.decode(errors="replace"))
    return collector.batch()


def split_records(line: int, block: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Line, bytes without the line end, and whether all is well with the quotation marks; blank lines left out."""
    start = 0
    while start < len(block):
        match = _ONE_RECORD.match(block, start)
        end = match.end() if match else len(block)
        record = block[start : end - 1].removesuffix(b"\r")
        if record:
            yield line, record, match is not None
        line += block.count(b"\n", start, end)
        start = end


def split_fields(record: str) -> list[str | None]:
    """The fields of a record; one that is empty and not quoted is NULL."""
    if '"' not in record:
        return [field or None for field in record.split(",")]
    fields: list[str | None] = []
    start = 0
    while match := _TEXT_FIELD.match(record, start):
        quoted, after, plain, separator = match.groups()
        if after:
            raise Misfit("there is text after a closing quotation mark")
        fields.append((plain or None) if quoted is None else quoted.replace('""', '"'))
        start = match.end()
        if not separator:
            break
    return fields


def _read_record(record: bytes, positions: list[int], layout: Layout) -> list[Any]:
    try:
        fields = split_fields(record.decode())
    except UnicodeDecodeError:
        raise Misfit("the row is not UTF-8 text") from None
    if len(fields) != len(positions):
        raise Misfit(f"{len(fields)} {'field' if len(fields) == 1 else 'fields'} instead of {len(positions)}")
    values: list[Any] = [None] * len(positions)
    for position, text in zip(positions, fields, strict=True):
        column = layout.columns[position]
        try:
            values[position] = None if text is None else column.read_text(text)
        except Misfit as error:
            raise column.misfit(error) from None
    return layout.check_time(values)


def _read_header(record: bytes, name: str, layout: Layout) -> list[int]:
    try:
        fields = split_fields(record.decode().rstrip("\r\n"))
    except (UnicodeDecodeError, Misfit):
        raise LoadError(f"{name}, line 1: the header is not CSV in UTF-8.") from None
    if not any(fields):
        raise LoadError(f"{name} has no header line; its first line must name the columns {layout.column_names}.")
    return layout.match_names((field or "" for field in fields), f"{name}, line 1")


class _Locator:
    """The line of a row in a block: found by walking, since fields may hold line ends."""

    def __init__(self, line: int, block: bytes) -> None:
        self._line = line
        self._block = block

    def __call__(self, row: int) -> int:
        if b'"' not in self._block:
            return self._line + row
        for number, (line, _, _) in enumerate(split_records(self._line, self._block)):
            if number == row:
                return line
        raise IndexError(row)
