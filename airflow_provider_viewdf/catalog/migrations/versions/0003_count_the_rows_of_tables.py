"""How many rows each table has, kept up to date instead of added up over every part each time somebody asks."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "row_totals",
        sa.Column("table_key", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("table_key", name="pk_row_totals"),
    )
    op.execute(
        """
        INSERT INTO row_totals (table_key, "rows")
        SELECT part_versions.table_key, SUM(part_versions."rows")
        FROM part_versions LEFT JOIN archives ON archives.table_key = part_versions.table_key
        WHERE part_versions.replaced_at IS NULL
          AND (archives.before IS NULL OR part_versions.part_index >= archives.before)
        GROUP BY part_versions.table_key
        """
    )
