"""Leases: who is computing a part right now. They save double work; correctness never depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import Connection, delete, or_, select, update

from airflow_provider_viewdf.catalog.tables import leases
from airflow_provider_viewdf.catalog.upsert import insert_or_update
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.versions import Writer

# No table has such a name.
WRITER = "writer "


def acquire(
    connection: Connection, table: str, index: int, owner: str, seconds: float, instead_of: str | None = None
) -> str | None:
    """Take the lease of a part if it is free, expired, the owner's own or that of `instead_of`, in one statement."""
    now = datetime.now(UTC)
    row = {
        "table_key": fold(table),
        "part_index": index,
        "token": uuid4().hex,
        "owner": owner,
        "expires_at": now + timedelta(seconds=seconds),
    }
    # A lease that ends much later than any that is taken now comes from a clock that was ahead, or has been turned back since.
    far = now + timedelta(seconds=2 * seconds)
    owners = [owner, instead_of or owner]
    free = or_(leases.c.expires_at <= now, leases.c.expires_at > far, leases.c.owner.in_(owners))
    statement = insert_or_update(connection, leases, ("token", "owner", "expires_at"), only_if=free)
    # RETURNING, since not every driver counts the rows of an INSERT.
    return connection.execute(statement.returning(leases.c.token), row).scalar_one_or_none()


def renew(connection: Connection, token: str, seconds: float) -> bool:
    """Prolong a lease from now on. False if someone else has taken it over."""
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    return connection.execute(update(leases).where(leases.c.token == token).values(expires_at=until)).rowcount == 1


def release(connection: Connection, token: str) -> None:
    connection.execute(delete(leases).where(leases.c.token == token))


def is_there(connection: Connection, token: str) -> bool:
    return connection.scalar(select(leases.c.token).where(leases.c.token == token)) is not None


def holders(connection: Connection, table: str, indexes: Sequence[int]) -> dict[int, str]:
    """Who holds which of these parts."""
    query = select(leases.c.part_index, leases.c.owner).where(
        leases.c.table_key == fold(table), leases.c.expires_at > datetime.now(UTC)
    )
    wanted = set(indexes)
    return {index: owner for index, owner in connection.execute(query) if index in wanted}


def writers(connection: Connection) -> list[Writer]:
    """Everyone who holds the lease of a writer, expired or not."""
    query = select(leases).where(leases.c.table_key.startswith(WRITER, autoescape=True))
    now = datetime.now(UTC)
    return [
        Writer(row.table_key.removeprefix(WRITER), row.token, row.owner, row.expires_at <= now)
        for row in connection.execute(query)
    ]
