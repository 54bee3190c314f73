"""A lake for tests: files that somebody else writes, an hour a directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import fsspec
import pyarrow
import pyarrow.parquet

FIRST = 394474  # 2015-01-01 10:00

Row = tuple[str, str, int]
COLUMNS = ("ts", "k", "v")


def hour(number: int) -> datetime:
    return datetime(2015, 1, 1, number, tzinfo=UTC)


def row(number: int, key: str, value: int) -> Row:
    return f"2015-01-01 {number:02}:05:00", key, value


class Lake:
    """Writes files of parts below a directory or a URL, without a line of the engine's."""

    def __init__(self, url: str, format: str = "csv") -> None:
        self.url = url
        self.format = format
        self._filesystem, self._path = fsspec.core.url_to_fs(url)

    def directory(self, number: int) -> str:
        return f"{self._path}/dt=2015-01-01/h={number:02}"

    @property
    def location(self) -> str:
        return f"{self.url}/dt={{yyyy-MM-dd}}/h={{HH}}"

    def define(self, clauses: str = "", name: str = "E") -> str:
        return (
            f"CREATE STREAM {name} (ts TIMESTAMP ORDERED, k STRING, v INT) PARTITION LENGTH '1 hour' "
            f"LOCATION '{self.location}' FORMAT {self.format} {clauses}"
        )

    def write(self, number: int, rows: Sequence[Row], name: str = "a") -> str:
        file = f"{self.directory(number)}/{name}.{self.format}"
        self._filesystem.makedirs(file.rpartition("/")[0], exist_ok=True)
        with self._filesystem.open(file, "wb") as opened:
            if self.format == "parquet":
                pyarrow.parquet.write_table(_make_table(rows), opened)
            else:
                opened.write(self._write_text(rows).encode())
        return file

    def write_text(self, number: int, name: str, text: str = "") -> None:
        file = f"{self.directory(number)}/{name}"
        self._filesystem.makedirs(file.rpartition("/")[0], exist_ok=True)
        with self._filesystem.open(file, "wb") as opened:
            opened.write(text.encode())

    def delete(self, number: int, name: str) -> None:
        self._filesystem.rm(f"{self.directory(number)}/{name}")

    def _write_text(self, rows: Sequence[Row]) -> str:
        if self.format == "csv":
            return "\n".join([",".join(COLUMNS), *(",".join(map(str, item)) for item in rows)]) + "\n"
        return "".join(json.dumps(dict(zip(COLUMNS, item, strict=True))) + "\n" for item in rows)


def _make_table(rows: Sequence[Row]) -> Any:
    times = [datetime.fromisoformat(item[0]).replace(tzinfo=UTC) for item in rows]
    return pyarrow.table(
        {
            # In another order than declared: Parquet goes by name.
            "v": pyarrow.array([item[2] for item in rows], pyarrow.int32()),
            "k": pyarrow.array([item[1] for item in rows], pyarrow.string()),
            "ts": pyarrow.array(times, pyarrow.timestamp("us", tz="UTC")),
        }
    )
