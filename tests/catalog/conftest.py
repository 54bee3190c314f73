"""The same tests on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_viewdf.catalog import Catalog, open_catalog


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that holds no catalog yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    opened = open_catalog(catalog_url)
    yield opened
    opened.close()
