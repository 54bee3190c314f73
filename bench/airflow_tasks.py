"""One task instance of a real Airflow: what it takes besides the refresh, on Spark Connect and on a local Spark.

In each round the same part of three equal views is made: by a task on Spark Connect, by a task that starts a Spark of its own, and by
a warm process that has a session on the same Spark Connect server.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.engine.sessions import open_session
from airflow_provider_viewdf.warehouse import Warehouse
from bench.losses import FIRST, part_set, part_start, write_stream
from bench.measure import Timing, console, show, stopwatch
from bench.patterns import VIEW
from bench.phases import PHASES, REST
from bench.results import Figure, Goal, Result, Series
from bench.sessions import CORES, bench_directory
from demo.airflow_site import AirflowSite, leave_on_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]

CONNECT, LOCAL = "connect", "local"
CONNECTIONS = {CONNECT: "spark_connect_default", LOCAL: "spark_local"}
IN_PROCESS = "the same refresh in a warm process, Spark Connect"

DAG_FILE = """
from datetime import datetime, timezone

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_viewdf import ViewDFOperator
from bench.phases import watch

class WatchedOperator(ViewDFOperator):
    def _refresh(self, context, started_at):
        begun = datetime.now(timezone.utc)
        report, phases = watch(lambda: super(WatchedOperator, self)._refresh(context, started_at))
        return {{**report, "begun": begun.isoformat(), "phases": phases}}

with DAG(
    "{dag_id}",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, tzinfo=timezone.utc),
    end_date=datetime(2015, 1, 2, tzinfo=timezone.utc),
    catchup=False,
):
    WatchedOperator(task_id="{view}", sql={script!r}, spark_conn_id="{connection}", batch_limit=1)
