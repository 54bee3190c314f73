"""Indexes for what is rare among many parts and batches: replaced and retired versions, late rows, parts declared empty."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_partial_index("ix_part_versions_retired", "part_versions", ["table_key", "part_index"], _IS_RETIRED)
    _create_partial_index("ix_batches_declared_empty", "batches", ["table_key"], "declared_empty_because <> ''")
    _create_partial_index("ix_batches_late", "batches", ["table_key"], _HAS_LATE_ROWS)
    # With the current versions in it, SQLite chose it to find them: nearly all rows.
    op.drop_index("ix_part_versions_replaced_at", "part_versions")
    _create_partial_index("ix_part_versions_replaced_at", "part_versions", ["replaced_at"], "replaced_at IS NOT NULL")
    op.create_index("ix_batch_covers_table_key_high", "batch_covers", ["table_key", "high"])


def _create_partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(condition), postgresql_where=sa.text(condition))


_IS_RETIRED = "location = '' AND rows > 0 AND replaced_at IS NULL"
_HAS_LATE_ROWS = "late_taken + late_quarantined + late_ignored > 0"
