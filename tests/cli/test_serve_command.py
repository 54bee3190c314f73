"""`viewdf serve` in a process of its own, used and ended as a person would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from airflow_provider_viewdf.engine.sessions import open_session

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "from airflow_provider_viewdf.cli import main; main()", "serve", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def read_until(process: subprocess.Popen[str], text: str) -> list[str]:
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line.rstrip())
        if text in line:
            return lines
    raise AssertionError(f"It ended without saying {text!r}: {lines}")


def test_a_server_can_be_used_and_is_gone_when_the_command_is_ended(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0", "--master", "local[1]") as process:
        said = read_until(process, "For Airflow")
        url = re.search(r"sc://127\.0\.0\.1:\d+", said[0])
        assert url is not None
        port = url.group().rpartition(":")[2]
        assert said[1] == f"For commands:  viewdf ... --remote {url.group()}"
        assert said[2].endswith(f"--conn-type spark_connect --conn-host sc://127.0.0.1 --conn-port {port}")
        spark = open_session(remote=url.group())
        try:
            assert spark.range(3).count() == 3
        finally:
            spark.stop()
            os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        servers = psutil.Process(process.pid).children(recursive=True)
        assert servers
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "The Spark Connect server has ended." in (process.stderr.read() if process.stderr else "")
        assert not any(server.is_running() for server in servers)


def test_a_server_that_dies_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", "0", "--master", "local[1]", "--log", "spark.log") as process:
        read_until(process, "For Airflow")
        for server in psutil.Process(process.pid).children(recursive=True):
            server.kill()
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert process.stderr.read() == (
            "The Spark Connect server has ended by itself; its log, spark.log, may say why.\n"
        )
        assert (tmp_path / "spark.log").exists()
