"""One real Airflow for all tests of a session; each test module adds DAG files of its own to it.

    def test_...(airflow_site, connect_server, airflow_warehouse):
        airflow_site.add_dag_file("mine.py", SOURCE, "my_dag")       # returns when Airflow has parsed it
        airflow_site.unpause("my_dag")
        airflow_site.wait_for_backfill(airflow_site.backfill("my_dag", start, end))

Its connection viewdf_default leads to `airflow_warehouse`, and spark_connect_default to `connect_server`, which runs as
soon as a test asks for it.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from airflow_provider_viewdf.engine.connect_server import ConnectServer, find_free_port
from demo.airflow_site import AirflowSite


@pytest.fixture(scope="session", autouse=True)
def end_tests_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the tests, with their teardown. The SystemExit of a site on its own would only fail one test."""

    def leave(number: int, frame: FrameType | None) -> None:
        pytest.exit("ended by SIGTERM", returncode=128 + number)

    previous = signal.signal(signal.SIGTERM, leave)
    yield
    signal.signal(signal.SIGTERM, previous)


@pytest.fixture(scope="session")
def airflow_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of the connection viewdf_default; its catalog is the SQLite file inside."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def connect_port() -> int:
    return find_free_port()


@pytest.fixture(scope="session")
def connect_server(connect_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server where the connection spark_connect_default says."""
    log = tmp_path_factory.mktemp("connect") / "server.log"
    with ConnectServer(log, port=connect_port, master="local[2]") as server:
        yield server


@pytest.fixture(scope="session")
def airflow_site_env(airflow_warehouse: Path, connect_port: int) -> dict[str, str]:
    """What the environment of every Airflow process holds besides Airflow's own settings."""
    return {
        "AIRFLOW_CONN_VIEWDF_DEFAULT": json.dumps(
            {"conn_type": "viewdf", "extra": {"warehouse": str(airflow_warehouse)}}
        ),
        "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": json.dumps(
            {"conn_type": "spark_connect", "host": "sc://127.0.0.1", "port": connect_port}
        ),
    }


@pytest.fixture(scope="session")
def airflow_site(tmp_path_factory: pytest.TempPathFactory, airflow_site_env: dict[str, str]) -> Iterator[AirflowSite]:
    home = tmp_path_factory.mktemp("airflow")
    with AirflowSite(home, home / "dags", env=airflow_site_env) as site:
        yield site
