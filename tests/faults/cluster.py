"""A Spark standalone cluster of a master and two workers, from the pyspark package, on 127.0.0.1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import pyspark

from airflow_provider_viewdf.engine.connect_server import end_process_group, find_free_port
from airflow_provider_viewdf.engine.java import ensure_java

WORKERS = 2
WAIT_SECONDS = 120
EXECUTOR = "CoarseGrainedExecutorBackend"

# For a driver on the cluster: the same machine, and little memory.
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
}


class Cluster:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port, self._page = find_free_port(), find_free_port()

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        ensure_java()
        self._start("master.Master", "--port", str(self.port), "--webui-port", str(self._page))
        self._wait_for("status", "ALIVE")
        for _ in range(WORKERS):
            self._start("worker.Worker", self.url, "--cores", "1", "--memory", "1g", "--webui-port", "0")
        self._wait_for("aliveworkers", WORKERS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            end_process_group(process)

    def executors(self) -> list[int]:
        """The processes that the workers have started to compute."""
        workers = {process.pid for process in self._processes[1:]}
        return [pid for pid in _children_of(workers) if EXECUTOR in _read(f"/proc/{pid}/cmdline")]

    def kill_an_executor(self) -> int:
        pid = self.executors()[0]
        os.kill(pid, signal.SIGKILL)
        return pid

    def _start(self, name: str, *arguments: str) -> None:
        directory = self._directory / f"{name}{len(self._processes)}"
        directory.mkdir(parents=True)
        command = [Path(pyspark.__file__).parent / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
        env = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(directory),
            "SPARK_NO_DAEMONIZE": "1",
        }
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *arguments, "--host", "127.0.0.1"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=directory,
                start_new_session=True,
            )
        self._processes.append(process)

    def _wait_for(self, key: str, value: Any) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while self._ask().get(key) != value:
            assert time.monotonic() < deadline, f"{key} is not {value}: see the logs in {self._directory}"
            assert all(process.poll() is None for process in self._processes), f"see the logs in {self._directory}"
            time.sleep(0.2)

    def _ask(self) -> dict[str, Any]:
        try:
            with urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except OSError:
            return {}


def _children_of(parents: set[int]) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _read(str(path)).rpartition(")")[2].split()
        if len(fields) > 1 and int(fields[1]) in parents:
            found.append(int(path.parent.name))
    return sorted(found)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""  # it has ended
