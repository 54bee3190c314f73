"""Fifty views over ten streams, a run a minute, on a real scheduler with PostgreSQL and Spark Connect: thirty simulated minutes.

    make soak ARGS="tests/airflow/test_load.py"                                    all of it
    VIEWDF_LOAD_VIEWS=5 VIEWDF_LOAD_STREAMS=2 VIEWDF_LOAD_MINUTES=5 make soak ...    a small one

A minute is simulated: the scheduler catches up with runs of the past, as fast as the machine does. The figures are printed, and
written as JSON to the file that VIEWDF_LOAD_FIGURES names.

What is bounded: what Spark Connect's JVM holds after a full collection must not grow, or sessions of tasks that are over leak;
its process as a whole fills the heap that it is given, and may do so. Airflow's processes have no such limit of their own, so
they must not grow as they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from postgres import PostgresServer
from site_samples import read_parts
from sqlalchemy import make_url
from warehouse.pattern_oracle import Check, find_matches

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from demo.airflow_client import TaskInstance
from demo.airflow_site import AirflowSite

pytestmark = [pytest.mark.airflow, pytest.mark.soak, pytest.mark.timeout(4 * 3600)]

VIEWS = int(os.environ.get("VIEWDF_LOAD_VIEWS", "50"))
STREAMS = int(os.environ.get("VIEWDF_LOAD_STREAMS", "10"))
MINUTES = int(os.environ.get("VIEWDF_LOAD_MINUTES", "30"))
# How many runs are at work at once. With more, tasks find more parts to compute together, as after an outage.
ACTIVE_RUNS = int(os.environ.get("VIEWDF_LOAD_ACTIVE_RUNS", "2"))

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
FIRST = 23668440
MINUTE = timedelta(minutes=1)
HOSTS = 20
WIDTH = 3
# Of what is held, from the middle third of the time to the last. What queries at work hold is in Spark's live heap, too.
MOST_GROWTH, MOST_HEAP_GROWTH = 1.25, 1.5
SAMPLE_SECONDS = 2.0
COLLECT_SECONDS = 20.0
SPARK_HEAP_MIB = 2048
# Classes, compiled code, threads' stacks and buffers lie beside the heap.
SPARK_MOST_MIB = SPARK_HEAP_MIB + 1024

QUERIES = (
    "SELECT host, x FROM S WHERE x > 5",
    "SELECT host, sum(x) AS total, count(*) AS ct FROM S GROUP BY host",
    "INITIALIZE V[i] AS SELECT host, CAST(x AS BIGINT) AS total FROM S[i] "
    "UPDATE V[j] AS SELECT s.host, s.x + v.total FROM S[j] s JOIN V[j-1] v ON s.host = v.host PARTITION LENGTH 60",
    f"SELECT host, sum(x) AS total FROM S [WINDOW {WIDTH} minutes] GROUP BY host",
    "SELECT host, count(*) AS ct, sum(x) AS total FROM S PATTERN [a, b+] WHERE a.x > 3 AND b.x > a.x GROUP BY host",
)


def value_of(stream: int, host: int, minute: int) -> int:
    return (stream * 7 + host * 5 + minute * minute * 3 + minute * host) % 20


def name_stream(view: int) -> str:
    return f"load_S{view % STREAMS}"


def write_script() -> str:
    streams = [
        f"CREATE STREAM load_S{number} (ts TIMESTAMP ORDERED, host INT, x INT) PARTITION LENGTH 60"
        for number in range(STREAMS)
    ]
    views = []
    for number in range(VIEWS):
        query = QUERIES[number % len(QUERIES)]
        query = query.replace("FROM S", f"FROM {name_stream(number)}").replace("V[", f"load_V{number}[")
        views.append(f"CREATE VIEW load_V{number} AS {query}")
    return ";\n".join([*streams, *views])


SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import LoadOperator, ViewDFTaskGroup

SQL = """@SCRIPT"""
START = datetime(2015, 1, 1, 10, tzinfo=UTC)

def measure(stream):
    def rows(start):
        minute = int((start - START).total_seconds()) // 60
        return [
            {"ts": start, "host": host, "x": (stream * 7 + host * 5 + minute * minute * 3 + minute * host) % 20}
            for host in range(@HOSTS)
        ]
    return rows

with DAG(
    "load",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=START,
    end_date=datetime.fromisoformat("@END"),
    catchup=True,
    max_active_runs=@ACTIVE_RUNS,
):
    views = ViewDFTaskGroup("views", SQL, poll_interval=1)
    for number in range(@STREAMS):
        LoadOperator(task_id=f"load_{number}", table=f"load_S{number}", source=measure(number), sql=SQL) >> views
'''


def compute_expected(view: int) -> dict[int, list[tuple[Any, ...]]]:
    """A view's parts from scratch, in plain Python."""
    kind, stream = view % len(QUERIES), view % STREAMS
    values = [[value_of(stream, host, minute) for minute in range(MINUTES)] for host in range(HOSTS)]
    if kind == 4:
        checks = (
            Check("a.x > 3", "a", lambda bound: bound.last("a", "x") > 3),
            Check("b.x > a.x", "b", lambda bound: bound.last("b", "x") > bound.last("a", "x")),
        )
        pattern = ("seq", ("a",), ("rep", ("b",), 1, None))
        matches = [find_matches(pattern, checks, [[{"x": x}] for x in of]) for of in values]
        return {
            FIRST + minute: [
                (host, len(found.rows), sum(row["x"] for row in found.rows))
                for host, of in enumerate(matches)
                if (found := of[minute]) is not None
            ]
            for minute in range(MINUTES)
        }
    rows: dict[int, Callable[[int, list[int]], list[tuple[Any, ...]]]] = {
        0: lambda minute, of: [(of[minute],)] if of[minute] > 5 else [],
        1: lambda minute, of: [(of[minute], 1)],
        2: lambda minute, of: [(sum(of[: minute + 1]),)],
        3: lambda minute, of: [(sum(of[minute - WIDTH + 1 : minute + 1]),)],
    }
    return {
        FIRST + minute: [(host, *row) for host, of in enumerate(values) for row in rows[kind](minute, of)]
        for minute in range(WIDTH - 1 if kind == 3 else 0, MINUTES)
    }


