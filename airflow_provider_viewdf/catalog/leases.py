"""Leases: who is computing a part right now. They save double work; correctness never depends on them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import Connection, delete, or_, select, update

from airflow_provider_viewdf.catalog.tables import leases
from airflow_provider_viewdf.catalog.upsert import insert_or_update
from airflow_provider_viewdf.definitions import fold


def acquire(connection: Connection, table: str, index: int, owner: str, seconds: float) -> str | None:
    """Take the lease of a part if it is free, expired or the owner's own, in one statement."""
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
    free = or_(leases.c.expires_at <= now, leases.c.expires_at > far, leases.c.owner == owner)
    statement = insert_or_update(connection, leases, ("token", "owner", "expires_at"), only_if=free)
    # RETURNING, since not every driver counts the rows of an INSERT.
    return connection.execute(statement.returning(leases.c.token), row).scalar_one_or_none()


def renew(connection: Connection, token: str, seconds: float) -> bool:
    """Prolong a lease from now on. False if someone else has taken it over."""
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    return connection.execute(update(leases).where(leases.c.token == token).values(expires_at=until)).rowcount == 1


def release(connection: Connection, token: str) -> None:
    connection.execute(delete(leases).where(leases.c.token == token))


def holder(connection: Connection, table: str, index: int) -> str | None:
    return connection.scalar(
        select(leases.c.owner).where(
            leases.c.table_key == fold(table), leases.c.part_index == index, leases.c.expires_at > datetime.now(UTC)
        )
    )
