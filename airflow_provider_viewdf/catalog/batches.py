"""Load batches: what each covered, what it brought into which part, and what it could not bring."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select

from airflow_provider_viewdf.catalog.tables import HAS_LATE_ROWS, batch_covers, batch_parts, batches, rejected_rows
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import ConflictError
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.versions import Batch, BatchPart, ContentDigest, LateCount, RejectedRow


def check_batch(connection: Connection, batch: Batch, before: Batch | None, name: str) -> None:
    """Refuse to replace a batch by one that was made without knowing of it."""
    found = read_batches(connection, fold(batch.table), name, batch.batch_id)
    if (found[0] if found else None) != before:
        raise ConflictError(
            f"The batch {batch.batch_id} of {name} was loaded by someone else meanwhile. Nothing was written; try again."
        )


def write_batch(connection: Connection, batch: Batch) -> None:
    """Record a batch in place of an earlier one of the same id. Parts without rows are not recorded."""
    own = {"table_key": fold(batch.table), "batch_id": batch.batch_id}
    connection.execute(
        delete(batches).where(batches.c.table_key == own["table_key"], batches.c.batch_id == own["batch_id"])
    )
    header = {
        "source": batch.source,
        "loaded_at": batch.loaded_at,
        "produced_by": batch.produced_by,
        "declared_empty_because": batch.declared_empty_because,
        "late_taken": batch.late.taken,
        "late_quarantined": batch.late.quarantined,
        "late_ignored": batch.late.ignored,
        "measured_against": batch.measured_against,
    }
    connection.execute(insert(batches), {**own, **header})
    _insert(connection, batch_covers, [{**own, "low": item.low, "high": item.high} for item in batch.covers.ranges])
    _insert(
        connection,
        batch_parts,
        [{**own, "part_index": part.index, "digest": str(part.digest)} for part in batch.parts if part.digest.rows],
    )
    _insert(
        connection,
        rejected_rows,
        [
            {
                **own,
                "position": position,
                "source": row.source,
                "line": row.line,
                "reason": row.reason,
                "row_text": row.row,
            }
            for position, row in enumerate(batch.rejected)
        ],
    )


def _insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def drop_batches(connection: Connection, key: str) -> None:
    connection.execute(delete(batches).where(batches.c.table_key == key))


def find_newest_part(connection: Connection, key: str, except_batch: str) -> int | None:
    """The newest part that batches other than this one cover, or brought rows into."""
    found = [
        connection.scalar(
            select(column)
            .where(column.table.c.table_key == key, column.table.c.batch_id != except_batch)
            .order_by(column.table.c.table_key.desc(), column.desc())
            .limit(1)
        )
        for column in (batch_covers.c.high, batch_parts.c.part_index)
    ]
    return max((index for index in found if index is not None), default=None)


def count_late_rows(connection: Connection, key: str) -> LateCount:
    columns = (batches.c.late_taken, batches.c.late_quarantined, batches.c.late_ignored)
    query = select(*(func.sum(column) for column in columns)).where(batches.c.table_key == key, HAS_LATE_ROWS)
    row = connection.execute(query).one()
    return LateCount(*(int(value or 0) for value in row))


def read_batches(connection: Connection, key: str, name: str, batch_id: str | None = None) -> list[Batch]:
    """The batches of a table, or the one of an id, in the order of loading."""

    def rows_of(table: Table, *order: str) -> list[Any]:
        query = select(table).where(table.c.table_key == key)
        rows = connection.execute(query if batch_id is None else query.where(table.c.batch_id == batch_id))
        # Sorted here: else SQLite walks through all batches, in this order, to find the one.
        return sorted(rows, key=attrgetter(*order)) if order else list(rows)

    headers = rows_of(batches)
    if not headers:
        return []
    covers: dict[str, list[PartRange]] = defaultdict(list)
    for row in rows_of(batch_covers, "low"):
        covers[row.batch_id].append(PartRange(row.low, row.high))
    parts: dict[str, list[BatchPart]] = defaultdict(list)
    for row in rows_of(batch_parts, "part_index"):
        parts[row.batch_id].append(BatchPart(row.part_index, ContentDigest.parse(row.digest)))
    rejected: dict[str, list[RejectedRow]] = defaultdict(list)
    for row in rows_of(rejected_rows, "position"):
        rejected[row.batch_id].append(RejectedRow(row.source, row.line, row.reason, row.row_text))
    found = [
        Batch(
            table=name,
            batch_id=row.batch_id,
            source=row.source,
            covers=PartSet(tuple(covers[row.batch_id])),
            parts=tuple(parts[row.batch_id]),
            rejected=tuple(rejected[row.batch_id]),
            loaded_at=row.loaded_at,
            produced_by=row.produced_by,
            declared_empty_because=row.declared_empty_because,
            late=LateCount(row.late_taken, row.late_quarantined, row.late_ignored),
            measured_against=row.measured_against,
        )
        for row in headers
    ]
    return sorted(found, key=lambda batch: (batch.loaded_at, batch.batch_id))
