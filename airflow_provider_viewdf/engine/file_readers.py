"""How Spark reads files that others wrote: of dimension tables, and of external streams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_provider_viewdf.definitions import Column
from airflow_provider_viewdf.engine.digests import quote_name
from airflow_provider_viewdf.locations import LocationTemplate
from airflow_provider_viewdf.parts import EPOCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

# Whatever the session says.
_NEVER_SILENT = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}

# A row that does not fit the declared columns is an error, not a row of NULLs.
_OPTIONS = {
    "csv": {"header": "true", "enforceSchema": "false", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
}

# `file:/x` and `file:///x` are the same: what stands behind the protocol is compared.
_PROTOCOL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/*")


@dataclass(frozen=True, slots=True)
class ExternalInput:
    """Files of parts of an external stream: their URLs, their format, and how the part follows from the URL."""

    table: str
    urls: tuple[str, ...]
    format: str
    options: tuple[tuple[str, str], ...]
    template: LocationTemplate
    length_seconds: int

    def read(self, spark: SparkSession, columns: Sequence[Column], part_column: str) -> DataFrame:
        reader = prepare_reader(spark, columns, self.format, self.options)
        # A recursive read takes no directory name such as h=10 for a column.
        rows = reader.option("recursiveFileLookup", "true").load([escape_glob(url) for url in self.urls])
        return rows.selectExpr("*", f"{self.write_part()} AS {part_column}") if part_column else rows

    def write_part(self) -> str:
        """An expression for the part that a row's file belongs to, by the date in its URL."""
        # Spark gives the URL encoded. A plus sign would be decoded to a space.
        url = "url_decode(replace(_metadata.file_path, '+', '%2B'))"
        path = f"regexp_replace({url}, r'{_PROTOCOL.pattern}', '')"
        skipped = len(self.template.directory_at(EPOCH)) - len(_PROTOCOL.sub("", self.template.directory_at(EPOCH)))
        found = {
            field.pattern: f"substr({path}, {field.offset - skipped + 1}, {len(field.pattern)})"
            for field in self.template.fields
        }
        date = [found.get("yyyy"), found.get("MM", "'01'"), found.get("dd", "'01'")]
        time = [found.get(name, "'00'") for name in ("HH", "mm", "ss")]
        text = f"concat_ws('-', {', '.join(map(str, date))}) || ' ' || concat_ws(':', {', '.join(time)})"
        # The date may be that of the hour, say, in which a part of 90 minutes begins: the part begins then or later.
        return f"CAST(ceil(unix_seconds(CAST({text} AS TIMESTAMP)) / {self.length_seconds}BD) AS BIGINT)"

    def explain_missing(self, path: str) -> str:
        return (
            f"{self.table} has the file {path}, which is not there any more: put it back, or register what is there now: "
            f"viewdf look {self.table}."
        )


def prepare_reader(
    spark: SparkSession, columns: Sequence[Column], format: str, settings: Sequence[tuple[str, str]]
) -> DataFrameReader:
    """A reader with the declared columns, and with options that a person may have set otherwise."""
    options = {**_NEVER_SILENT, **_OPTIONS.get(format.lower(), {})}
    for key, value in settings:
        # Spark takes options without regard to case, and refuses two that differ only in it.
        options = {name: setting for name, setting in options.items() if name.lower() != key.lower()} | {key: value}
    return spark.read.schema(write_schema(columns)).format(format).options(**unlike_any_other(), **options)


def unlike_any_other() -> dict[str, str]:
    """An option without meaning that makes a read unlike every earlier one: Spark may hold a cached table for those."""
    return {"viewdf": uuid4().hex}


def escape_glob(url: str) -> str:
    """A path in which Spark sees no pattern."""
    return "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in url)


def write_schema(columns: Sequence[Column]) -> str:
    return ", ".join(f"{quote_name(column.name)} {column.type}" for column in columns)
