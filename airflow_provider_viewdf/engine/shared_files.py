"""Files that hold many parts: rows of a day of minutes, sorted by part, each with its part in the column `__part`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from airflow_provider_viewdf.engine.digests import hash_row, read_digest, sum_hashes
from airflow_provider_viewdf.engine.part_files import ROLLED
from airflow_provider_viewdf.engine.spark_errors import translated
from airflow_provider_viewdf.errors import StepFailedError
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.versions import ARCHIVED, ContentDigest

if TYPE_CHECKING:
    from airflow_provider_viewdf.definitions import Column
    from airflow_provider_viewdf.engine.engine import Engine

PART_COLUMN = "__part"

_SPAN = re.compile(rf".*/{ROLLED}/(-?\d+)_(-?\d+)-[^/]+")
_ROWS_PER_FILE = 5_000_000
_ROW_GROUP_BYTES = 16 * 1024 * 1024


def name_shared(table: str, parts: PartRange, new: str) -> str:
    """A directory for these parts, with a name that is new."""
    return f"{table}/{ROLLED}/{parts.low}_{parts.high}-{new}"


def group_shared(locations: Sequence[tuple[int, str]]) -> list[tuple[list[str], PartSet]]:
    """Directories with the parts to be read from them. Those whose spans do not overlap can be read as one."""
    wanted: dict[str, list[int]] = {}
    for index, location in locations:
        if location == ARCHIVED:
            raise StepFailedError(f"Part {index} is archived, and its rows are no longer kept: leave it out.")
        directory, separator, part = location.partition("#")
        if separator:
            wanted.setdefault(directory, []).append(int(part))
    spans = sorted(_read_span(directory) for directory in wanted)
    if all(left.high < right.low for left, right in pairwise(spans)) and wanted:
        return [(list(wanted), PartSet.of_indexes(part for parts in wanted.values() for part in parts))]
    return [([directory], PartSet.of_indexes(parts)) for directory, parts in wanted.items()]


def _read_span(directory: str) -> PartRange:
    match = _SPAN.fullmatch(directory)
    assert match is not None, directory
    return PartRange(int(match.group(1)), int(match.group(2)))


def write_shared(
    engine: Engine,
    columns: tuple[Column, ...],
    extra: tuple[Column, ...],
    locations: Sequence[tuple[int, str]],
    rows: int,
    out_location: str,
) -> dict[int, ContentDigest]:
    """Write the rows of these parts into few files, and read back the digest of each. `extra` columns have no part in it."""
    files = max(1, -(-rows // _ROWS_PER_FILE))
    with engine.cleaning_up(out_location), translated():
        found = engine.read_parts((*columns, *extra), locations)
        spread = found.repartition(1) if files == 1 else found.repartitionByRange(files, PART_COLUMN)
        writer = spread.sortWithinPartitions(PART_COLUMN).write.option("parquet.block.size", str(_ROW_GROUP_BYTES))
        engine.save(writer, out_location)
        return _digest(engine, columns, out_location)


def _digest(engine: Engine, columns: tuple[Column, ...], location: str) -> dict[int, ContentDigest]:
    from pyspark.sql import functions

    from airflow_provider_viewdf.definitions import Column

    rows = engine.read_directory((*columns, Column(PART_COLUMN, "bigint")), location)
    hashes = rows.selectExpr(PART_COLUMN, f"{hash_row(rows.drop(PART_COLUMN).schema)} AS __hash")
    figures = [functions.expr(figure) for figure in sum_hashes("__hash")]
    return {row[PART_COLUMN]: read_digest(row.asDict()) for row in hashes.groupBy(PART_COLUMN).agg(*figures).collect()}
