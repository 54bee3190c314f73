"""The tables of the catalog.

Names of tables and views are compared without regard to case, so every `table_key` holds a folded name;
the name as it was written stands in `definitions`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

from airflow_provider_viewdf.parts import as_time


class UtcTime(TypeDecorator[datetime]):
    """An aware time in UTC. SQLite keeps no zone, and PostgreSQL answers in the zone of the session."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        utc = as_time(value)
        # A plain datetime, also from a subclass such as pendulum's: drivers choose by the exact type.
        return datetime(*utc.timetuple()[:6], utc.microsecond, tzinfo=UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        time: datetime = value
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class FreeText(TypeDecorator[str]):
    """Text from anywhere, such as a rejected row: what no database can store is replaced by a question mark."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return value.replace("\x00", "?").encode("utf-8", "replace").decode("utf-8")


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

catalog_state = Table(
    "catalog_state",
    metadata,
    Column("id", Integer, nullable=False, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
    PrimaryKeyConstraint("id"),
    CheckConstraint("id = 1", name="one_row"),
)

definitions = Table(
    "definitions",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("column_list", Text, nullable=False),
    Column("length_seconds", BigInteger, nullable=False),
    Column("start_index", BigInteger),
    Column("helper_of", Text, nullable=False),
    Column("translation", Text, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("produced_by", FreeText, nullable=False),
    PrimaryKeyConstraint("table_key"),
)

part_versions = Table(
    "part_versions",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("part_index", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("location", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("definition_digest", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("inputs_digest", Text, nullable=False),
    Column("rule", Text),
    Column("created_at", UtcTime, nullable=False),
    Column("produced_by", FreeText, nullable=False),
    Column("replaced_at", UtcTime),
    Column("files", Text, nullable=False),
    PrimaryKeyConstraint("table_key", "part_index", "version"),
)

Index("ix_part_versions_rule", part_versions.c.table_key, part_versions.c.rule, part_versions.c.part_index)
Index(
    "ix_part_versions_replaced_at",
    part_versions.c.replaced_at,
    sqlite_where=text("replaced_at IS NOT NULL"),
    postgresql_where=text("replaced_at IS NOT NULL"),
)
Index(
    "ix_part_versions_current",
    part_versions.c.table_key,
    part_versions.c.created_at,
    part_versions.c.rows,
    sqlite_where=text("replaced_at IS NULL"),
    postgresql_where=text("replaced_at IS NULL"),
)

# Conditions as texts: a database uses a partial index only where it finds the very same condition, without parameters.
IS_RETIRED = text("location = '' AND rows > 0 AND replaced_at IS NULL")
IS_DECLARED_EMPTY = text("declared_empty_because <> ''")
HAS_LATE_ROWS = text("late_taken + late_quarantined + late_ignored > 0")

Index(
    "ix_part_versions_retired",
    part_versions.c.table_key,
    part_versions.c.part_index,
    sqlite_where=IS_RETIRED,
    postgresql_where=IS_RETIRED,
)

# `version` is the current one, or NULL once the part was dropped. `last_version` outlives the versions
# that gc forgets: a number that came back would make two different inputs digests look alike.
parts_table = Table(
    "parts",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("part_index", BigInteger, nullable=False),
    Column("version", BigInteger),
    Column("last_version", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_key", "part_index"),
    ForeignKeyConstraint(
        ["table_key", "part_index", "version"],
        ["part_versions.table_key", "part_versions.part_index", "part_versions.version"],
    ),
)

# The existing parts of each table as ranges that neither overlap nor touch.
extents = Table(
    "extents",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("low", BigInteger, nullable=False),
    Column("high", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_key", "low"),
    CheckConstraint("low <= high", name="forwards"),
)

# How many rows the current versions of each table have that are not archived: to add them up takes a look at every part.
row_totals = Table(
    "row_totals",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_key"),
)

# A number as the key, since a reason may be longer than what PostgreSQL can index.
stale_ranges = Table(
    "stale_ranges",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), nullable=False, autoincrement=True),
    Column("table_key", Text, nullable=False),
    Column("low", BigInteger, nullable=False),
    Column("high", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("id"),
    CheckConstraint("low <= high", name="forwards"),
)

Index("ix_stale_ranges_table_key_low", stale_ranges.c.table_key, stale_ranges.c.low)

# The parts before `before` are archived: they still count as existing, but their rows are gone, or will be.
archives = Table(
    "archives",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("before", BigInteger, nullable=False),
    Column("archived_at", UtcTime, nullable=False),
    Column("produced_by", FreeText, nullable=False),
    PrimaryKeyConstraint("table_key"),
)

# Directories that versions lay in before they were rolled up or archived: somebody may still be reading there.
retired_locations = Table(
    "retired_locations",
    metadata,
    Column("location", Text, nullable=False),
    Column("retired_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("location"),
)

batches = Table(
    "batches",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("batch_id", FreeText, nullable=False),
    Column("source", FreeText, nullable=False),
    Column("loaded_at", UtcTime, nullable=False),
    Column("produced_by", FreeText, nullable=False),
    Column("declared_empty_because", FreeText, nullable=False),
    Column("late_taken", BigInteger, nullable=False),
    Column("late_quarantined", BigInteger, nullable=False),
    Column("late_ignored", BigInteger, nullable=False),
    Column("measured_against", BigInteger),
    PrimaryKeyConstraint("table_key", "batch_id"),
)


Index(
    "ix_batches_declared_empty",
    batches.c.table_key,
    sqlite_where=IS_DECLARED_EMPTY,
    postgresql_where=IS_DECLARED_EMPTY,
)
Index("ix_batches_late", batches.c.table_key, sqlite_where=HAS_LATE_ROWS, postgresql_where=HAS_LATE_ROWS)


def _of_a_batch() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["table_key", "batch_id"], ["batches.table_key", "batches.batch_id"], ondelete="CASCADE"
    )


batch_covers = Table(
    "batch_covers",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("batch_id", FreeText, nullable=False),
    Column("low", BigInteger, nullable=False),
    Column("high", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_key", "batch_id", "low"),
    _of_a_batch(),
)

Index("ix_batch_covers_table_key_high", batch_covers.c.table_key, batch_covers.c.high)

batch_parts = Table(
    "batch_parts",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("part_index", BigInteger, nullable=False),
    Column("batch_id", FreeText, nullable=False),
    Column("digest", Text, nullable=False),
    PrimaryKeyConstraint("table_key", "part_index", "batch_id"),
    _of_a_batch(),
)

Index("ix_batch_parts_batch_id", batch_parts.c.table_key, batch_parts.c.batch_id)

rejected_rows = Table(
    "rejected_rows",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("batch_id", FreeText, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("source", FreeText, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("row_text", FreeText, nullable=False),
    PrimaryKeyConstraint("table_key", "batch_id", "position"),
    _of_a_batch(),
)

leases = Table(
    "leases",
    metadata,
    Column("table_key", Text, nullable=False),
    Column("part_index", BigInteger, nullable=False),
    Column("token", Text, nullable=False),
    Column("owner", FreeText, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    PrimaryKeyConstraint("table_key", "part_index"),
    UniqueConstraint("token"),
)
