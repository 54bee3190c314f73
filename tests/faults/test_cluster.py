"""The set-up of docs/production.md: PostgreSQL, and Spark Connect in front of a standalone cluster whose executors die."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import CONF, WORKERS, Cluster
from postgres import PostgresServer
from spark import turn_pyspark_to
from warehouse.network import NETWORK, measurement, minute

from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.engine.sessions import open_session
from airflow_provider_viewdf.warehouse import Warehouse

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

MINUTES = 20
BUSY = "CREATE VIEW Busy AS SELECT src, sum(loss) AS lost, max(loss) AS most FROM M [WINDOW 5 minutes] GROUP BY src;"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster") as started:
        yield started


@pytest.fixture
def warehouse(cluster: Cluster, tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Warehouse]:
    with ConnectServer(tmp_path / "connect.log", master=cluster.url, conf=CONF) as server:
        turn_pyspark_to("connect")
        spark = open_session(remote=server.url)
        url = postgres_server.create_database()
        try:
            with Warehouse.open(tmp_path / "wh", catalog_url=url, spark=spark) as opened:
                opened.apply(NETWORK + BUSY)
                yield opened
        finally:
            spark.stop()
            turn_pyspark_to("classic")
            postgres_server.drop_database(url)


def losses(number: int) -> int:
    return 5 if number % 9 == 0 else 11 + number


def expected_streaks() -> list[tuple[int, int, int]]:
    """What View2 has: minute, length and sum of each streak of losses over ten that is at least four long."""
    found, streak = [], []
    for number in range(MINUTES):
        streak = [*streak, losses(number)] if losses(number) > 10 else []
        if len(streak) >= 4:
            found.append((number, len(streak), sum(streak)))
    return found


def expected_windows() -> list[tuple[int, int, int]]:
    spans = ((number, [losses(item) for item in range(number - 4, number + 1)]) for number in range(4, MINUTES))
    return [(number, sum(span), max(span)) for number, span in spans]


def ask(warehouse: Warehouse, view: str, columns: str) -> list[tuple[Any, ...]]:
    answer = warehouse.query(f"SELECT PART, {columns} FROM {view} ORDER BY PART").collect()
    first = int(minute(0).timestamp()) // 60
    return [(row[0] - first, *row[1:]) for row in answer]


def test_a_cluster_computes_all_parts_while_its_executors_are_killed(warehouse: Warehouse, cluster: Cluster) -> None:
    rows = [measurement(number, losses(number)) for number in range(MINUTES)]
    late = rows.pop(7)
    warehouse.load("M", rows, batch_id="on time", covers=(minute(0), minute(MINUTES)))
    warehouse.refresh("View2", end=minute(5))
    assert len(cluster.executors()) == WORKERS
    killed: list[int] = []

    def kill_now_and_then(_report: Any, done: int, _all: int) -> None:
        # The next step begins before the cluster knows.
        if done % 10 == 5:
            killed.append(cluster.kill_an_executor())

    warehouse.refresh(on_progress=kill_now_and_then)
    warehouse.load("M", [late], batch_id="late")
    warehouse.refresh(on_progress=kill_now_and_then)
    assert len(set(killed)) >= 3
    assert not any(os.path.exists(f"/proc/{pid}") for pid in killed)
    assert ask(warehouse, "View2", "ct, sum_loss") == expected_streaks()
    assert ask(warehouse, "Busy", "lost, most") == expected_windows()
    assert warehouse.repair(deep=True).damaged == ()
    assert warehouse.verify().is_ok
    assert warehouse.refresh().steps == ()
