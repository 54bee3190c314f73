"""Backup and restore, as docs/production.md tells it: the catalog first, then the files; elsewhere, refresh and verify."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from network import LOSSES, NETWORK, measurement, minute
from postgres import PostgresServer

from airflow_provider_viewdf.warehouse import Warehouse


def fill(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    rows = [measurement(number, loss) for number, loss in LOSSES.items() if number != 2]
    warehouse.load("M", rows, covers=(minute(0), minute(7)), batch_id="rows")
    warehouse.refresh()
    warehouse.load("M", [measurement(2, LOSSES[2])], batch_id="late")


def check_restored(warehouse: Warehouse) -> None:
    """What was stale when the copy was made is still due, and everything is as if it had been computed from scratch."""
    assert warehouse.refresh().steps
    found = warehouse.query("SELECT ct, sum_loss FROM View2 ORDER BY ct").collect()
    assert [tuple(row) for row in found] == [(4, 71), (5, 87)]
    assert warehouse.verify().is_ok
    assert warehouse.repair(deep=True).damaged == ()
    assert not warehouse.refresh().steps


def test_a_copy_of_a_warehouse_on_sqlite_goes_on_where_the_original_was(tmp_path: Path, spark: Any) -> None:
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        fill(warehouse)
        copy = tmp_path / "copy"
        copy.mkdir()
        with (
            closing(sqlite3.connect(tmp_path / "wh" / "catalog.sqlite")) as source,
            closing(sqlite3.connect(copy / "catalog.sqlite")) as target,
        ):
            source.backup(target)
        # Work goes on while the files are copied.
        warehouse.refresh()
        names = shutil.ignore_patterns("catalog.sqlite*", ".staging")
        shutil.copytree(tmp_path / "wh", copy, ignore=names, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "wh")
    with Warehouse.open(copy, spark=spark) as restored:
        check_restored(restored)


def test_a_copy_of_a_warehouse_on_postgresql_goes_on_where_the_original_was(
    tmp_path: Path, spark: Any, postgres_url: str, postgres_server: PostgresServer
) -> None:
    with Warehouse.open(tmp_path / "wh", postgres_url, spark=spark) as warehouse:
        fill(warehouse)
    copied = postgres_server.copy_database(postgres_url)
    try:
        shutil.copytree(tmp_path / "wh", tmp_path / "copy")
        shutil.rmtree(tmp_path / "wh")
        with Warehouse.open(tmp_path / "copy", copied, spark=spark) as restored:
            check_restored(restored)
    finally:
        postgres_server.drop_database(copied)
