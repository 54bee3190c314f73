"""Opening a catalog: which URLs are understood, and what is said when it cannot be reached."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from catalog_samples import define, record

from airflow_provider_viewdf.catalog import open_catalog
from airflow_provider_viewdf.errors import CatalogError


def refusal(url: str, *, create: bool = True) -> str:
    with pytest.raises(CatalogError) as caught:
        open_catalog(url, create=create)
    return str(caught.value)


@pytest.mark.parametrize("url", ["", "catalog.db", "postgresql://host:port/x", "sqlite:////data/a\0b.db"])
def test_url_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    assert refusal(url) == (
        "The catalog's URL cannot be read; write it like sqlite:////data/catalog.db "
        "or postgresql://user:password@host/database."
    )


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_sqlite_in_memory_is_refused(url: str) -> None:
    assert refusal(url) == "A catalog in SQLite needs a file; write its URL like sqlite:////data/catalog.db."


def test_other_databases_are_refused() -> None:
    assert refusal("mysql://host/x") == "The catalog can be in SQLite or PostgreSQL, not in mysql."


def test_folder_of_a_sqlite_catalog_is_made(tmp_path: Path) -> None:
    open_catalog(f"sqlite:///{tmp_path}/new/folder/catalog.db").close()
    assert (tmp_path / "new/folder/catalog.db").exists()


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(f"sqlite:///{tmp_path}/file/catalog.db") == (
        f"Cannot make the folder {tmp_path}/file for the catalog: File exists."
    )


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("a diary, not a database " * 100)
    url = f"sqlite:///{tmp_path}/catalog.db"
    assert refusal(url) == f"Cannot reach the catalog at {url}: file is not a database."


def test_missing_sqlite_catalog_is_not_made_unasked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/absent/catalog.db"
    assert refusal(url, create=False) == f"There is no catalog at {url}; create it with: viewdf migrate"
    assert not (tmp_path / "absent").exists()


def test_database_without_a_catalog_is_refused_unless_one_may_be_made(catalog_url: str, tmp_path: Path) -> None:
    if catalog_url.startswith("sqlite"):
        sqlite3.connect(tmp_path / "catalog.db").close()
    said = refusal(catalog_url, create=False)
    assert said.startswith("There is no catalog at ")
    assert said.endswith("; create it with: viewdf migrate")
    open_catalog(catalog_url).close()
    open_catalog(catalog_url, create=False).close()


def test_unreachable_postgresql_is_named_without_its_password(tmp_path: Path) -> None:
    said = refusal(f"postgresql://someone:sesame@/x?host={tmp_path}")
    assert said.startswith("Cannot reach the catalog at postgresql+psycopg://someone:***@/x?host=")
    assert "sesame" not in said


def test_passwords_are_not_shown(postgres_url: str) -> None:
    catalog = open_catalog(f"{postgres_url}&password=sesame")
    assert "sesame" not in catalog.url
    assert "***" in catalog.url
    catalog.close()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
def test_every_spelling_of_postgresql_uses_the_same_driver(postgres_url: str, scheme: str) -> None:
    catalog = open_catalog(postgres_url.replace("postgresql", scheme, 1))
    assert catalog.url.startswith("postgresql+psycopg://")
    catalog.close()


def test_opening_again_finds_what_was_written(catalog_url: str) -> None:
    first = open_catalog(catalog_url)
    define(first, record("M"))
    first.close()
    second = open_catalog(catalog_url)
    with second.snapshot() as reader:
        assert [item.name for item in reader.definitions()] == ["M"]
    second.close()


def test_sqlite_catalog_keeps_a_write_ahead_log(tmp_path: Path) -> None:
    open_catalog(f"sqlite:///{tmp_path}/catalog.db").close()
    connection = sqlite3.connect(tmp_path / "catalog.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_failure_of_the_database_is_one_sentence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    catalog = open_catalog(url)
    connection = sqlite3.connect(tmp_path / "catalog.db")
    connection.execute("DROP TABLE catalog_state")
    connection.close()
    with pytest.raises(CatalogError) as caught:
        define(catalog, record("M"))
    assert str(caught.value) == f"The catalog at {url} failed: no such table: catalog_state."
    catalog.close()
