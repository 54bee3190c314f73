"""Alembic's entry: run the migrations in the transaction that the caller has begun."""

from alembic import context

from airflow_provider_viewdf.catalog.revisions import VERSION_TABLE
from airflow_provider_viewdf.catalog.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
