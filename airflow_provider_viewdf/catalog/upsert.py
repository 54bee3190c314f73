"""INSERT ... ON CONFLICT, which both databases write alike and SQLAlchemy keeps in two places."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_or_update(
    connection: Connection, table: Table, columns: Sequence[str], *, only_if: ColumnElement[bool] | None = None
) -> Insert:
    """Insert rows; where the primary key is there already, set `columns`, if `only_if` holds for that row."""
    key = list(table.primary_key.columns)
    if connection.dialect.name == "postgresql":
        new = postgresql.insert(table)
        return new.on_conflict_do_update(
            index_elements=key, set_={name: new.excluded[name] for name in columns}, where=only_if
        )
    row = sqlite.insert(table)
    return row.on_conflict_do_update(
        index_elements=key, set_={name: row.excluded[name] for name in columns}, where=only_if
    )


def insert_or_add(connection: Connection, table: Table, column: str) -> Insert:
    """Insert rows; where the primary key is there already, add to the number in `column`."""
    key = list(table.primary_key.columns)
    if connection.dialect.name == "postgresql":
        new = postgresql.insert(table)
        return new.on_conflict_do_update(index_elements=key, set_={column: table.c[column] + new.excluded[column]})
    row = sqlite.insert(table)
    return row.on_conflict_do_update(index_elements=key, set_={column: table.c[column] + row.excluded[column]})