class Memory:
    """How many bytes the processes that stay hold, over time; all of them together, tasks included; and Spark's live heap."""

    def __init__(self, site: AirflowSite, server: ConnectServer) -> None:
        assert server._process is not None
        self._pids = {name: process.pid for name, process in site._processes.items()} | {"spark": server._process.pid}
        self.samples: dict[str, list[int]] = {name: [] for name in (*self._pids, "spark, live heap", "everything")}
        self._collected_at = 0.0
        self._is_over = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch)
        watcher.start()
        try:
            yield
        finally:
            self._is_over.set()
            watcher.join()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_SECONDS):
            everything = 0
            for name, pid in self._pids.items():
                leader = psutil.Process(pid)
                family = [leader, *leader.children(recursive=True)]
                held = {process.pid: _read_memory(process) for process in family}
                everything += sum(held.values())
                # Spark is a JVM below a shell; the others start tasks and parsers, which come and go.
                main = max(held, key=held.__getitem__) if name == "spark" else pid
                self.samples[name].append(held[main])
                if name == "spark" and time.monotonic() >= self._collected_at + COLLECT_SECONDS:
                    self._collected_at = time.monotonic()
                    self.samples["spark, live heap"].append(measure_live_heap(main))
            self.samples["everything"].append(everything)

    def find_growth(self, name: str) -> float:
        """The most of the last third of the time against the most of the middle third."""
        samples = self.samples[name]
        third = len(samples) // 3
        assert third, f"too few samples of {name}: let more minutes pass"
        return max(samples[2 * third :]) / max(samples[third : 2 * third])

    def find_most(self, name: str) -> float:
        return max(self.samples[name]) / 2**20


def _read_memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def measure_live_heap(pid: int) -> int:
    """What is left in the heap of a JVM when all that nobody refers to is gone."""
    jcmd = shutil.which("jcmd", path=os.pathsep.join([f"{os.environ['JAVA_HOME']}/bin", os.environ["PATH"]]))
    assert jcmd is not None, "this test needs a whole JDK, for its jcmd"
    # What has a cleaner is only gone after the next collection.
    for command in ("GC.run", "GC.run", "GC.heap_info"):
        done = subprocess.run([jcmd, str(pid), command], capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r"heap\s+total \d+K, used (\d+)K", done.stdout)
    assert found is not None, done.stdout
    return int(found.group(1)) * 1024


@pytest.fixture
def catalog_url(postgres_server: PostgresServer) -> str:
    url = make_url(postgres_server.create_database()).set(drivername="postgresql+psycopg")
    return url.render_as_string(hide_password=False)


