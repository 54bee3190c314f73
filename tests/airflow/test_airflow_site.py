from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from postgres import PostgresServer

from demo.airflow_client import AirflowSiteError, Run
from demo.airflow_site import AirflowSite

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(240)]

START = datetime(2015, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

DAG_FILE = """
from datetime import datetime, timezone
from airflow.sdk import dag, task
from airflow.timetables.interval import CronDataIntervalTimetable

@dag(
    dag_id="{dag_id}",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, tzinfo=timezone.utc),
    end_date=datetime(2015, 1, 1, 0, 30, tzinfo=timezone.utc),
)
def tiny():
    @task
    def first(ti, logical_date):
        print("this is", logical_date)
        return {{"at": logical_date.isoformat(), "try": ti.try_number, "numbers": [1, 2.5, None]}}

    @task.bash
    def second():
        return "echo {{{{ logical_date.minute }}}}"

    first() >> second()

tiny()
"""


def test_backfill_runs_every_minute_and_a_cleared_run_runs_again(airflow_site: AirflowSite) -> None:
    airflow_site.add_dag_file("tiny.py", DAG_FILE.format(dag_id="tiny"), "tiny")
    airflow_site.unpause("tiny")
    seen: list[list[str]] = []

    def note(runs: list[Run]) -> None:
        seen.append([run.state for run in runs])

    backfill = airflow_site.backfill("tiny", START, START + 3 * MINUTE, max_active_runs=4)
    assert backfill.logical_dates == tuple(START + n * MINUTE for n in range(4))
    runs = airflow_site.wait_for_backfill(backfill, on_progress=note)

    assert [(run.logical_date, run.data_interval_end, run.run_type, run.state) for run in runs] == [
        (START + n * MINUTE, START + (n + 1) * MINUTE, "backfill", "success") for n in range(4)
    ]
    assert seen[-1] == ["success"] * 4
    assert ["running"] * 4 in seen, "all four were active at once"

    second_run = runs[1].run_id
    first_value = {"at": "2015-01-01T00:01:00+00:00", "try": 1, "numbers": [1, 2.5, None]}
    assert airflow_site.xcom("tiny", second_run, "first") == first_value
    assert airflow_site.rendered_fields("tiny", second_run, "second")["bash_command"] == "echo 1"

    assert airflow_site.clear("tiny", second_run, ["first"], downstream=True) == [
        (second_run, "first"),
        (second_run, "second"),
    ]
    airflow_site.wait_for_runs("tiny", run_ids=[second_run])
    assert airflow_site.xcom("tiny", second_run, "first") == {**first_value, "try": 2}
    tries = {run.run_id: [t.try_number for t in airflow_site.task_instances("tiny", run.run_id)] for run in runs}
    assert tries == {run.run_id: [2, 2] if run.run_id == second_run else [1, 1] for run in runs}
    for try_number in (1, 2):
        assert "this is 2015-01-01 00:01:00+00:00" in airflow_site.log("tiny", second_run, "first", try_number)

    cleared = airflow_site.clear("tiny", runs[2].run_id, ["second"], future=True)
    assert cleared == [(runs[2].run_id, "second"), (runs[3].run_id, "second")]
    airflow_site.wait_for_runs("tiny")

    # Airflow has not called the first backfill complete yet: the second has to wait for that.
    again = airflow_site.backfill("tiny", START, START + MINUTE, reprocess="completed")
    airflow_site.wait_for_backfill(again)
    assert [t.try_number for t in airflow_site.task_instances("tiny", runs[0].run_id)] == [2, 2]


def test_trigger_with_an_interval_runs_that_interval(airflow_site: AirflowSite) -> None:
    airflow_site.add_dag_file("by_hand.py", DAG_FILE.format(dag_id="by_hand"), "by_hand")
    airflow_site.unpause("by_hand")
    at = START + 7 * MINUTE
    run = airflow_site.trigger("by_hand", logical_date=at, data_interval=(at, at + MINUTE))
    (done,) = airflow_site.wait_for_runs("by_hand", run_ids=[run.run_id])
    assert (done.logical_date, done.data_interval_start, done.data_interval_end) == (at, at, at + MINUTE)
    assert airflow_site.xcom("by_hand", run.run_id, "first")["at"] == "2015-01-01T00:07:00+00:00"


def test_changed_dag_file_is_seen_and_a_failing_task_ends_in_its_log(airflow_site: AirflowSite) -> None:
    source = DAG_FILE.format(dag_id="failing")
    airflow_site.add_dag_file("failing.py", source, "failing")
    airflow_site.add_dag_file(
        "failing.py", source.replace('print("this is",', 'raise ValueError("no luck",'), "failing"
    )
    airflow_site.unpause("failing")
    backfill = airflow_site.backfill("failing", START, START)
    with pytest.raises(AirflowSiteError) as raised:
        airflow_site.wait_for_backfill(backfill)
    message = str(raised.value)
    assert message.startswith(
        "Run backfill__2015-01-01T00:01:00+00:00 of failing failed (first). The log of first ends with:\n"
    )
    assert "ValueError: ('no luck', DateTime(2015, 1, 1, 0, 0, 0" in message


def test_dag_file_with_an_error_is_reported_at_once(airflow_site: AirflowSite) -> None:
    file = airflow_site.dags / "broken.py"
    try:
        with pytest.raises(AirflowSiteError) as raised:
            airflow_site.add_dag_file("broken.py", "from airflow.sdk import DAG\nDAG(1 / 0)\n", "broken")
        assert str(raised.value).startswith("Airflow cannot read broken.py:\n")
        assert str(raised.value).endswith("ZeroDivisionError: division by zero")
        assert [failure.file for failure in airflow_site.import_errors()] == ["broken.py"]
    finally:
        file.unlink()


def test_wait_that_is_too_long_names_the_runs_and_the_logs(airflow_site: AirflowSite) -> None:
    airflow_site.add_dag_file("paused.py", DAG_FILE.format(dag_id="paused"), "paused")
    run = airflow_site.trigger("paused", logical_date=START)
    with pytest.raises(AirflowSiteError) as raised:
        airflow_site.wait_for_runs("paused", timeout_seconds=0)
    message = str(raised.value)
    assert message.startswith(
        f"Waited 0 seconds for the runs of paused to end.\n  {run.run_id} is queued (first None, second None)\n"
        f"The log of api-server, {airflow_site.log_file('api-server')}, ends with:\n"
    )


def test_what_airflow_refuses_is_an_error_with_its_answer(airflow_site: AirflowSite) -> None:
    with pytest.raises(AirflowSiteError, match=re.escape("Airflow answered PATCH /dags/nobody with 404: ")):
        airflow_site.unpause("nobody")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_while_it_starts_leaves_no_process(number: signal.Signals, code: int, tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from demo.airflow_site import AirflowSite
home = Path({str(tmp_path)!r})
with AirflowSite(home, home / "dags", on_progress=lambda message: print(message, flush=True)):
    print("healthy", flush=True)
"""
    with start_python(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "creating Airflow's database\n"
        assert process.stdout.readline() == "starting Airflow's API server, scheduler, DAG processor and triggerer\n"
        process.send_signal(number)
        assert process.wait(60) == code
        assert "healthy" not in process.stdout.read()
    assert list_processes(tmp_path) == []


def test_ctrl_c_while_a_task_runs_leaves_no_process(tmp_path: Path) -> None:
    source = DAG_FILE.format(dag_id="long").replace(
        'print("this is",', 'print("now"); __import__("time").sleep(600); print('
    )
    program = f"""
from datetime import datetime, UTC
from pathlib import Path
from demo.airflow_site import AirflowSite
home = Path({str(tmp_path)!r})
with AirflowSite(home, home / "dags") as site:
    site.add_dag_file("long.py", {source!r}, "long")
    site.unpause("long")
    run = site.trigger("long", logical_date=datetime(2015, 1, 1, tzinfo=UTC))
    for _ in site._poll("the task to run", 60):
        if any(task.state == "running" for task in site.task_instances("long", run.run_id)):
            break
    print("running", flush=True)
    site.wait_for_runs("long")
"""
    with start_python(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert len(list_processes(tmp_path)) >= 8, "four components, two workers, the task, the trigger runner"
        # Impatient people press it twice.
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
    assert list_processes(tmp_path) == []


def test_component_that_dies_ends_the_wait_with_its_log(tmp_path: Path) -> None:
    with AirflowSite(tmp_path, tmp_path / "dags") as site:
        scheduler = site._processes["scheduler"]
        os.killpg(scheduler.pid, signal.SIGKILL)
        scheduler.wait()
        with pytest.raises(AirflowSiteError) as raised:
            site.wait_until_parsed("anything")
        assert str(raised.value).startswith(
            "Airflow's scheduler ended with exit code -9.\n"
            f"The log of scheduler, {site.log_file('scheduler')}, ends with:\n"
        )
    assert list_processes(tmp_path) == []
    with pytest.raises(AirflowSiteError, match=re.escape("This Airflow is not running: start it first.")):
        site.runs("anything")


def test_database_that_cannot_be_reached_is_said_with_the_log(tmp_path: Path) -> None:
    nowhere = "postgresql+psycopg2://nobody@127.0.0.1:1/nothing"
    with pytest.raises(AirflowSiteError) as raised, AirflowSite(tmp_path, tmp_path / "dags", metadata_url=nowhere):
        pass
    assert str(raised.value).startswith("`airflow db migrate` failed with exit code 1.\nThe log of migrate, ")
    assert "onnection refused" in str(raised.value)
    assert list_processes(tmp_path) == []


def test_site_on_postgresql_starts_a_second_time_with_what_it_knew(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = postgres_server.create_database()
    with AirflowSite(tmp_path, tmp_path / "dags", metadata_url=url) as site:
        site.add_dag_file("tiny.py", DAG_FILE.format(dag_id="tiny"), "tiny")
        site.unpause("tiny")
        runs = site.wait_for_backfill(site.backfill("tiny", START, START + 3 * MINUTE))
    with AirflowSite(tmp_path, tmp_path / "dags", metadata_url=url) as site:
        assert site.runs("tiny") == runs


@contextmanager
def start_python(program: str) -> Iterator[subprocess.Popen[str]]:
    project = Path(__file__).parents[2]
    # Tests that run in the background of a shell, or by nohup, inherit that signals are ignored.
    heeding = "import signal\nfor number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):\n    "
    heeding += "signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", heeding + program], stdout=subprocess.PIPE, text=True, cwd=project
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def list_processes(home: Path) -> list[str]:
    """Every process at work in this Airflow's home, wherever it hangs in the tree of processes.

    Not by the environment: Airflow writes titles over it.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except psutil.Error:
            continue
    return found
