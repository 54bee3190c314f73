"""Rows and statuses as text."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.table import Table

from airflow_provider_viewdf.parts import Partitioning, PartSet, format_length, format_time
from airflow_provider_viewdf.reports import TableStatus


def format_rows(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], format: str) -> str:
    if format == "json":
        objects = [{name: plain(value) for name, value in zip(columns, row, strict=True)} for row in rows]
        return json.dumps(objects, ensure_ascii=False)
    if format == "csv":
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(value) for value in row] for row in rows)
        return output.getvalue().removesuffix("\n")
    table = Table(*columns)
    for row in rows:
        table.add_row(*("NULL" if value is None else _text(value) for value in row))
    return _render(table) + f"\n{len(rows)} row{'' if len(rows) == 1 else 's'}"


def format_rate(parts: int, seconds: float) -> str:
    """How fast parts were computed: `12.3 parts/s`."""
    return f"{parts / seconds if seconds > 0 else 0:.1f} parts/s"


def plain(value: Any) -> Any:
    """A value of a row as JSON knows it."""
    if isinstance(value, datetime):
        # PySpark hands out times in the zone of this machine, without saying so.
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode()
    if hasattr(value, "asDict"):
        return {key: plain(item) for key, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _text(value: Any) -> str:
    value = plain(value)
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else str(value)


def format_statuses(statuses: Sequence[TableStatus], *, in_detail: bool) -> str:
    table = Table("name", "kind", "part length", "parts", "from", "to", "rows", "stale", "missing", "last updated")
    for item in statuses:
        first = last = ""
        if item.parts:
            partitioning = Partitioning(item.length_seconds)
            first, last = partitioning.format(item.parts.first), partitioning.format(item.parts.last)
        table.add_row(
            item.name,
            ("external" if item.location else "table") if item.kind == "stream" else item.kind,
            format_length(item.length_seconds) if item.length_seconds else "",
            str(len(item.parts)),
            first,
            last,
            "" if item.location else str(item.rows),
            str(len(item.stale)),
            str(len(item.missing)),
            "" if item.last_updated is None else format_time(item.last_updated.replace(microsecond=0)),
        )
    lines = [_render(table)] if statuses else ["Nothing is defined yet."]
    for item in statuses:
        lines += _describe(item, in_detail=in_detail)
    return "\n".join(lines)


def _describe(item: TableStatus, *, in_detail: bool) -> list[str]:
    lines = []
    if in_detail:
        lines.append("columns: " + ", ".join(f"{name} {type}" for name, type in item.columns))
    if not item.length_seconds:
        return lines
    partitioning = Partitioning(item.length_seconds)
    if item.location:
        files = f"{item.files} file{'' if item.files == 1 else 's'}, {item.bytes} bytes"
        lines.append(f"{item.name}: {files} at {item.location}; their rows are not counted")
    for title, parts in (("missing", item.missing), ("stale", item.stale), ("archived", item.archived)):
        if parts:
            lines.append(f"{item.name}: {title} {_shorten(parts, partitioning)}")
    if item.stale:
        lines += [f"  because {reason}" for reason in item.stale_because[:10]]
    if item.earlier_definition:
        count = len(item.earlier_definition)
        lines.append(
            f"{item.name}: {count} part{'' if count == 1 else 's'} made by an earlier definition, "
            f"{_shorten(item.earlier_definition, partitioning)}"
        )
    if item.rejected_rows:
        lines.append(f"{item.name}: {item.rejected_rows} rows set aside, see {item.name}_quarantine")
    if item.late:
        lines.append(f"{item.name}: late rows: {item.late} ({item.late_rows})")
    elif in_detail and item.late_rows:
        lines.append(f"{item.name}: no late rows so far ({item.late_rows})")
    lines += [
        f"{item.name}: {partitioning.format(part.index)} declared empty by {part.by}: {part.why}"
        for part in item.declared_empty
    ]
    return lines


def _shorten(parts: PartSet, partitioning: Partitioning, longest: int = 5) -> str:
    shown = PartSet(parts.ranges[:longest]).format(partitioning)
    more = len(parts.ranges) - longest
    return shown + (f", and {more} more ranges" if more > 0 else "")


def _render(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(table)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue().rstrip("\n")
