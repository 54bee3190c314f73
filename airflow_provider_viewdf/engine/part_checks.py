"""Whether the files of a part are what was written: there, readable, with its columns and its rows. Without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_viewdf.definitions import Column
from airflow_provider_viewdf.engine.part_files import PartFiles
from airflow_provider_viewdf.engine.shared_files import PART_COLUMN
from airflow_provider_viewdf.engine.sources.spark_types import name_type
from airflow_provider_viewdf.versions import PartVersion, directory_of


def find_damage(files: PartFiles, versions: Sequence[PartVersion], columns: Sequence[Column]) -> dict[int, str]:
    """By part: what is wrong with its files. `versions` are of one table, and have files."""
    found: dict[int, str] = {}
    by_directory: dict[str, list[PartVersion]] = {}
    for version in versions:
        by_directory.setdefault(directory_of(version.location), []).append(version)
    for directory, mine in by_directory.items():
        is_shared = "#" in mine[0].location
        expected = (*columns, Column(PART_COLUMN, "bigint")) if is_shared else columns
        rows, problem = _read(files, directory, expected, is_shared=is_shared)
        for version in mine:
            count = rows.get(version.index, 0) if is_shared else rows.get(None, 0)
            if problem:
                found[version.index] = problem
            elif count != version.rows:
                found[version.index] = f"{directory} has {count} rows of it, and {version.rows} were written"
    return found


def _read(
    files: PartFiles, directory: str, columns: Sequence[Column], *, is_shared: bool
) -> tuple[Mapping[int | None, int], str]:
    """How many rows the files of a directory have, by part if parts share it; and what is wrong with them."""
    rows: Counter[int | None] = Counter()
    paths = sorted(_list_files(files, directory))
    if not paths:
        return rows, f"{directory} has no files"
    for path in paths:
        name = f"{directory}/{path.rpartition('/')[2]}"
        try:
            with files.filesystem.open(path, "rb") as stream:
                file = pq.ParquetFile(stream)
                if problem := _compare(file.schema_arrow, columns):
                    return rows, f"{name} {problem}"
                if is_shared:
                    rows.update(file.read([PART_COLUMN]).column(PART_COLUMN).to_pylist())
                else:
                    rows[None] += file.metadata.num_rows
        except (OSError, pa.ArrowException) as error:
            return rows, f"{name} cannot be read ({_first_line(error)})"
    return rows, ""


def _list_files(files: PartFiles, directory: str) -> list[str]:
    files.filesystem.invalidate_cache()
    try:
        found: list[str] = files.filesystem.find(files.path(directory))
    except FileNotFoundError:
        return []
    return [path for path in found if path.endswith(".parquet")]


def _compare(schema: pa.Schema, columns: Sequence[Column]) -> str:
    present = {field.name.lower(): name_type(_in_utc(field.type)) for field in schema}
    for column in columns:
        type_name = present.get(column.name.lower())
        if type_name is None:
            return f"has no column {column.name}"
        # How Arrow reads nested types and intervals is a matter of its version; Spark compares them when it reads.
        if type_name != column.type and "<" not in column.type and column.type in _COMPARED:
            return f"has {type_name} where {column.name} is {column.type}"
    return ""


_COMPARED = {"boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"}


def _in_utc(type_: Any) -> Any:
    """Spark writes UTC, and Arrow may find nanoseconds or no zone in the file of another writer."""
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(type_) and type_.tz else type_


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
