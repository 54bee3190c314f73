"""Reading the catalog. Nothing in here writes, so a reader can be handed to anyone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

from sqlalchemy import Connection, Select, and_, func, or_, select

from airflow_provider_viewdf.catalog.batches import count_late_rows, find_newest_part, read_batches
from airflow_provider_viewdf.catalog.extents import read_extents
from airflow_provider_viewdf.catalog.inputs import digest_inputs, parts_of_inputs
from airflow_provider_viewdf.catalog.ranges import conditions
from airflow_provider_viewdf.catalog.rows import definition_record, part_version
from airflow_provider_viewdf.catalog.tables import (
    IS_DECLARED_EMPTY,
    IS_RETIRED,
    archives,
    batch_parts,
    batches,
    catalog_state,
    definitions,
    part_versions,
    parts_table,
    rejected_rows,
    retired_locations,
    row_totals,
    stale_ranges,
)
from airflow_provider_viewdf.definitions import Rule, fold
from airflow_provider_viewdf.parts import PartRange, PartSet, as_time
from airflow_provider_viewdf.versions import (
    ARCHIVED,
    Batch,
    ContentDigest,
    DefinitionRecord,
    InputRange,
    PartVersion,
    RejectedRow,
    StaleRange,
    TableSummary,
    directory_of,
)


class CatalogReader(Protocol):
    """One state of the catalog. Tables may be named in any case."""

    @property
    def generation(self) -> int:
        """Grows with every change of definitions. A writer says on which generation its change is based."""

    def definitions(self) -> list[DefinitionRecord]:
        """Every definition, in the order in which they were first saved."""

    def existing_parts(self, table: str) -> PartSet: ...

    def stale_ranges(self, table: str | None = None) -> list[StaleRange]:
        """Every recorded range with its reason; ranges of different reasons may overlap."""

    def parts_made_by(self, table: str, rule: Rule, definition_digest: str | None = None) -> PartSet:
        """The parts whose current version was made by a rule, of this definition if one is named."""

    def parts_made_otherwise(
        self, table: str, definition_digest: str, created_before: datetime | None = None
    ) -> PartSet:
        """The parts whose current version was made by another definition than this one; of those created before a time."""

    def retired_parts(self, table: str) -> PartSet:
        """The parts whose current version has rows, but no longer keeps them."""

    def current_versions(self, table: str, parts: PartSet | None = None) -> list[PartVersion]:
        """The current versions, sorted by subscript; of these parts, which may reach to the ends of time."""

    def version_history(self, table: str, index: int) -> list[PartVersion]:
        """Every version of a part that gc has not forgotten, oldest first."""

    def changed_since(self, time: datetime, table: str | None = None) -> list[PartVersion]:
        """The current versions whose content changed at or after a time, oldest change first."""

    def read_inputs(self, ranges: Sequence[InputRange]) -> tuple[list[PartVersion], str]:
        """The current versions in these ranges, each once, and their inputs digest."""

    def batch(self, table: str, batch_id: str) -> Batch | None: ...

    def batches(self, table: str) -> list[Batch]:
        """The batches of a table in the order of loading."""

    def batches_declared_empty(self, table: str) -> list[Batch]:
        """Those of them by which somebody declared parts empty."""

    def batches_of_parts(self, table: str, parts: PartSet) -> dict[int, dict[str, ContentDigest]]:
        """By subscript and batch id: the digest of the rows that the batch brought into the part."""

    def newest_part(self, table: str, except_batch: str) -> int | None:
        """The newest part that batches other than this one cover, or brought rows into."""

    def rejected_rows(self, table: str) -> list[tuple[str, RejectedRow]]:
        """Every rejected row with the id of its batch."""

    def summary(self, table: str) -> TableSummary: ...

    def archived_before(self, table: str) -> int | None:
        """The oldest part whose rows are kept; None if nothing was ever archived."""

    def retired_locations(self, before: datetime) -> list[str]:
        """The directories that no current version lies in any more, since before a time."""

    def locations_in_use(self, since: datetime) -> set[str]:
        """The directories of versions that are current or were so at or after a time."""

    def replaced_versions(self, before: datetime) -> list[PartVersion]:
        """The versions that were replaced, or whose part was dropped, before a time."""

    def known_locations(self) -> set[str]:
        """The directory of every version that the catalog remembers, current or replaced, and those it lay in before."""


_IS_CURRENT = and_(
    parts_table.c.table_key == part_versions.c.table_key,
    parts_table.c.part_index == part_versions.c.part_index,
    parts_table.c.version == part_versions.c.version,
)


class ConnectionReader:
    """A `CatalogReader` over one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Read at once: on both databases the first statement settles which state the transaction sees.
        self._generation: int = connection.execute(select(catalog_state.c.generation)).scalar_one()

    @property
    def generation(self) -> int:
        return self._generation

    @cached_property
    def names(self) -> dict[str, str]:
        """The names as they were written, by folded name."""
        query = select(definitions.c.table_key, definitions.c.name)
        return {row.table_key: row.name for row in self._connection.execute(query)}

    def _name_of(self, table: str) -> str:
        return self.names.get(fold(table), table)

    def definitions(self) -> list[DefinitionRecord]:
        query = select(definitions).order_by(definitions.c.position)
        return [definition_record(row) for row in self._connection.execute(query).mappings()]

    def existing_parts(self, table: str) -> PartSet:
        return read_extents(self._connection, fold(table))

    def stale_ranges(self, table: str | None = None) -> list[StaleRange]:
        query = select(stale_ranges)
        if table is not None:
            query = query.where(stale_ranges.c.table_key == fold(table))
        # Sorted here, since the order of texts is a matter of the database's settings.
        rows = sorted((row.table_key, row.low, row.high, row.reason) for row in self._connection.execute(query))
        return [StaleRange(self._name_of(key), PartRange(low, high), reason) for key, low, high, reason in rows]

    def parts_made_by(self, table: str, rule: Rule, definition_digest: str | None = None) -> PartSet:
        query = (
            select(part_versions.c.part_index)
            .join(parts_table, _IS_CURRENT)
            .where(part_versions.c.table_key == fold(table), part_versions.c.rule == rule)
        )
        if definition_digest is not None:
            query = query.where(part_versions.c.definition_digest == definition_digest)
        return PartSet.of_indexes(self._connection.scalars(query))

    def parts_made_otherwise(
        self, table: str, definition_digest: str, created_before: datetime | None = None
    ) -> PartSet:
        query = select(part_versions.c.part_index).where(
            part_versions.c.table_key == fold(table),
            part_versions.c.definition_digest != definition_digest,
            part_versions.c.replaced_at.is_(None),
        )
        if created_before is not None:
            query = query.where(part_versions.c.created_at < as_time(created_before))
        return PartSet.of_indexes(self._connection.scalars(query))

    def retired_parts(self, table: str) -> PartSet:
        query = (
            select(part_versions.c.part_index)
            .where(part_versions.c.table_key == fold(table), IS_RETIRED)
            .order_by(part_versions.c.part_index)
        )
        return PartSet.of_indexes(self._connection.scalars(query))

    def current_versions(self, table: str, parts: PartSet | None = None) -> list[PartVersion]:
        query = select(part_versions).join(parts_table, _IS_CURRENT).order_by(parts_table.c.part_index)
        wanted = PartSet.everything() if parts is None else parts
        return [
            version
            for condition in conditions(parts_table, fold(table), wanted)
            for version in self._versions(query.where(condition))
        ]

    def version_history(self, table: str, index: int) -> list[PartVersion]:
        return self._versions(
            select(part_versions)
            .where(part_versions.c.table_key == fold(table), part_versions.c.part_index == index)
            .order_by(part_versions.c.version)
        )

    def changed_since(self, time: datetime, table: str | None = None) -> list[PartVersion]:
        # Naming every table makes the index usable, which begins with the table.
        keys = list(self.names) if table is None else [fold(table)]
        found = self._versions(
            select(part_versions).where(
                part_versions.c.table_key.in_(keys),
                part_versions.c.replaced_at.is_(None),
                part_versions.c.created_at >= as_time(time),
            )
        )
        return sorted(found, key=lambda version: (version.created_at, fold(version.table), version.index))

    def read_inputs(self, ranges: Sequence[InputRange]) -> tuple[list[PartVersion], str]:
        versions = [
            version for key, parts in parts_of_inputs(ranges).items() for version in self.current_versions(key, parts)
        ]
        return versions, digest_inputs((fold(item.table), item.index, item.version) for item in versions)

    def batch(self, table: str, batch_id: str) -> Batch | None:
        found = read_batches(self._connection, fold(table), self._name_of(table), batch_id)
        return found[0] if found else None

    def batches(self, table: str) -> list[Batch]:
        return read_batches(self._connection, fold(table), self._name_of(table))

    def batches_declared_empty(self, table: str) -> list[Batch]:
        query = select(batches.c.batch_id).where(batches.c.table_key == fold(table), IS_DECLARED_EMPTY)
        ids = list(self._connection.scalars(query))
        found = [batch for batch_id in ids if (batch := self.batch(table, batch_id)) is not None]
        return sorted(found, key=lambda batch: (batch.loaded_at, batch.batch_id))

    def batches_of_parts(self, table: str, parts: PartSet) -> dict[int, dict[str, ContentDigest]]:
        found: dict[int, dict[str, ContentDigest]] = {}
        query = select(batch_parts.c.part_index, batch_parts.c.batch_id, batch_parts.c.digest).order_by(
            batch_parts.c.part_index
        )
        for condition in conditions(batch_parts, fold(table), parts):
            for index, batch_id, digest in self._connection.execute(query.where(condition)):
                found.setdefault(index, {})[batch_id] = ContentDigest.parse(digest)
        return found

    def newest_part(self, table: str, except_batch: str) -> int | None:
        return find_newest_part(self._connection, fold(table), except_batch)

    def rejected_rows(self, table: str) -> list[tuple[str, RejectedRow]]:
        query = select(rejected_rows).where(rejected_rows.c.table_key == fold(table))
        rows = sorted(self._connection.execute(query), key=lambda row: (row.batch_id, row.position))
        return [(row.batch_id, RejectedRow(row.source, row.line, row.reason, row.row_text)) for row in rows]

    def summary(self, table: str) -> TableSummary:
        rows = self._connection.scalar(select(row_totals.c.rows).where(row_totals.c.table_key == fold(table)))
        current = (part_versions.c.table_key == fold(table), part_versions.c.replaced_at.is_(None))
        last_updated = self._connection.scalar(select(func.max(part_versions.c.created_at)).where(*current))
        rejected = self._connection.scalar(
            select(func.count()).select_from(rejected_rows).where(rejected_rows.c.table_key == fold(table))
        )
        return TableSummary(
            table=self._name_of(table),
            parts=self.existing_parts(table),
            rows=rows or 0,
            stale=PartSet.of(item.parts for item in self.stale_ranges(table)),
            last_updated=last_updated,
            rejected_rows=rejected or 0,
            late=count_late_rows(self._connection, fold(table)),
        )

    def replaced_versions(self, before: datetime) -> list[PartVersion]:
        found = self._versions(select(part_versions).where(part_versions.c.replaced_at < as_time(before)))
        return sorted(found, key=lambda version: (fold(version.table), version.index, version.version))

    def archived_before(self, table: str) -> int | None:
        return read_archives(self._connection).get(fold(table))

    def retired_locations(self, before: datetime) -> list[str]:
        query = select(retired_locations.c.location).where(retired_locations.c.retired_at < as_time(before))
        return sorted(self._connection.scalars(query))

    def locations_in_use(self, since: datetime) -> set[str]:
        time = as_time(since)
        used = select(part_versions.c.location).where(
            or_(part_versions.c.replaced_at.is_(None), part_versions.c.replaced_at >= time)
        )
        retired = select(retired_locations.c.location).where(retired_locations.c.retired_at >= time)
        return {
            directory_of(location)
            for query in (used, retired)
            for location in self._connection.scalars(query)
            if location not in ("", ARCHIVED)
        }

    def known_locations(self) -> set[str]:
        queries = (select(part_versions.c.location).distinct(), select(retired_locations.c.location))
        found = {directory_of(location) for query in queries for location in self._connection.scalars(query)}
        return found - {"", ARCHIVED}

    def _versions(self, query: Select[Any]) -> list[PartVersion]:
        return [part_version(row, self.names) for row in self._connection.execute(query).mappings()]


def read_archives(connection: Connection) -> dict[str, int]:
    """By folded name: the oldest part whose rows are kept."""
    return {row.table_key: row.before for row in connection.execute(select(archives))}


def read_numbers(connection: Connection, key: str, parts: PartSet) -> Iterator[tuple[int, int | None, int]]:
    """Subscript, current version number (None: dropped) and last version number, in order."""
    query = select(parts_table.c.part_index, parts_table.c.version, parts_table.c.last_version).order_by(
        parts_table.c.part_index
    )
    for condition in conditions(parts_table, key, parts):
        yield from connection.execute(query.where(condition))
