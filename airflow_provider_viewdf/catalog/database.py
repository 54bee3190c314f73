"""A connection to the catalog's database: how a URL is read, and how transactions begin."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError, StatementError

from airflow_provider_viewdf.errors import CatalogError, CatalogUnavailableError, ViewDFError

BUSY_SECONDS = 60
CONNECT_SECONDS = 10

# A database server is restarted in less.
RECONNECT_SECONDS = 30
RECONNECT_POLL_SECONDS = 0.2

_engines: WeakSet[Engine] = WeakSet()


def _leave_connections_to_parent() -> None:
    """In a forked process, connections are made anew: one that is shared with the parent breaks for both."""
    for engine in _engines:
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_connections_to_parent)


@dataclass(frozen=True, slots=True)
class Database:
    """An engine, and its URL without the password."""

    engine: Engine
    url: str

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction in which every statement sees the same state."""
        engine = self.engine
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with self._translated_errors(), self._connect(engine) as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that commits at the end. On SQLite it is the only one that writes from its start."""
        engine = self.engine.execution_options(viewdf_writes=True)
        with self._translated_errors(), self._connect(engine) as connection, connection.begin():
            yield connection

    @staticmethod
    def _connect(engine: Engine) -> Connection:
        """A connection. While the database does not answer, it may be about to come back: nothing has been asked of it yet."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                return engine.connect()
            except OperationalError:
                if engine.dialect.name == "sqlite" or time.monotonic() > deadline:
                    raise
            time.sleep(RECONNECT_POLL_SECONDS)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            # SQLAlchemy wraps what a column type objects to, such as a time without a zone.
            if isinstance(error, StatementError) and isinstance(error.orig, ViewDFError):
                raise error.orig from None
            if self.engine.dialect.name != "sqlite" and _is_gone(error):
                raise CatalogUnavailableError(
                    f"The catalog at {self.url} went away: {first_line(error)}. Nothing is lost; try again when it is back."
                ) from error
            raise CatalogError(f"The catalog at {self.url} failed: {first_line(error)}.") from error


def _is_gone(error: SQLAlchemyError) -> bool:
    """Whether a connection broke, or none could be made: not that a statement was wrong, or waited too long for others."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    # The server says 57P01 to 57P03 when it shuts down or starts up; a broken connection has no state.
    return error.connection_invalidated or (
        isinstance(error, OperationalError) and (state is None or state[:3] == "57P")
    )


def open_database(url: str, *, create: bool = True) -> Database:
    """Connect to the database of a catalog. A SQLite file and its folder are made if `create` says so."""
    address = parse_url(url)
    if address.get_backend_name() == "sqlite":
        engine = _sqlite_engine(address, create=create)
    else:
        engine = _postgresql_engine(address)
    _engines.add(engine)
    database = Database(engine, hide_password(address))
    try:
        if engine.dialect.name == "sqlite":
            _use_write_ahead_log(engine)
        else:
            engine.connect().close()
    except (DBAPIError, sqlite3.Error) as error:
        engine.dispose()
        reason = first_line(error)
        if address.password:
            reason = reason.replace(str(address.password), "***")
        raise CatalogError(f"Cannot reach the catalog at {database.url}: {reason}.") from None
    return database


def parse_url(url: str) -> URL:
    """A URL with the driver that this package uses."""
    try:
        if "\0" in url:
            raise ValueError
        address = make_url(url)
        backend = address.get_backend_name()
    except (ArgumentError, ValueError):
        raise CatalogError(
            "The catalog's URL cannot be read; write it like sqlite:////data/catalog.db "
            "or postgresql://user:password@host/database."
        ) from None
    if backend in ("postgres", "postgresql"):
        return address.set(drivername="postgresql+psycopg")
    if backend == "sqlite":
        if address.database in (None, "", ":memory:"):
            raise CatalogError("A catalog in SQLite needs a file; write its URL like sqlite:////data/catalog.db.")
        return address
    raise CatalogError(f"The catalog can be in SQLite or PostgreSQL, not in {backend}.")


def hide_password(address: URL) -> str:
    # There is sslpassword too.
    secret = [name for name in address.query if "password" in name.lower()]
    address = address.update_query_dict(dict.fromkeys(secret, "..."))
    return address.render_as_string(hide_password=True).replace("=...", "=***")


def first_line(error: BaseException) -> str:
    """The first line of what the database said, without the full stop and SQLAlchemy's own remarks."""
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines()
    return lines[0].rstrip(". ") if lines else type(cause).__name__


def _postgresql_engine(address: URL) -> Engine:
    options: dict[str, Any] = {} if "connect_timeout" in address.query else {"connect_timeout": CONNECT_SECONDS}
    try:
        # READ COMMITTED, whatever the server's default: a writer that waited for the lock must see what the one
        # before it wrote. No limit on connections: a thread that publishes while it holds a snapshot needs two.
        return create_engine(
            address, connect_args=options, pool_pre_ping=True, max_overflow=-1, isolation_level="READ COMMITTED"
        )
    except ModuleNotFoundError:
        raise CatalogError(
            "A catalog in PostgreSQL needs psycopg; install it with: pip install 'airflow-provider-viewdf[postgres]'."
        ) from None


def _sqlite_engine(address: URL, *, create: bool) -> Engine:
    file = Path(str(address.database))
    if not str(file).startswith("file:"):
        if create:
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CatalogError(
                    f"Cannot make the folder {file.parent} for the catalog: {error.strerror or error}."
                ) from None
        elif not file.exists():
            raise missing_catalog(hide_password(address))
    engine = create_engine(address, connect_args={"timeout": BUSY_SECONDS}, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # Python's sqlite3 would begin transactions when it sees fit; `begin` below does it instead.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes its lock at once: upgrading a read lock later fails, whatever the timeout.
        writes = connection.get_execution_options().get("viewdf_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def missing_catalog(url: str) -> CatalogError:
    return CatalogError(f"There is no catalog at {url}; create it with: viewdf migrate")


def _use_write_ahead_log(engine: Engine) -> None:
    """Let readers and a writer work side by side. The file remembers it, so this writes only once."""
    deadline = time.monotonic() + BUSY_SECONDS
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        while driver.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                driver.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                # SQLite does not wait for others here, whatever its timeout.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
