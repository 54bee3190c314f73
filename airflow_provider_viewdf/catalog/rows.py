"""Rows of the catalog's tables from values, and values from rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import RowMapping

from airflow_provider_viewdf.definitions import Column, fold
from airflow_provider_viewdf.versions import ContentDigest, DefinitionRecord, InputRange, PartFile, PartVersion


def definition_row(record: DefinitionRecord, produced_by: str) -> dict[str, Any]:
    return {
        "table_key": fold(record.name),
        "name": record.name,
        "kind": record.kind,
        "text": record.text,
        "digest": record.digest,
        "column_list": json.dumps([[column.name, column.type] for column in record.columns]),
        "length_seconds": record.length_seconds,
        "start_index": record.start_index,
        "helper_of": record.helper_of,
        "translation": record.translation,
        "updated_at": record.updated_at,
        "produced_by": produced_by,
    }


def definition_record(row: RowMapping) -> DefinitionRecord:
    return DefinitionRecord(
        name=row["name"],
        kind=row["kind"],
        text=row["text"],
        digest=row["digest"],
        columns=tuple(Column(name, kind) for name, kind in json.loads(row["column_list"])),
        length_seconds=row["length_seconds"],
        start_index=row["start_index"],
        helper_of=row["helper_of"],
        translation=row["translation"],
        updated_at=row["updated_at"],
        produced_by=row["produced_by"],
    )


def version_row(version: PartVersion) -> dict[str, Any]:
    return {
        "table_key": fold(version.table),
        "part_index": version.index,
        "version": version.version,
        "location": version.location,
        "rows": version.digest.rows,
        "digest": str(version.digest),
        "definition_digest": version.definition_digest,
        "inputs": json.dumps([[item.table, item.low, item.high] for item in version.inputs]),
        "inputs_digest": version.inputs_digest,
        "rule": version.rule,
        "created_at": version.created_at,
        "produced_by": version.produced_by,
        "files": json.dumps([[item.name, item.size, item.mark] for item in version.files]) if version.files else "",
    }


def part_version(row: RowMapping, names: Mapping[str, str]) -> PartVersion:
    key = row["table_key"]
    return PartVersion(
        table=names.get(key, key),
        index=row["part_index"],
        version=row["version"],
        location=row["location"],
        digest=ContentDigest.parse(row["digest"]),
        definition_digest=row["definition_digest"],
        inputs=tuple(InputRange(table, low, high) for table, low, high in json.loads(row["inputs"])),
        inputs_digest=row["inputs_digest"],
        rule=row["rule"],
        created_at=row["created_at"],
        produced_by=row["produced_by"],
        files=tuple(PartFile(*item) for item in json.loads(row["files"])) if row["files"] else (),
    )