def test_no_part_is_missed_and_memory_is_bounded(
    tmp_path: Path, postgres_server: PostgresServer, catalog_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = tmp_path / "warehouse"
    source = SOURCE.replace("@SCRIPT", write_script()).replace("@HOSTS", str(HOSTS)).replace("@STREAMS", str(STREAMS))
    source = source.replace("@ACTIVE_RUNS", str(ACTIVE_RUNS))
    source = source.replace("@END", (START + (MINUTES - 1) * MINUTE).isoformat())
    dates = [START + number * MINUTE for number in range(MINUTES)]
    conf = {"spark.driver.memory": f"{SPARK_HEAP_MIB}m"}
    with ConnectServer(tmp_path / "connect.log", master="local[2]", conf=conf) as server:
        connections = {
            "VIEWDF_DEFAULT": {
                "conn_type": "viewdf",
                "extra": {"warehouse": str(warehouse), "catalog_url": catalog_url},
            },
            "SPARK_CONNECT_DEFAULT": {"conn_type": "spark_connect", "host": "sc://127.0.0.1", "port": server.port},
        }
        env = {f"AIRFLOW_CONN_{name}": json.dumps(connection) for name, connection in connections.items()}
        metadata_url = postgres_server.create_database()
        with AirflowSite(tmp_path / "airflow", tmp_path / "dags", env=env, metadata_url=metadata_url) as site:
            site.add_dag_file("load.py", source, "load")
            site_processes = list(site._processes)
            memory = Memory(site, server)
            started = time.monotonic()
            with memory.watched():
                site.unpause("load")
                runs = site.wait_for_runs("load", logical_dates=dates, timeout_seconds=4 * 3600)
            seconds = time.monotonic() - started
            tasks = [task for run in runs for task in site.task_instances("load", run.run_id)]

    figures = collect_figures(tasks, seconds, memory)
    if file := os.environ.get("VIEWDF_LOAD_FIGURES"):
        Path(file).write_text(json.dumps(figures, indent=2) + "\n")
    with capsys.disabled():
        print(f"\n{describe(figures)}")
    assert {task.state for task in tasks} <= {"success", "skipped"}
    with Warehouse.open(warehouse, catalog_url) as opened:
        status = {item.name: item for item in opened.status()}
    for number in range(VIEWS):
        assert read_parts(warehouse, f"load_V{number}", catalog_url) == compute_expected(number), number
        assert not status[f"load_V{number}"].stale
    growth = {name: memory.find_growth(name) for name in memory.samples}
    assert max(growth[name] for name in site_processes) <= MOST_GROWTH, growth
    assert growth["spark, live heap"] <= MOST_HEAP_GROWTH, growth
    assert memory.find_most("spark") <= SPARK_MOST_MIB


def collect_figures(tasks: Sequence[TaskInstance], seconds: float, memory: Memory) -> dict[str, Any]:
    return {
        "views": VIEWS,
        "streams": STREAMS,
        "simulated_minutes": MINUTES,
        "active_runs": ACTIVE_RUNS,
        "cores": os.cpu_count(),
        "tasks": len(tasks),
        "tried_more_than_once": sum(task.try_number > 1 for task in tasks),
        "seconds": round(seconds),
        "seconds_of_a_task": {
            kind: summarize([task for task in tasks if pattern.fullmatch(task.task_id)])
            for kind, pattern in KINDS.items()
        },
        "mebibytes": {
            name: {"most": round(memory.find_most(name)), "growth": round(memory.find_growth(name), 2)}
            for name in memory.samples
        },
    }


KINDS = {
    "load": re.compile(r"load_\d+"),
    "sensor": re.compile(r"views\.load_S\d+"),
    "view": re.compile(r"views\.load_V\d+"),
}


def summarize(tasks: Sequence[TaskInstance]) -> dict[str, float]:
    lasted = [(task.end_date - task.start_date).total_seconds() for task in tasks if task.end_date and task.start_date]
    return {"median": round(statistics.median(lasted), 1), "longest": round(max(lasted), 1)}


def describe(figures: Mapping[str, Any]) -> str:
    tasks, seconds = figures["tasks"], figures["seconds"]
    lines = [
        f"{VIEWS} views over {STREAMS} streams, {MINUTES} simulated minutes: {tasks} tasks in {seconds} s, "
        f"{tasks / seconds:.2f} tasks/s, {seconds / MINUTES:.1f} s for a minute",
        *(
            f"a {kind} task: median {found['median']} s, longest {found['longest']} s"
            for kind, found in figures["seconds_of_a_task"].items()
        ),
        *(
            f"{name}: at most {found['most']} MiB, {found['growth']:.2f} of that of the middle third"
            for name, found in figures["mebibytes"].items()
        ),
    ]
    return "\n".join(lines)
