"""A process that works on a warehouse, and may be told to die or to stop at a point.

Each is forked from a server that has everything imported, so that starting one takes no seconds.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import pyspark.sql.connect.session  # noqa: F401
from spark import SETTINGS, turn_pyspark_to

from airflow_provider_viewdf import fail_points
from airflow_provider_viewdf.engine.sessions import open_session
from airflow_provider_viewdf.errors import ViewDFError
from airflow_provider_viewdf.versions import Producer
from airflow_provider_viewdf.warehouse import Warehouse

# Actions are imported when they are first needed; here they are wanted before the fork.
for _action in ("apply", "collect_garbage", "load", "look", "query", "refresh_batch", "retire", "roll_up", "verify"):
    importlib.import_module(f"airflow_provider_viewdf.actions.{_action}")

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["worker", "pytest"])

# Before anything that could have been written or replaced.
AT_ONCE = timedelta(days=-1)

Operation = tuple[Any, ...]


def minute(number: int, second: int = 0) -> datetime:
    return datetime(2015, 1, 1, 10, tzinfo=UTC) + timedelta(minutes=number, seconds=second)


@dataclass(frozen=True)
class Place:
    """A warehouse, and the Spark to work on it with: the address of a server, or "" for one of its own."""

    directory: str
    catalog_url: str | None
    remote: str = ""

    def open(self, spark: Any = None, produced_by: Producer | None = None) -> Warehouse:
        if spark is None and not self.remote:
            return Warehouse.open(
                self.directory, self.catalog_url, open_spark=open_classic_spark, produced_by=produced_by
            )
        return Warehouse.open(
            self.directory, self.catalog_url, spark=spark, remote=self.remote or None, produced_by=produced_by
        )


def open_classic_spark() -> Any:
    return open_session(master="local[2]", conf=SETTINGS)


@dataclass(frozen=True)
class Fault:
    """What becomes of a process when it is at a point for the so-manieth time."""

    point: str
    times: int = 1
    by: signal.Signals = signal.SIGKILL


def perform(warehouse: Warehouse, operation: Operation) -> None:
    """Do one piece of work: its name, and what it takes."""
    _OPERATIONS[operation[0]](warehouse, *operation[1:])


def _load(warehouse: Warehouse, batch: str, rows: Sequence[tuple[int, int, str, int]], first: int, end: int) -> None:
    dicts = [{"ts": minute(m, second), "k": k, "x": x} for m, second, k, x in rows]
    warehouse.load("S", dicts, batch_id=batch, covers=(minute(first), minute(end)))


_OPERATIONS: dict[str, Callable[..., object]] = {
    "apply": lambda warehouse, sql: warehouse.apply(sql),
    "load": _load,
    "declare empty": lambda warehouse, number: warehouse.declare_empty("S", minute(number), "no data"),
    "look": lambda warehouse: warehouse.look("E", minute(0), minute(120)),
    "refresh": lambda warehouse, *views: warehouse.refresh(list(views) or None),
    "one by one": lambda warehouse: warehouse.refresh(batch_limit=1),
    "roll up": lambda warehouse: warehouse.roll_up(span="3 minutes", older_than="0 minutes"),
    "retire": lambda warehouse: warehouse.retire(),
    "gc": lambda warehouse: warehouse.gc(AT_ONCE),
}


def start(
    place: Place,
    operations: Sequence[Operation],
    fault: Fault | None,
    scratch: str,
    produced_by: Producer | None = None,
) -> BaseProcess:
    """Start a process that does this work. If it fails, it leaves the error's sentence in `scratch`."""
    return run_apart(_work, place, list(operations), fault, scratch, produced_by)


def run_apart(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    process = PROCESSES.Process(target=target, args=arguments)
    with _path_in_environment():
        process.start()
    return process


@contextmanager
def _path_in_environment() -> Iterator[None]:
    """The server imports what it is told only if it finds it, and Python does not tell it where (gh-117378)."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def prepare(place: Place, scratch: str) -> None:
    """What every process of a test does first."""
    # A process that is killed cleans nothing up: what it leaves goes with the test's own directory.
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    turn_pyspark_to("connect" if place.remote else "classic")


def _work(
    place: Place, operations: list[Operation], fault: Fault | None, scratch: str, produced_by: Producer | None
) -> None:
    prepare(place, scratch)
    if fault is not None:
        fail_points.arm(fault.point, fault.times, fault.by)
    if operations == [("migrate",)]:
        Warehouse.migrate(place.directory, place.catalog_url)
        return
    try:
        with place.open(produced_by=produced_by) as warehouse:
            for operation in operations:
                perform(warehouse, operation)
    except ViewDFError as error:
        Path(scratch, "error").write_text(str(error))
        raise


def wait_until_stopped(process: BaseProcess, seconds: float = 120) -> None:
    """Wait for a process to stop at its point."""
    deadline = time.monotonic() + seconds
    seen = psutil.Process(process.pid)
    while seen.status() != psutil.STATUS_STOPPED:
        assert process.is_alive(), f"it ended with {process.exitcode}"
        assert time.monotonic() < deadline, "it did not stop"
        process.join(0.01)


def go_on(process: BaseProcess, seconds: float = 120) -> int | None:
    """Let a stopped process go on, to its end: its exit code."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)
    process.join(seconds)
    return process.exitcode
