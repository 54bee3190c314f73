"""The catalog: the memory of which parts there are, what they were made from, and which are stale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Literal

from sqlalchemy import Connection, bindparam, delete, select, update

from airflow_provider_viewdf.catalog import keeping, leases
from airflow_provider_viewdf.catalog.batches import check_batch, write_batch
from airflow_provider_viewdf.catalog.database import Database, missing_catalog, open_database
from airflow_provider_viewdf.catalog.defining import DefinitionChange, save_changes
from airflow_provider_viewdf.catalog.publishing import Publishing
from airflow_provider_viewdf.catalog.ranges import bounds
from airflow_provider_viewdf.catalog.reader import CatalogReader, ConnectionReader, read_numbers
from airflow_provider_viewdf.catalog.revisions import (
    NEWEST,
    check_not_newer,
    check_revision,
    lock_upgrades,
    read_revision,
    upgrade_tables,
)
from airflow_provider_viewdf.catalog.staleness import Staleness
from airflow_provider_viewdf.catalog.tables import catalog_state, definitions, part_versions
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import ConflictError, LostFilesError, UnknownTableError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import PartRange, PartSet, as_time
from airflow_provider_viewdf.versions import Batch, Move, PartVersion, Publication, Published, StaleRange, Writer


def open_catalog(url: str, *, create: bool = True) -> Catalog:
    """Open the catalog of a database. In a database that holds none yet, one is made, if `create` says so."""
    database = open_database(url, create=create)
    try:
        with database.reading() as connection:
            revision = read_revision(connection)
        if revision is None and not create:
            raise missing_catalog(database.url)
        if revision is None:
            revision = _upgrade(database)[1]
        check_revision(revision, database.url)
    except BaseException:
        database.engine.dispose()
        raise
    return Catalog(database)


def upgrade_catalog(url: str) -> tuple[str | None, str]:
    """Bring a catalog to the newest revision, creating it if need be: the revisions before and after."""
    database = open_database(url)
    try:
        return _upgrade(database)
    finally:
        database.engine.dispose()


def _upgrade(database: Database) -> tuple[str | None, str]:
    with database.writing() as connection:
        lock_upgrades(connection)
        reach("migrate: begun")
        before = read_revision(connection)
        check_not_newer(before, database.url)
        if before != NEWEST:
            upgrade_tables(connection, database.url)
        reach("migrate: tables made")
    reach("migrate: committed")
    return before, NEWEST


class Catalog:
    """The writing side of the catalog, and the door to its reading side.

    Safe to use from many threads and processes. `url` shows no password.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.url = database.url

    def snapshot(self) -> AbstractContextManager[CatalogReader]:
        """A reader whose answers all come from one state, whatever others write meanwhile."""
        return self._snapshot()

    @contextmanager
    def _snapshot(self) -> Iterator[CatalogReader]:
        with self._database.reading() as connection:
            yield ConnectionReader(connection)

    def save_definitions(self, changes: Sequence[DefinitionChange], *, generation: int, produced_by: str) -> int:
        """Save definitions, all or none: the new generation."""
        with self._changing(generation) as connection:
            if not changes:
                return generation
            save_changes(connection, changes, produced_by, datetime.now(UTC))
            return _next_generation(connection, generation)

    def set_start(self, view: str, start_index: int | None, *, generation: int) -> int:
        """Set the part at which a view begins: the new generation."""
        with self._changing(generation) as connection:
            statement = update(definitions).where(definitions.c.table_key == fold(view))
            if connection.execute(statement.values(start_index=start_index)).rowcount == 0:
                raise UnknownTableError(f"Nothing is defined with the name {view}.")
            return _next_generation(connection, generation)

    def publish(
        self,
        publications: Sequence[Publication],
        *,
        generation: int,
        produced_by: str,
        batch: Batch | None = None,
        batch_before: Batch | Literal["anything"] | None = "anything",
        writer: str | None = None,
        at: datetime | None = None,
    ) -> list[Published]:
        """Make part versions current, in their order, all or none; and record the batch that brought them.

        Where the content is what it was, the version that is there stays, and the offered location is not
        recorded: it is the caller's to remove. `batch_before` is what was recorded of the batch when the publications were
        made, None if nothing; `writer` is the token of who wrote the files. If either is no longer so, nothing is written.
        """
        with self._changing(generation) as connection:
            _check_writer(connection, writer)
            names = ConnectionReader(connection).names
            for table in {item.table for item in publications} | ({batch.table} if batch else set()):
                if fold(table) not in names:
                    raise UnknownTableError(f"Nothing is defined with the name {table}.")
            publishing = Publishing(
                connection, publications, produced_by=produced_by, at=datetime.now(UTC) if at is None else as_time(at)
            )
            published = [publishing.apply(publication) for publication in publications]
            publishing.write()
            if batch is not None:
                if batch_before != "anything":
                    check_batch(connection, batch, batch_before, names[fold(batch.table)])
                write_batch(connection, batch)
            reach("publish: in the transaction")
        reach("publish: committed")
        return published

    def mark_stale(self, ranges: Sequence[StaleRange], *, generation: int) -> None:
        """Record parts as due, whether they exist or not."""
        with self._changing(generation) as connection:
            boxes: dict[str, list[PartRange]] = {}
            for item in ranges:
                boxes.setdefault(fold(item.table), []).append(item.parts)
            staleness = Staleness(connection, {key: box for key, found in boxes.items() if (box := bounds(found))})
            for item in ranges:
                staleness.add(fold(item.table), [item.parts], item.reason)
            staleness.write()

    def retire_versions(self, versions: Sequence[PartVersion]) -> int:
        """Let current versions have no files any more, and stay what they are: how many do now.

        One that was replaced or moved meanwhile keeps them.
        """
        if not versions:
            return 0
        with self._database.writing() as connection:
            _lock(connection)
            return keeping.relocate(connection, [Move(version, "") for version in versions], datetime.now(UTC))

    def forget_versions(self, versions: Sequence[PartVersion]) -> None:
        """Forget replaced versions, whose files are gone."""
        with self._database.writing() as connection:
            _lock(connection)
            numbers: dict[str, dict[int, list[PartVersion]]] = {}
            for version in versions:
                numbers.setdefault(fold(version.table), {}).setdefault(version.index, []).append(version)
            for key, by_index in numbers.items():
                for index, current, _ in read_numbers(connection, key, PartSet.of_indexes(by_index)):
                    for version in by_index[index]:
                        if version.version == current:
                            raise ConflictError(
                                f"Version {current} of {version.table}[{index}] is current and cannot be forgotten. "
                                "Nothing was forgotten."
                            )
            if versions:
                connection.execute(
                    delete(part_versions).where(
                        part_versions.c.table_key == bindparam("of_table"),
                        part_versions.c.part_index == bindparam("of_index"),
                        part_versions.c.version == bindparam("of_version"),
                    ),
                    [{"of_table": fold(v.table), "of_index": v.index, "of_version": v.version} for v in versions],
                )

    def relocate(self, moves: Sequence[Move], *, generation: int, writer: str | None = None) -> int:
        """Let the rows of current versions lie elsewhere: how many do now. `writer` is the token of who wrote them there."""
        with self._changing(generation) as connection:
            _check_writer(connection, writer)
            return keeping.relocate(connection, moves, datetime.now(UTC))

    def archive(self, table: str, before: int, *, generation: int, produced_by: str) -> None:
        """Keep the rows of parts before this one no longer."""
        with self._changing(generation) as connection:
            keeping.archive(connection, table, before, produced_by, datetime.now(UTC))

    def forget_retired(self, locations: Sequence[str]) -> None:
        """Forget directories that are gone."""
        with self._database.writing() as connection:
            _lock(connection)
            keeping.forget_retired(connection, locations)

    def acquire_lease(
        self, table: str, index: int, owner: str, seconds: float, *, instead_of: str | None = None
    ) -> str | None:
        """Lease a part: a token, or None if someone else holds a lease that has not expired, other than `instead_of`.

        An owner who holds it already gets a new token, and the old one ends.
        """
        with self._database.writing() as connection:
            return leases.acquire(connection, table, index, owner, seconds, instead_of)

    def renew_lease(self, token: str, seconds: float) -> bool:
        """Prolong a lease from now on. False if it is gone: released, or taken over after it expired."""
        with self._database.writing() as connection:
            return leases.renew(connection, token, seconds)

    def release_lease(self, token: str) -> None:
        with self._database.writing() as connection:
            leases.release(connection, token)

    def acquire_leases(self, table: str, indexes: Sequence[int], owner: str, seconds: float) -> dict[int, str]:
        """Lease as many of these parts as nobody else holds: tokens by subscript."""
        with self._leasing_many() as connection:
            found = {index: leases.acquire(connection, table, index, owner, seconds) for index in indexes}
            return {index: token for index, token in found.items() if token is not None}

    def renew_leases(self, tokens: Sequence[str], seconds: float) -> None:
        with self._leasing_many() as connection:
            for token in tokens:
                leases.renew(connection, token, seconds)

    def release_leases(self, tokens: Sequence[str]) -> None:
        with self._leasing_many() as connection:
            for token in tokens:
                leases.release(connection, token)

    def lease_holder(self, table: str, index: int) -> str | None:
        return self.lease_holders(table, [index]).get(index)

    def lease_holders(self, table: str, indexes: Sequence[int]) -> dict[int, str]:
        """Who holds which of these parts, by subscript."""
        if not indexes:
            return {}
        with self._database.reading() as connection:
            return leases.holders(connection, table, indexes)

    def acquire_writer(self, name: str, owner: str, seconds: float) -> str:
        """A lease for someone who is going to write files: its token. While it lasts, gc leaves the files alone."""
        with self._database.writing() as connection:
            token = leases.acquire(connection, f"{leases.WRITER}{name}", 0, owner, seconds)
        assert token is not None, name
        return token

    def writers(self) -> list[Writer]:
        with self._database.reading() as connection:
            return leases.writers(connection)

    @contextmanager
    def _leasing_many(self) -> Iterator[Connection]:
        """A transaction over several leases: one at a time, as two that lock the same rows in other orders wait for ever."""
        with self._database.writing() as connection:
            _lock(connection)
            yield connection

    def close(self) -> None:
        self._database.engine.dispose()

    @contextmanager
    def _changing(self, generation: int) -> Iterator[Connection]:
        """A transaction that is alone in writing, based on a generation that is still the newest."""
        with self._database.writing() as connection:
            present = _lock(connection)
            if present != generation:
                raise ConflictError(
                    f"Definitions changed meanwhile: the catalog is at generation {present}, this change is based on "
                    f"generation {generation}. Nothing was written; try again."
                )
            yield connection


def _lock(connection: Connection) -> int:
    """Wait for the other writers and keep them waiting until the end of the transaction: the generation."""
    # SQLite has locked everything with BEGIN IMMEDIATE, and SQLAlchemy leaves FOR UPDATE out there.
    generation: int = connection.execute(select(catalog_state.c.generation).with_for_update()).scalar_one()
    return generation


def _check_writer(connection: Connection, token: str | None) -> None:
    if token is not None and not leases.is_there(connection, token):
        raise LostFilesError(
            "This process did not renew its lease for so long that gc may have removed the files it wrote. "
            "Nothing was published; do it again."
        )


def _next_generation(connection: Connection, generation: int) -> int:
    connection.execute(update(catalog_state).values(generation=generation + 1))
    return generation + 1
