from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_viewdf.engine.connect_server import find_free_port
from airflow_provider_viewdf.engine.sessions import choose_driver_memory_megabytes, count_local_cores, open_session
from airflow_provider_viewdf.errors import SparkUnavailableError, UsageError


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[1]", 1),
        ("local[4]", 4),
        ("local[3, 2]", 3),
        ("local-cluster[2,1,1024]", 1),
        ("spark://host:7077", 1),
    ],
)
def test_local_master_says_how_many_cores_it_uses(master: str, cores: int) -> None:
    assert count_local_cores(master) == cores


@pytest.mark.parametrize("master", ["local[*]", "local[*,4]"])
def test_local_star_uses_the_cores_that_this_process_may_use(master: str) -> None:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert count_local_cores(master) == usable


def test_driver_memory_is_between_one_and_four_gigabytes() -> None:
    assert 1024 <= choose_driver_memory_megabytes() <= 4096


@pytest.mark.parametrize("remote", ["127.0.0.1:15002", "http://127.0.0.1:15002", "sc://", "sc://host:notaport"])
def test_address_that_is_no_spark_connect_address_is_refused(remote: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_session(remote=remote)
    assert str(raised.value) == f"{remote} is no Spark Connect address: write it as sc://host:15002."


def test_server_that_does_not_answer_is_said_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    remote = f"sc://127.0.0.1:{find_free_port()}"
    with pytest.raises(SparkUnavailableError) as raised:
        open_session(remote=remote)
    assert str(raised.value) == (
        f"No Spark Connect server answers at {remote} (Connection refused): start it, or correct the address."
    )


def test_classic_session_is_silent_leaves_nothing_behind_and_has_our_settings(tmp_path: Path) -> None:
    working, temporary = tmp_path / "working", tmp_path / "temporary"
    working.mkdir()
    temporary.mkdir()
    program = """
from airflow_provider_viewdf.engine.sessions import RUNTIME_SETTINGS, open_session
spark = open_session("local[2]", conf={"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.shuffle.partitions": "3"})
again = open_session("local[2]")
assert again.sparkContext is spark.sparkContext
print({key: spark.conf.get(key) for key in RUNTIME_SETTINGS} == RUNTIME_SETTINGS)
print(spark.conf.get("spark.sql.shuffle.partitions"), spark.sparkContext.uiWebUrl)
print(spark.sql("SELECT count(*), current_timezone() FROM range(1000)").first()[:])
try:
    spark.sql("SELECT 1 / 0").collect()
except Exception as error:
    print(error.getCondition())
spark.stop()
"""
    environment = {**os.environ, "TMPDIR": str(temporary), "SPARK_REMOTE": "sc://127.0.0.1:1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=working, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", "3 None", "(1000, 'UTC')", "DIVIDE_BY_ZERO"]
    assert done.stderr == ""
    assert list(working.iterdir()) == []
    assert [path.name for path in temporary.iterdir() if path.name.startswith("viewdf-")] == []


def test_importing_sessions_imports_no_pyspark() -> None:
    program = (
        "import sys\n"
        "import airflow_provider_viewdf.engine.sessions, airflow_provider_viewdf.engine.connect_server\n"
        "print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
