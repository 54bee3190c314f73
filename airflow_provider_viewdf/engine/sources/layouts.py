"""The columns of a table as they are staged, and batches of rows that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.engine.sources.spark_types import parse_type
from airflow_provider_viewdf.engine.sources.texts import Misfit, RepeatedKey, show
from airflow_provider_viewdf.engine.sources.values import TextReader, ValueReader, text_reader, value_reader
from airflow_provider_viewdf.errors import LoadError
from airflow_provider_viewdf.versions import RejectedRow

_LONGEST_ROW = 1000


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    name: str
    type: pa.DataType
    read_text: TextReader
    read_value: ValueReader

    def misfit(self, error: Misfit) -> Misfit:
        return Misfit(f"column {self.name}: {error}")


@dataclass(frozen=True, slots=True)
class Layout:
    """A table's columns with their readers; `ordered` is the position of the column that holds the event time."""

    table: str
    columns: tuple[LayoutColumn, ...]
    ordered: int
    positions: Mapping[str, int]
    schema: pa.Schema

    @classmethod
    def of(cls, definition: Definition) -> Layout:
        types = [parse_type(column.type) for column in definition.columns]
        columns = tuple(
            LayoutColumn(column.name, type_, text_reader(type_), value_reader(type_))
            for column, type_ in zip(definition.columns, types, strict=True)
        )
        positions = {fold(column.name): position for position, column in enumerate(columns)}
        ordered = positions.get(fold(definition.ordered))
        if ordered is None or not pa.types.is_timestamp(columns[ordered].type):
            raise LoadError(
                f"{definition.name} has no ORDERED column of type TIMESTAMP, which says to which part a row belongs."
            )
        schema = pa.schema([pa.field(column.name, column.type) for column in columns])
        return cls(definition.name, columns, ordered, positions, schema)

    @property
    def column_names(self) -> str:
        return ", ".join(column.name for column in self.columns)

    def match_names(self, names: Iterable[str], place: str) -> list[int]:
        """The column of each name in a file, without regard to case; LoadError unless each column is there once."""
        found: list[int] = []
        for name in names:
            position = self.positions.get(fold(name.strip()))
            if position is None:
                raise LoadError(
                    f"{place}: {show(name.strip())} is not a column of {self.table}, "
                    f"whose columns are {self.column_names}."
                )
            if position in found:
                raise LoadError(f"{place}: the column {self.columns[position].name} is there twice; name it once.")
            found.append(position)
        for position, column in enumerate(self.columns):
            if position not in found:
                raise LoadError(f"{place}: the column {column.name} of {self.table} is missing; add it.")
        return found

    def read_mapping(self, row: object) -> list[Any]:
        """The values of a JSON object or a dict. An absent key is NULL, an unknown one a misfit."""
        if not isinstance(row, Mapping):
            name = show(row) if isinstance(row, RepeatedKey) else "the row"
            raise Misfit(f"{name} is not an object of column names and values")
        values: list[Any] = [None] * len(self.columns)
        seen: set[int] = set()
        for key, value in row.items():
            position = self.positions.get(fold(key)) if isinstance(key, str) else None
            if position is None:
                raise Misfit(f"the key {show(key)} is not a column of {self.table}")
            if position in seen:
                raise Misfit(f"the column {self.columns[position].name} is given twice")
            seen.add(position)
            column = self.columns[position]
            try:
                values[position] = column.read_value(value)
            except Misfit as error:
                raise column.misfit(error) from None
        return self.check_time(values)

    def check_time(self, values: list[Any]) -> list[Any]:
        if values[self.ordered] is None:
            raise Misfit(f"column {self.columns[self.ordered].name}: no event time")
        return values


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows that fit, and the rows between them that do not.

    `locate` gives the line (or row number: `unit`) of a row of `rows`. It may be slow: ask it for few rows.
    """

    source: str
    unit: str
    rows: pa.RecordBatch
    locate: Callable[[int], int]
    rejected: tuple[RejectedRow, ...] = ()


@dataclass(slots=True)
class RowCollector:
    """Gathers rows one by one for a batch."""

    layout: Layout
    source: str
    unit: str
    lines: list[int] = field(default_factory=list)
    values: list[list[Any]] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)

    def accept(self, line: int, values: list[Any]) -> None:
        self.lines.append(line)
        self.values.append(values)

    def reject(self, line: int, reason: str, row: str) -> None:
        self.rejected.append(RejectedRow(self.source, line, reason, cut_row(row)))

    def batch(self) -> RowBatch:
        columns = zip(*self.values, strict=True) if self.values else [() for _ in self.layout.columns]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.layout.schema, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.layout.schema)
        return RowBatch(self.source, self.unit, rows, self.lines.__getitem__, tuple(self.rejected))


def cut_row(text: str) -> str:
    """A row as it is kept with its rejection: valid text, at most a thousand characters."""
    return text[:_LONGEST_ROW].encode(errors="replace").decode()
