"""Where the rows of parts are kept, and for how long: roll-ups and archives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, delete, func, select, update

from airflow_provider_viewdf.catalog.tables import archives, part_versions, retired_locations, row_totals, stale_ranges
from airflow_provider_viewdf.catalog.upsert import insert_or_update
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.versions import ARCHIVED, Move, directory_of


def relocate(connection: Connection, moves: Sequence[Move], at: datetime) -> int:
    """Let current versions lie elsewhere: how many did. One that was replaced or moved meanwhile stays where it is."""
    statement = (
        update(part_versions)
        .where(
            part_versions.c.table_key == bindparam("of_table"),
            part_versions.c.part_index == bindparam("of_index"),
            part_versions.c.version == bindparam("of_version"),
            part_versions.c.location == bindparam("old_location"),
            part_versions.c.replaced_at.is_(None),
        )
        .values(location=bindparam("new_location"))
    )
    moved: list[str] = []
    for move in moves:
        row = {
            "of_table": fold(move.version.table),
            "of_index": move.version.index,
            "of_version": move.version.version,
            "old_location": move.version.location,
            "new_location": move.location,
        }
        if connection.execute(statement, row).rowcount == 1:
            moved.append(move.version.location)
    _retire(connection, moved, at)
    return len(moved)


def archive(connection: Connection, table: str, before: int, produced_by: str, at: datetime) -> None:
    """Keep the rows of older parts no longer. Never turns back: what is archived stays so."""
    key = fold(table)
    _count_out(connection, key, before)
    only_later = archives.c.before < before
    row = {"table_key": key, "before": before, "archived_at": at, "produced_by": produced_by}
    connection.execute(
        insert_or_update(connection, archives, ("before", "archived_at", "produced_by"), only_if=only_later), row
    )
    lost = and_(
        part_versions.c.table_key == key,
        part_versions.c.part_index < before,
        part_versions.c.replaced_at.is_(None),
        part_versions.c.location != "",
        part_versions.c.location != ARCHIVED,
    )
    _retire(connection, connection.scalars(select(part_versions.c.location).where(lost)), at)
    connection.execute(update(part_versions).where(lost).values(location=ARCHIVED))
    connection.execute(delete(stale_ranges).where(stale_ranges.c.table_key == key, stale_ranges.c.high < before))
    connection.execute(
        update(stale_ranges)
        .where(stale_ranges.c.table_key == key, stale_ranges.c.low < before, stale_ranges.c.high >= before)
        .values(low=before)
    )


def _count_out(connection: Connection, key: str, before: int) -> None:
    """Take the rows of parts that are about to be archived out of the total."""
    since = connection.scalar(select(archives.c.before).where(archives.c.table_key == key))
    leaving = [
        part_versions.c.table_key == key,
        part_versions.c.part_index < before,
        part_versions.c.replaced_at.is_(None),
        *([part_versions.c.part_index >= since] if since is not None else []),
    ]
    rows = connection.scalar(select(func.sum(part_versions.c.rows)).where(*leaving)) or 0
    connection.execute(
        update(row_totals).where(row_totals.c.table_key == key).values(rows=row_totals.c.rows - int(rows))
    )


def forget_retired(connection: Connection, locations: Sequence[str]) -> None:
    if locations:
        connection.execute(
            delete(retired_locations).where(retired_locations.c.location == bindparam("gone")),
            [{"gone": location} for location in locations],
        )


def _retire(connection: Connection, locations: Iterable[str], at: datetime) -> None:
    directories = {directory_of(found) for found in locations} - {""}
    rows = [{"location": item, "retired_at": at} for item in sorted(directories)]
    if rows:
        connection.execute(insert_or_update(connection, retired_locations, ("retired_at",)), rows)
