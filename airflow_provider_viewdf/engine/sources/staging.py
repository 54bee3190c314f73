"""The rows of a source, typed and told apart by part, in Parquet files from which a batch is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.engine.sources.csv_rows import read_csv
from airflow_provider_viewdf.engine.sources.dict_rows import read_dicts
from airflow_provider_viewdf.engine.sources.files import Source, SourceFile, find_files, given_paths
from airflow_provider_viewdf.engine.sources.json_rows import read_json
from airflow_provider_viewdf.engine.sources.layouts import Layout, RowBatch
from airflow_provider_viewdf.engine.sources.parquet_rows import read_parquet
from airflow_provider_viewdf.parts import EPOCH, PartSet
from airflow_provider_viewdf.versions import RejectedRow

PART_COLUMN = "__part"

_ROWS_PER_GROUP = 256 * 1024
_BYTES_PER_GROUP = 64 * 2**20


@dataclass(frozen=True, slots=True)
class StagedRows:
    """What was staged. `first` and `last` are the earliest and latest event time, with the place of such a row."""

    rows: int
    first: tuple[datetime, str] | None
    last: tuple[datetime, str] | None
    indexes: PartSet
    rejected: tuple[RejectedRow, ...]


def stage_rows(source: Source, definition: Definition, path: str, filesystem: fsspec.AbstractFileSystem) -> StagedRows:
    """Read a source and write the rows that fit below `path`, with their part's subscript in `__part`.

    Without a row that fits, nothing is written. If the source as a whole cannot be loaded, LoadError is
    raised and nothing stays behind.
    """
    layout = Layout.of(definition)
    extent = _Extent()
    rejected: list[RejectedRow] = []
    with _StagedFile(layout.schema.append(pa.field(PART_COLUMN, pa.int64())), path, filesystem) as output:
        for batch in _read(source, layout):
            rejected += batch.rejected
            if batch.rows.num_rows:
                micros = batch.rows.column(layout.ordered).view(pa.int64())
                indexes = part_indexes(micros, definition.length_seconds)
                extent.add(batch, micros, indexes)
                output.write(batch.rows, indexes)
    return StagedRows(
        extent.rows,
        _place(extent.first),
        _place(extent.last),
        PartSet.of_indexes(extent.indexes),
        tuple(rejected),
    )


def part_indexes(micros: pa.Array, length_seconds: int) -> pa.Array:
    """The subscripts of the parts of times in Unix microseconds: rounded down, also before 1970."""
    length = pa.scalar(length_seconds * 1_000_000, pa.int64())
    toward_zero = pc.divide(micros, length)
    is_above = pc.greater(pc.multiply(toward_zero, length), micros)
    return pc.subtract(toward_zero, is_above.cast(pa.int64()))


def _read(source: Source, layout: Layout) -> Iterator[RowBatch]:
    paths = given_paths(source)
    if paths is None:
        yield from read_dicts(cast(Iterable[object], source), layout)
        return
    for file in find_files(paths):
        yield from _read_file(file, layout)


def _read_file(file: SourceFile, layout: Layout) -> Iterator[RowBatch]:
    with file.open() as handle:
        if file.kind == "csv":
            yield from read_csv(handle, file.name, layout)
        elif file.kind == "json":
            yield from read_json(handle, file.name, layout)
        else:
            yield from read_parquet(handle, file.name, layout)


# A time in microseconds, and the batch and row where it stands; the line is looked up only at the end.
_Candidate = tuple[int, RowBatch, int]


class _Extent:
    """How far the rows reach, as batches come in."""

    def __init__(self) -> None:
        self.rows = 0
        self.first: _Candidate | None = None
        self.last: _Candidate | None = None
        self.indexes: set[int] = set()

    def add(self, batch: RowBatch, micros: pa.Array, indexes: pa.Array) -> None:
        self.rows += batch.rows.num_rows
        self.indexes.update(pc.unique(indexes).to_pylist())
        bounds = pc.min_max(micros).as_py()
        low, high = bounds["min"], bounds["max"]
        if self.first is None or low < self.first[0]:
            self.first = low, batch, pc.index(micros, low).as_py()
        if self.last is None or high > self.last[0]:
            self.last = high, batch, pc.index(micros, high).as_py()


def _place(candidate: _Candidate | None) -> tuple[datetime, str] | None:
    if candidate is None:
        return None
    micros, batch, row = candidate
    return EPOCH + timedelta(microseconds=micros), f"{batch.source}, {batch.unit} {batch.locate(row)}"


class _StagedFile:
    """One Parquet file that comes into being with its first rows and disappears again on an error."""

    def __init__(self, schema: pa.Schema, path: str, filesystem: fsspec.AbstractFileSystem) -> None:
        self._schema = schema
        self._directory = path.rstrip("/")
        self._path = f"{self._directory}/rows.parquet"
        self._filesystem = filesystem
        self._handle: Any = None
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def __enter__(self) -> _StagedFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write_group()
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            if self._handle is not None:
                self._handle.close()
                if kind is not None:
                    self._filesystem.rm_file(self._path)

    def write(self, rows: pa.RecordBatch, indexes: pa.Array) -> None:
        self._waiting.append(pa.RecordBatch.from_arrays([*rows.columns, indexes], schema=self._schema))
        if (
            sum(batch.num_rows for batch in self._waiting) >= _ROWS_PER_GROUP
            or sum(batch.nbytes for batch in self._waiting) >= _BYTES_PER_GROUP
        ):
            self._write_group()

    def _write_group(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._filesystem.makedirs(self._directory, exist_ok=True)
            self._handle = self._filesystem.open(self._path, "wb")
            self._writer = pq.ParquetWriter(self._handle, self._schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema), row_group_size=_ROWS_PER_GROUP)
        self._waiting = []
