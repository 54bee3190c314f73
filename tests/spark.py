"""Real Sparks for tests: one classic, one behind a Spark Connect server, each started once, when first asked for.

Both live in one process, but PySpark has one switch for the whole of it, SPARK_CONNECT_MODE_ENABLED, which decides what
`functions` and `Observation` make. The fixture turns it to the session it hands out. Pytest runs the tests for the one
and then those for the other; VIEWDF_TEST_SPARK=classic or =connect leaves out the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.engine.sessions import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = [os.environ["VIEWDF_TEST_SPARK"]] if os.environ.get("VIEWDF_TEST_SPARK") else ["classic", "connect"]

_SWITCH = "SPARK_CONNECT_MODE_ENABLED"
SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}


def turn_pyspark_to(kind: str) -> None:
    """Make this process's PySpark build plans for sessions of this kind."""
    if kind == "connect":
        os.environ[_SWITCH] = "1"
    else:
        os.environ.pop(_SWITCH, None)


class Sparks:
    """Opens a session of a kind, always the same one, and turns PySpark to it."""

    def __init__(self, log: Path) -> None:
        self._sessions: dict[str, SparkSession] = {}
        self._server = ConnectServer(log, master="local[2]", conf=SETTINGS)

    def __call__(self, kind: str) -> SparkSession:
        if kind not in self._sessions:
            if kind == "connect":
                self._sessions[kind] = open_session(remote=self.connect_url)
            else:
                self._sessions[kind] = open_session(master="local[2]", conf=SETTINGS)
        turn_pyspark_to(kind)
        return self._sessions[kind]

    @property
    def connect_url(self) -> str:
        """The address of the Spark Connect server, for other processes too."""
        return self._server.start().url

    def stop(self) -> None:
        for kind, session in self._sessions.items():
            # Before its server ends: a client left open keeps trying to reach it for ten minutes.
            turn_pyspark_to(kind)
            session.stop()
        self._server.stop()
        turn_pyspark_to("classic")


@pytest.fixture(scope="session")
def open_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sparks]:
    sparks = Sparks(tmp_path_factory.mktemp("spark") / "connect.log")
    yield sparks
    sparks.stop()


@pytest.fixture(scope="session", params=KINDS)
def spark_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spark(spark_kind: str, open_spark: Callable[[str], SparkSession]) -> SparkSession:
    """A session of each kind in turn. It is shared, so a test leaves neither views nor settings behind."""
    return open_spark(spark_kind)
