"""Revisions of the catalog's tables: made, upgraded, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from catalog_samples import define, existing, publication, publish, record
from sqlalchemy import Connection, inspect, text

from airflow_provider_viewdf.catalog import open_catalog, upgrade_catalog
from airflow_provider_viewdf.catalog.database import open_database
from airflow_provider_viewdf.catalog.revisions import NEWEST, VERSION_TABLE
from airflow_provider_viewdf.catalog.tables import metadata
from airflow_provider_viewdf.errors import CatalogError, CatalogVersionError


@contextmanager
def writing(url: str) -> Iterator[Connection]:
    database = open_database(url)
    with database.writing() as connection:
        yield connection
    database.engine.dispose()


def pretend_revision(url: str, revision: str) -> str:
    """Give a catalog a revision: its URL as errors show it."""
    with writing(url) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = :revision"), {"revision": revision})
    database = open_database(url)
    database.engine.dispose()
    return database.url


def is_ours(name: str | None, kind: str, *_: Any) -> bool:
    return not (kind == "table" and name == VERSION_TABLE)


def test_migrations_make_exactly_the_tables_that_the_code_uses(catalog_url: str) -> None:
    upgrade_catalog(catalog_url)
    with writing(catalog_url) as connection:
        context = MigrationContext.configure(connection, opts={"include_name": is_ours, "compare_type": True})
        assert compare_metadata(context, metadata) == []
        checks = {
            (table.name, str(check["name"]))
            for table in metadata.sorted_tables
            for check in inspect(connection).get_check_constraints(table.name)
        }
    assert checks == {
        ("catalog_state", "ck_catalog_state_one_row"),
        ("extents", "ck_extents_forwards"),
        ("stale_ranges", "ck_stale_ranges_forwards"),
    }


def test_newest_revision_is_that_of_the_last_migration() -> None:
    folder = files("airflow_provider_viewdf.catalog") / "migrations" / "versions"
    revisions = [item.name.split("_")[0] for item in folder.iterdir() if item.name[:1].isdigit()]
    assert max(revisions) == NEWEST


def test_migrating_from_nothing_creates_the_catalog(catalog_url: str) -> None:
    assert upgrade_catalog(catalog_url) == (None, NEWEST)
    assert upgrade_catalog(catalog_url) == (NEWEST, NEWEST)
    open_catalog(catalog_url, create=False).close()


def test_migrating_a_newest_catalog_keeps_what_is_in_it(catalog_url: str) -> None:
    catalog = open_catalog(catalog_url)
    define(catalog, record("M"))
    publish(catalog, publication("M", 4))
    upgrade_catalog(catalog_url)
    assert existing(catalog, "M") == "4"
    catalog.close()


def test_migrating_counts_the_rows_that_are_kept(catalog_url: str) -> None:
    catalog = open_catalog(catalog_url)
    define(catalog, record("M"), record("N"))
    publish(catalog, *(publication("M", index) for index in range(5)))
    publish(catalog, publication("M", 4, 2, replaces=1))
    catalog.archive("M", 2, generation=1, produced_by="cli")
    catalog.close()
    with writing(catalog_url) as connection:
        connection.execute(text("DROP TABLE row_totals"))
    pretend_revision(catalog_url, "0002")
    assert upgrade_catalog(catalog_url) == ("0002", NEWEST)
    catalog = open_catalog(catalog_url)
    with catalog.snapshot() as reader:
        assert (reader.summary("M").rows, reader.summary("N").rows) == (3, 0)
    catalog.close()


def test_older_catalog_is_refused_until_it_is_migrated(catalog_url: str) -> None:
    upgrade_catalog(catalog_url)
    shown = pretend_revision(catalog_url, "0000")
    with pytest.raises(CatalogVersionError) as caught:
        open_catalog(catalog_url)
    assert str(caught.value) == (
        f"The catalog at {shown} is of version 0000, this package needs {NEWEST}; upgrade it with: viewdf migrate"
    )


@pytest.mark.parametrize("open_or_upgrade", [open_catalog, upgrade_catalog])
def test_newer_catalog_is_refused(catalog_url: str, open_or_upgrade: Any) -> None:
    upgrade_catalog(catalog_url)
    shown = pretend_revision(catalog_url, "9999")
    with pytest.raises(CatalogVersionError) as caught:
        open_or_upgrade(catalog_url)
    assert str(caught.value) == (
        f"The catalog at {shown} is of version 9999, this package knows only {NEWEST}; "
        "upgrade the package with: pip install --upgrade airflow-provider-viewdf"
    )


def test_unknown_revision_cannot_be_migrated(catalog_url: str) -> None:
    upgrade_catalog(catalog_url)
    shown = pretend_revision(catalog_url, "0000")
    with pytest.raises(CatalogVersionError) as caught:
        upgrade_catalog(catalog_url)
    assert str(caught.value) == (
        f"The catalog at {shown} is of version 0000, which this package has no upgrade from; "
        "use the package that made it."
    )


def test_migration_that_fails_leaves_nothing(catalog_url: str) -> None:
    # The last table of the migration is there already, so that everything before it has to be undone.
    with writing(catalog_url) as connection:
        connection.execute(text("CREATE TABLE leases (id INTEGER)"))
    with pytest.raises(CatalogError, match=r'leases"? already exists'):
        upgrade_catalog(catalog_url)
    with writing(catalog_url) as connection:
        assert inspect(connection).get_table_names() == ["leases"]
