"""Saving definitions, and what that does to the parts there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, delete, func, select, update

from airflow_provider_viewdf.catalog.batches import drop_batches
from airflow_provider_viewdf.catalog.extents import read_extents
from airflow_provider_viewdf.catalog.ranges import bounds
from airflow_provider_viewdf.catalog.reader import read_archives
from airflow_provider_viewdf.catalog.rows import definition_row
from airflow_provider_viewdf.catalog.staleness import Staleness
from airflow_provider_viewdf.catalog.tables import (
    archives,
    definitions,
    extents,
    part_versions,
    parts_table,
    row_totals,
    stale_ranges,
)
from airflow_provider_viewdf.catalog.upsert import insert_or_update
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartRange, PartSet
from airflow_provider_viewdf.versions import DefinitionRecord, StaleRange

REASON = "definition changed"

Effect = Literal["keep", "stale", "drop", "remove"]


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """A definition to save, and what becomes of its parts.

    `keep`: they stay as they are. `stale`: each has to be computed again. `drop`: they no longer exist, and a
    stream's batches are forgotten with them. `remove`: the definition goes too. `stale` is what of other views becomes
    stale.
    """

    record: DefinitionRecord
    effect: Effect
    stale: tuple[StaleRange, ...] = ()


def save_changes(connection: Connection, changes: Sequence[DefinitionChange], produced_by: str, at: datetime) -> None:
    last = connection.scalar(select(func.max(definitions.c.position))) or 0
    rows = [
        {**definition_row(change.record, produced_by), "position": last + number}
        for number, change in enumerate(changes, start=1)
    ]
    # Not the position: a definition that is changed keeps its place.
    changing = [name for name in rows[0] if name not in ("table_key", "position")]
    connection.execute(insert_or_update(connection, definitions, changing), rows)
    for change in changes:
        if change.effect in ("drop", "remove"):
            _drop_parts(connection, fold(change.record.name), at)
        if change.effect == "remove":
            connection.execute(delete(definitions).where(definitions.c.table_key == fold(change.record.name)))
    for change in changes:
        if change.effect == "stale":
            key = fold(change.record.name)
            _record(connection, key, read_extents(connection, key).ranges, REASON)
        for item in change.stale:
            _record(connection, fold(item.table), [item.parts], item.reason)


def _drop_parts(connection: Connection, key: str, at: datetime) -> None:
    connection.execute(update(parts_table).where(parts_table.c.table_key == key).values(version=None))
    connection.execute(
        update(part_versions)
        .where(part_versions.c.table_key == key, part_versions.c.replaced_at.is_(None))
        .values(replaced_at=at)
    )
    for table in (extents, row_totals, stale_ranges, archives):
        connection.execute(delete(table).where(table.c.table_key == key))
    drop_batches(connection, key)


def _record(connection: Connection, key: str, ranges: Sequence[PartRange], reason: str) -> None:
    """Record ranges as stale, cut to the parts that exist and are kept."""
    box = bounds(ranges)
    if box is None:
        return
    kept = PartSet.between(read_archives(connection).get(key, EARLIEST), LATEST)
    existing = read_extents(connection, key, box) & PartSet.of(ranges) & kept
    staleness = Staleness(connection, {key: box})
    staleness.add(key, existing.ranges, reason)
    staleness.write()
