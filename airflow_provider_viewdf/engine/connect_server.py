"""Run a Spark Connect server from the installed PySpark, as a child process for as long as a `with` block lasts."""

from __future__ import annotations

import atexit
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from airflow_provider_viewdf.engine.java import ensure_java
from airflow_provider_viewdf.engine.sessions import (
    choose_driver_memory_megabytes,
    count_local_cores,
    write_log4j_properties,
)
from airflow_provider_viewdf.errors import SparkUnavailableError, UsageError

_STACK_FRAME = re.compile(r"\s+(at \S+\(|\.\.\. \d+ more)")
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """A Spark Connect server that only this machine can reach, and that this process stops when it ends.

    with ConnectServer(log=Path("spark.log")) as server:
        spark = open_session(remote=server.url)
    """

    def __init__(
        self,
        log: Path,
        *,
        port: int = 0,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
        start_timeout_seconds: float = 120,
    ) -> None:
        if not 0 <= port < 65536:
            raise UsageError(f"{port} is no port: give one from 1 to 65535, or 0 for any free one.")
        self.log = log
        self.master = master
        self.port = port
        self._given_port = port
        self._conf = dict(conf or {})
        self._start_timeout_seconds = start_timeout_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        if self.is_running:
            return self
        if self._given_port and not _is_free(self._given_port):
            raise UsageError(f"Port {self._given_port} is taken: end what listens there, or give another port.")
        ensure_java()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        for attempt in (1, 2, 3):
            self.port = self._given_port or find_free_port()
            self._scratch = tempfile.TemporaryDirectory(prefix="viewdf-connect-", ignore_cleanup_errors=True)
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    self._build_command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_build_environment(),
                    cwd=self._scratch.name,
                    start_new_session=True,
                )
            atexit.register(self.stop)
            try:
                self._wait_until_it_serves()
            except BaseException as error:
                taken = not self.is_running and "BindException" in _read_tail(self.log)
                self.stop()
                # Between finding a free port and binding it, another process can take it.
                if taken and not self._given_port and attempt < 3 and isinstance(error, SparkUnavailableError):
                    continue
                raise
            return self
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """End the server and its children; wait until they are gone."""
        process, self._process = self._process, None
        if process is not None:
            end_process_group(process)
            atexit.unregister(self.stop)
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def wait(self) -> None:
        """Return when the server has ended."""
        if self._process is not None:
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _build_command(self) -> list[str]:
        assert self._scratch is not None
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            # A taken port is an error: the next one up would belong to nobody who knows its URL.
            "spark.port.maxRetries": "0",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.extraJavaOptions": write_log4j_properties(
                Path(self._scratch.name), level="warn", failed_tasks="warn"
            ),
            "spark.sql.warehouse.dir": str(Path(self._scratch.name, "warehouse")),
        }
        if self.master.startswith("local"):
            settings |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": f"{choose_driver_memory_megabytes()}m",
                "spark.sql.shuffle.partitions": str(count_local_cores(self.master)),
            }
        home = _find_pyspark_home()
        command = [str(home / "bin" / "spark-submit"), "--class", SERVER_CLASS, "--master", self.master]
        for key, value in {**settings, **self._conf}.items():
            command += ["--conf", f"{key}={value}"]
        # The server is among Spark's own jars; spark-submit insists on a jar to run all the same.
        return [*command, "--name", "viewdf Spark Connect server", "spark-internal"]

    def _wait_until_it_serves(self) -> None:
        deadline = time.monotonic() + self._start_timeout_seconds
        while _is_free(self.port):
            self._check_running()
            if time.monotonic() > deadline:
                raise SparkUnavailableError(
                    f"The Spark Connect server did not listen on port {self.port} within "
                    f"{self._start_timeout_seconds:.0f} seconds; its log, {self.log}, "
                    f"ends with:\n{_read_tail(self.log)}"
                )
            time.sleep(0.1)
        _open_and_close_session(self.url)
        self._check_running()

    def _check_running(self) -> None:
        if not self.is_running:
            code = self._process.returncode if self._process else None
            raise SparkUnavailableError(
                f"The Spark Connect server ended with exit code {code} while starting; its log, {self.log}, "
                f"ends with:\n{_read_tail(self.log)}"
            )


def _open_and_close_session(url: str) -> None:
    # The class itself, not SparkSession.builder: that would turn all of this process to Spark Connect.
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession(connection=url)
    try:
        _ = session.version
    finally:
        session.stop()


def _find_pyspark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkUnavailableError("PySpark is not installed here: pip install 'pyspark[connect]'.")
    home = Path(spec.submodule_search_locations[0])
    if not list(home.glob("jars/spark-connect_*.jar")):
        raise SparkUnavailableError(f"{home} has no Spark Connect server: pip install 'pyspark[connect]>=4'.")
    return home


def _build_environment() -> dict[str, str]:
    # Variables that would make the server believe it is a client, or another Spark.
    misleading = re.compile(
        r"SPARK_HOME|SPARK_REMOTE|SPARK_CONNECT_MODE.*|SPARK_LOCAL_REMOTE|PYSPARK_.*|SPARK_CONF_DIR"
    )
    return {key: value for key, value in os.environ.items() if not misleading.fullmatch(key)}


def find_free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _read_tail(log: Path, lines: int = 15) -> str:
    """The end of a log without the frames of Java's stack traces, which would push the reason out of sight."""
    try:
        text = log.read_text(errors="replace")
    except OSError as error:
        return f"({error})"
    return "\n".join([line for line in text.splitlines() if not _STACK_FRAME.match(line)][-lines:])


def end_process_group(process: subprocess.Popen[bytes], patience_seconds: float = 15) -> None:
    """Ask a process that leads its own group to end, then make it and all of its group end; return when they have."""
    _signal_group(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience_seconds)
    deadline = time.monotonic() + 5
    while _signal_group(process.pid, signal.SIGKILL) and time.monotonic() < deadline:
        process.poll()
        time.sleep(0.02)
    process.wait()


def _signal_group(group: int, number: signal.Signals) -> bool:
    """Whether the group had anyone to send the signal to."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter for a group of zombies
        return False
    return True