"""

RUN_TO_TASK, TASK, STARTING = "from trigger to task", "task", "task: starting, until the operator begins"
ENDING = "task: telling Airflow how it ended"
# Said if the goal is missed.
WHY = (
    "most of it is Airflow's: a process for each task instance, which imports Airflow and PySpark, parses the DAG file and talks to the API server; "
    "the table below says how long each of these took"
)


def run(rows: int = 1_000, repeats: int = 7, *, full: bool = False) -> Result:
    repeats = 20 if full else repeats
    with bench_directory() as directory, leave_on_signals():
        with ConnectServer(directory / "spark.log", master=f"local[{CORES}]") as server:
            spark = open_session(remote=server.url)
            try:
                timings = _measure(directory, server, spark, rows, repeats)
            finally:
                # Before its server ends: a client left open keeps trying to reach it for ten minutes.
                spark.stop()
    show(f"One task instance, {rows:,} rows a part", timings, IN_PROCESS)
    result = Result("airflow_tasks", {"rows": rows, "repeats": repeats, "first": FIRST})
    wholes = {
        IN_PROCESS: timings[IN_PROCESS],
        **{f"{name}: {key}": timings[f"{name}: {key}"] for name in CONNECTIONS for key in (RUN_TO_TASK, TASK)},
    }
    result.figures.append(Figure("One task instance of Airflow", "rows per part", [Series(rows, wholes)]))
    overhead = timings[f"{CONNECT}: {TASK}"].median - timings[IN_PROCESS].median
    spread = [a - b for a, b in zip(timings[f"{CONNECT}: {TASK}"].seconds, timings[IN_PROCESS].seconds, strict=True)]
    what = "ViewDFOperator on Spark Connect, over the same refresh in a warm process"
    result.goals.append(Goal(what, overhead, 1.0, True, (min(spread), max(spread)), unit=" s", why=WHY))
    result.tables["where the time of a task goes, medians in seconds"] = [
        {
            "phase": phase.removeprefix("task: "),
            **{name: round(timings[f"{name}: {phase}"].median, 3) for name in CONNECTIONS},
        }
        for phase in (RUN_TO_TASK, STARTING, *(f"task: {item}" for item in (*PHASES, REST)), ENDING, TASK)
    ]
    return result


def _measure(directory: Path, server: ConnectServer, spark: SparkSession, rows: int, repeats: int) -> dict[str, Timing]:
    warm_up = 2
    warehouse = directory / "warehouse"
    scripts = {
        name: VIEW.format(view=f"View_{name}", stream="M", start=part_start(0).isoformat())
        for name in (*CONNECTIONS, "here")
    }
    found: dict[str, list[float]] = {}
    with Warehouse.open(warehouse, spark=spark) as wh:
        wh.apply(write_stream("M") + scripts["here"])
        for number in range(warm_up + repeats):
            wh.load("M", _rows(number, rows), f"b{number}", (part_start(number), part_start(number + 1)))
        env = {
            "PYTHONPATH": str(ROOT),
            "AIRFLOW_CONN_VIEWDF_DEFAULT": _connection("viewdf", extra={"warehouse": str(warehouse)}),
            "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": _connection("spark_connect", host="sc://127.0.0.1", port=server.port),
            "AIRFLOW_CONN_SPARK_LOCAL": _connection("spark", host=f"local[{CORES}]"),
        }
        console.print("  starting Airflow", style="dim")
        with AirflowSite(directory / "airflow", directory / "airflow" / "dags", env=env) as site:
            for name, connection in CONNECTIONS.items():
                source = DAG_FILE.format(
                    dag_id=name,
                    view=f"View_{name}",
                    script=write_stream("M") + scripts[name],
                    connection=connection,
                )
                site.add_dag_file(f"{name}.py", source, name)
                site.unpause(name)
            for number in range(warm_up + repeats):
                figures = {key: value for name in CONNECTIONS for key, value in _run_task(site, name, number).items()}
                seconds: list[float] = []
                with stopwatch(seconds):
                    wh.refresh(parts={"View_here": part_set(number)})
                figures[IN_PROCESS] = seconds[0]
                if number >= warm_up:
                    for key, value in figures.items():
                        found.setdefault(key, []).append(value)
                console.print(f"  round {number + 1} of {warm_up + repeats}", style="dim")
        _check_same(wh, warm_up + repeats - 1)
    return {name: Timing(name, tuple(seconds)) for name, seconds in found.items()}


def _run_task(site: AirflowSite, name: str, number: int) -> dict[str, float]:
    """Trigger the run of a minute, and read from Airflow when what happened."""
    start = part_start(number)
    run = site.trigger(name, logical_date=start, data_interval=(start, start + timedelta(minutes=1)))
    site.wait_for_runs(name, run_ids=[run.run_id], timeout_seconds=300)
    path = f"/dags/{name}/dagRuns/{run.run_id}"
    entry = site._send("GET", path).json()
    (task,) = site._list(f"{path}/taskInstances", "task_instances")
    queued, begin, end = (_time(text) for text in (entry["queued_at"], task["start_date"], task["end_date"]))
    report = site.xcom(name, run.run_id, f"View_{name}")
    begun, phases = _time(report["begun"]), report["phases"]
    ended = begun + timedelta(seconds=sum(phases.values()))
    lasted = {
        RUN_TO_TASK: begin - queued,
        TASK: end - begin,
        STARTING: begun - begin,
        ENDING: end - ended,
    }
    figures = {f"{name}: {key}": value.total_seconds() for key, value in lasted.items()}
    return figures | {f"{name}: task: {key}": seconds for key, seconds in phases.items()}


def _check_same(wh: Warehouse, number: int) -> None:
    answers = {
        tuple(sorted(tuple(row) for row in wh.query(f"SELECT * FROM View_{name}[{FIRST + number}]").collect()))
        for name in (*CONNECTIONS, "here")
    }
    if len(answers) != 1:
        raise AssertionError(f"The views differ in part {number}.")


def _rows(number: int, count: int) -> list[dict[str, Any]]:
    time = part_start(number)
    return [{"ts": time, "src": index, "dest": index, "loss": 20 if index % 10 == 0 else 1} for index in range(count)]


def _connection(kind: str, **fields: Any) -> str:
    return json.dumps({"conn_type": kind, **fields})


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
