"""Which revision the tables of a catalog are of, and how they get to the newest."""

from __future__ import annotations

import threading

from sqlalchemy import Connection, column, inspect, select, table, text

from airflow_provider_viewdf.errors import CatalogVersionError

# The newest file in migrations/versions. Written here so that opening a catalog need not import Alembic.
NEWEST = "0003"

VERSION_TABLE = "catalog_version"

# Any number, as long as every process takes the same.
_UPGRADE_LOCK = 7_307_199_315

# Alembic keeps the migration that runs in module-level variables.
_alembic = threading.Lock()


def read_revision(connection: Connection) -> str | None:
    """The revision of the catalog, or None if the database holds no catalog yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(select(table(VERSION_TABLE, column("version_num")).c.version_num))


def lock_upgrades(connection: Connection) -> None:
    """Wait until no other process creates or upgrades the catalog. On SQLite a writer is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})


def check_revision(revision: str, url: str) -> None:
    """Refuse a catalog whose tables this package does not know."""
    if revision < NEWEST:
        raise CatalogVersionError(
            f"The catalog at {url} is of version {revision}, this package needs {NEWEST}; "
            "upgrade it with: viewdf migrate"
        )
    check_not_newer(revision, url)


def check_not_newer(revision: str | None, url: str) -> None:
    if revision is not None and revision > NEWEST:
        raise CatalogVersionError(
            f"The catalog at {url} is of version {revision}, this package knows only {NEWEST}; "
            "upgrade the package with: pip install --upgrade airflow-provider-viewdf"
        )


def upgrade_tables(connection: Connection, url: str) -> None:
    """Bring the tables to the newest revision, within the transaction of the connection."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "airflow_provider_viewdf.catalog:migrations")
    config.attributes["connection"] = connection
    with _alembic:
        try:
            command.upgrade(config, "head")
        except CommandError:
            raise CatalogVersionError(
                f"The catalog at {url} is of version {read_revision(connection)}, which this package has no upgrade "
                "from; use the package that made it."
            ) from None
