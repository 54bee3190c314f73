"""The first catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    time = sa.DateTime(timezone=True)

    state = op.create_table(
        "catalog_state",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_catalog_state"),
        sa.CheckConstraint("id = 1", name=op.f("ck_catalog_state_one_row")),
    )
    op.bulk_insert(state, [{"id": 1, "generation": 0}])

    op.create_table(
        "definitions",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("column_list", sa.Text, nullable=False),
        sa.Column("length_seconds", sa.BigInteger, nullable=False),
        sa.Column("start_index", sa.BigInteger),
        sa.Column("helper_of", sa.Text, nullable=False),
        sa.Column("translation", sa.Text, nullable=False),
        sa.Column("updated_at", time, nullable=False),
        sa.Column("produced_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("table_key", name="pk_definitions"),
    )

    op.create_table(
        "part_versions",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("part_index", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("definition_digest", sa.Text, nullable=False),
        sa.Column("inputs", sa.Text, nullable=False),
        sa.Column("inputs_digest", sa.Text, nullable=False),
        sa.Column("rule", sa.Text),
        sa.Column("created_at", time, nullable=False),
        sa.Column("produced_by", sa.Text, nullable=False),
        sa.Column("replaced_at", time),
        sa.Column("files", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "part_index", "version", name="pk_part_versions"),
    )
    op.create_index("ix_part_versions_rule", "part_versions", ["table_key", "rule", "part_index"])
    op.create_index("ix_part_versions_replaced_at", "part_versions", ["replaced_at"])
    op.create_index(
        "ix_part_versions_current",
        "part_versions",
        ["table_key", "created_at", "rows"],
        sqlite_where=sa.text("replaced_at IS NULL"),
        postgresql_where=sa.text("replaced_at IS NULL"),
    )

    op.create_table(
        "parts",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("part_index", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("last_version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "part_index", name="pk_parts"),
        sa.ForeignKeyConstraint(
            ["table_key", "part_index", "version"],
            ["part_versions.table_key", "part_versions.part_index", "part_versions.version"],
            name="fk_parts_part_versions",
        ),
    )

    op.create_table(
        "extents",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("low", sa.BigInteger, nullable=False),
        sa.Column("high", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "low", name="pk_extents"),
        sa.CheckConstraint("low <= high", name=op.f("ck_extents_forwards")),
    )

    op.create_table(
        "stale_ranges",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=True),
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("low", sa.BigInteger, nullable=False),
        sa.Column("high", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stale_ranges"),
        sa.CheckConstraint("low <= high", name=op.f("ck_stale_ranges_forwards")),
    )
    op.create_index("ix_stale_ranges_table_key_low", "stale_ranges", ["table_key", "low"])

    op.create_table(
        "archives",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("before", sa.BigInteger, nullable=False),
        sa.Column("archived_at", time, nullable=False),
        sa.Column("produced_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("table_key", name="pk_archives"),
    )

    op.create_table(
        "retired_locations",
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("retired_at", time, nullable=False),
        sa.PrimaryKeyConstraint("location", name="pk_retired_locations"),
    )

    op.create_table(
        "batches",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("loaded_at", time, nullable=False),
        sa.Column("produced_by", sa.Text, nullable=False),
        sa.Column("declared_empty_because", sa.Text, nullable=False),
        sa.Column("late_taken", sa.BigInteger, nullable=False),
        sa.Column("late_quarantined", sa.BigInteger, nullable=False),
        sa.Column("late_ignored", sa.BigInteger, nullable=False),
        sa.Column("measured_against", sa.BigInteger),
        sa.PrimaryKeyConstraint("table_key", "batch_id", name="pk_batches"),
    )

    op.create_table(
        "batch_covers",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("low", sa.BigInteger, nullable=False),
        sa.Column("high", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "batch_id", "low", name="pk_batch_covers"),
        _of_a_batch("batch_covers"),
    )

    op.create_table(
        "batch_parts",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("part_index", sa.BigInteger, nullable=False),
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "part_index", "batch_id", name="pk_batch_parts"),
        _of_a_batch("batch_parts"),
    )
    op.create_index("ix_batch_parts_batch_id", "batch_parts", ["table_key", "batch_id"])

    op.create_table(
        "rejected_rows",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("line", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("row_text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "batch_id", "position", name="pk_rejected_rows"),
        _of_a_batch("rejected_rows"),
    )

    op.create_table(
        "leases",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("part_index", sa.BigInteger, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("expires_at", time, nullable=False),
        sa.PrimaryKeyConstraint("table_key", "part_index", name="pk_leases"),
        sa.UniqueConstraint("token", name="uq_leases_token"),
    )


def _of_a_batch(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["table_key", "batch_id"],
        ["batches.table_key", "batches.batch_id"],
        name=f"fk_{table}_batches",
        ondelete="CASCADE",
    )
