"""Whoever dies with a lease in hand keeps nobody waiting for longer than must be."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from worker import run_apart

from airflow_provider_viewdf.actions.leases import acquire_lease, hold_leases, is_dead, name_owner
from airflow_provider_viewdf.catalog import Catalog, open_catalog


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    opened = open_catalog(url)
    yield opened
    opened.close()


def lease_and_die(url: str, indexes: list[int]) -> None:
    catalog = open_catalog(url)
    catalog.acquire_leases("V", indexes, name_owner(), 3600)
    os.kill(os.getpid(), signal.SIGKILL)


def die_with_leases(url: str, *indexes: int) -> None:
    process = run_apart(lease_and_die, url, list(indexes))
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_of_those_who_wait_for_a_dead_process_one_takes_its_place(catalog: Catalog, url: str) -> None:
    die_with_leases(url, 5)
    dead = catalog.lease_holder("V", 5)
    assert dead is not None
    assert is_dead(dead)
    owner = name_owner()
    acquire_lease(catalog, "V", 5, owner)
    assert catalog.lease_holder("V", 5) == owner
    # Someone else has found the same dead owner, and comes a moment later.
    assert catalog.acquire_lease("V", 5, name_owner(), 60, instead_of=dead) is None
    assert catalog.lease_holder("V", 5) == owner


def test_many_parts_of_a_dead_process_are_taken_over_together(catalog: Catalog, url: str) -> None:
    die_with_leases(url, 1, 2, 4)
    assert catalog.acquire_lease("V", 3, name_owner(), 60) is not None
    with hold_leases(catalog, "V", [1, 2, 3, 4, 5]) as held:
        assert held == {1, 2, 4, 5}
    assert set(catalog.lease_holders("V", [1, 2, 3, 4, 5])) == {3}


def test_a_lease_of_another_machine_is_taken_over_when_it_has_expired(catalog: Catalog) -> None:
    assert catalog.acquire_lease("V", 5, "elsewhere:1:01234567", 100) is not None
    owner, told = name_owner(), threading.Event()

    def wait() -> None:
        acquire_lease(catalog, "V", 5, owner)
        told.set()

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    assert not told.wait(0.5)
    with catalog._database.writing() as connection:
        connection.execute(text("UPDATE leases SET expires_at = '2015-01-01 00:00:00.000000'"))
    assert told.wait(60)
    assert catalog.lease_holder("V", 5) == owner
