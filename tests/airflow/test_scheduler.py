"""One DAG through a real scheduler, in every way in which runs come about: the parts are the same.

The rows are the paper's, and those of a second pair of hosts; they lie in a CSV file per minute, as a feed would leave them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from site_samples import read_parts, states

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from demo.airflow_client import Run
from demo.airflow_site import AirflowSite

pytestmark = pytest.mark.airflow

START = datetime(2015, 1, 1, 10, 0, tzinfo=UTC)
FIRST = 23668440  # the part at START
MINUTE = timedelta(minutes=1)
LOSSES = {
    "10.0.0.1": [6, 12, 15, 24, 20, 16, 7, 3],
    "10.0.0.2": [11, 11, 4, 30, 31, 32, 33, 34],
}
MINUTES = len(LOSSES["10.0.0.1"])
LATE = (2, "10.0.0.1")

SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = """
CREATE STREAM @M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW @Helper AS
INITIALIZE @Helper[i] AS
  SELECT src, dest, 1 AS ct, CAST(loss AS BIGINT) AS sum_loss FROM @M[i] WHERE loss > 10
UPDATE @Helper[j] AS
  SELECT New.src, New.dest, COALESCE(Prev.ct, 0) + 1, COALESCE(Prev.sum_loss, 0) + New.loss
  FROM @M[{{ j }}] AS New
  LEFT OUTER JOIN @Helper[{{ j - 1 }}] AS Prev ON New.src = Prev.src AND New.dest = Prev.dest
  WHERE New.loss > 10
PARTITION LENGTH 60;
CREATE VIEW @View2 AS SELECT src, dest, ct, sum_loss FROM @Helper WHERE ct >= {{ W }};
CREATE VIEW @View3 AS
INITIALIZE @View3[i] AS SELECT src, SUM(loss) AS sum_loss FROM @M[i*4 .. i*4+3] GROUP BY src
UPDATE @View3[j] AS SELECT src, SUM(loss) AS sum_loss FROM @M[j*4 .. j*4+3] GROUP BY src
PARTITION LENGTH '4 minutes'
"""

with DAG(
    "@monitor",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, 0, tzinfo=UTC),
    end_date=datetime(2015, 1, 1, 10, 7, tzinfo=UTC),
    catchup=CATCHUP,
    params={"W": 4},
):
    load = LoadOperator(
        task_id="load_M", table="@M", source="@in/{{ data_interval_start | ts_nodash }}.csv", sql=SQL
    )
    helper = ViewDFOperator(task_id="Helper", view="@Helper", sql=SQL)
    view2 = ViewDFOperator(task_id="@View2", sql=SQL)
    view3 = ViewDFOperator(task_id="View3", view="@View3", sql=SQL)
    load >> helper >> view2
    load >> view3
'''

WAITING = """
from datetime import UTC, datetime
from airflow.sdk import DAG
from airflow_provider_viewdf import PartitionSensor, ViewDFOperator

with DAG("waiting", schedule=None, start_date=datetime(2015, 1, 1, 10, 0, tzinfo=UTC), params={"seconds": 4}):
    PartitionSensor(task_id="sensor", table="s_M", timeout=SECONDS, poke_interval=1)
    ViewDFOperator(task_id="view", view="s_Helper", timeout=SECONDS, poll_interval=1, deferrable=True)
    ViewDFOperator(task_id="polling", view="s_Helper", timeout=SECONDS, poll_interval=1, deferrable=False)
"""


def write_rows(directory: Path, minutes: range, *, without: tuple[int, str] | None = None) -> None:
    directory.mkdir(exist_ok=True)
    for minute in minutes:
        at = START + minute * MINUTE
        rows = [
            f"{at + timedelta(seconds=7):%Y-%m-%d %H:%M:%S},{src},10.0.0.9,{losses[minute]}"
            for src, losses in LOSSES.items()
            if (minute, src) != without
        ]
        (directory / f"{at:%Y%m%dT%H%M%S}.csv").write_text("\n".join(["ts,src,dest,loss", *rows]) + "\n")


def compute_expected(*, without: tuple[int, str] | None = None) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    """The views from scratch, in plain Python."""
    helper: dict[int, list[tuple[Any, ...]]] = {}
    runs: dict[str, tuple[int, int]] = {}
    sums: dict[int, dict[str, int]] = {}
    for minute in range(MINUTES):
        rows = {src: losses[minute] for src, losses in LOSSES.items() if (minute, src) != without}
        runs = {
            src: (runs.get(src, (0, 0))[0] + 1, runs.get(src, (0, 0))[1] + loss)
            for src, loss in rows.items()
            if loss > 10
        }
        helper[FIRST + minute] = sorted((src, "10.0.0.9", ct, total) for src, (ct, total) in runs.items())
        part = sums.setdefault((FIRST + minute) // 4, {})
        for src, loss in rows.items():
            part[src] = part.get(src, 0) + loss
    return {
        "Helper": helper,
        "View2": {index: [row for row in rows if row[2] >= 4] for index, rows in helper.items()},
        "View3": {index: sorted(totals.items()) for index, totals in sums.items()},
    }


def read_views(warehouse: Path, prefix: str) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    return {view: read_parts(warehouse, f"{prefix}{view}") for view in ("Helper", "View2", "View3")}


@pytest.fixture(scope="module")
def add_monitor(airflow_site: AirflowSite, connect_server: ConnectServer) -> Callable[[str, bool], str]:
    def add(prefix: str, catchup: bool) -> str:
        source = SOURCE.replace("@", prefix).replace("CATCHUP", str(catchup))
        airflow_site.add_dag_file(f"{prefix}monitor.py", source, f"{prefix}monitor")
        return f"{prefix}monitor"

    return add


@pytest.fixture(scope="module")
def scheduled(airflow_site: AirflowSite, add_monitor: Callable[[str, bool], str]) -> Mapping[int, Run]:
    """The runs by minute of a DAG that the scheduler has caught up with, while one row was still on its way."""
    write_rows(airflow_site.dags / "s_in", range(MINUTES), without=LATE)
    dag_id = add_monitor("s_", True)
    airflow_site.unpause(dag_id)
    dates = [START + minute * MINUTE for minute in range(MINUTES)]
    runs = airflow_site.wait_for_runs(dag_id, logical_dates=dates)
    return {(run.logical_date - START) // MINUTE: run for run in runs if run.logical_date is not None}


def test_scheduled_runs_compute_each_part_once(
    airflow_site: AirflowSite, airflow_warehouse: Path, scheduled: Mapping[int, Run]
) -> None:
    assert read_views(airflow_warehouse, "s_") == compute_expected(without=LATE)
    assert {run.run_type for run in scheduled.values()} == {"scheduled"}
    assert states(airflow_site, "s_monitor", scheduled[1]) == {
        "load_M": "success",
        "Helper": "success",
        "s_View2": "success",
        "View3": "skipped",
    }
    assert states(airflow_site, "s_monitor", scheduled[3])["View3"] == "success"


def test_a_task_shows_its_sql_its_story_and_its_report(airflow_site: AirflowSite, scheduled: Mapping[int, Run]) -> None:
    run_id = scheduled[4].run_id

    sql = airflow_site.rendered_fields("s_monitor", run_id, "Helper")["sql"]
    assert sql.startswith("-- s_Helper[23668444] (2015-01-01T10:04), UPDATE\nSELECT\n")
    assert "FROM s_M_23668444 AS New" in sql
    assert "s_Helper_23668443 AS Prev" in sql

    report = airflow_site.xcom("s_monitor", run_id, "Helper")
    assert set(report) == {"parts", "published", "kept", "skipped", "blocked", "rows", "seconds"}
    load = airflow_site.xcom("s_monitor", run_id, "load_M")
    assert (load["table"], load["batch_id"], load["rows"], load["covers"]) == (
        "s_M",
        "s_monitor/load_M/2015-01-01T10:04",
        2,
        "23668444",
    )
    log = airflow_site.log("s_monitor", run_id, "Helper")
    assert "This run (2015-01-01T10:04 to 2015-01-01T10:05) is for s_Helper[23668444] (2015-01-01T10:04)" in log


def test_a_run_that_does_not_complete_the_part_is_skipped_with_the_reason(
    airflow_site: AirflowSite, scheduled: Mapping[int, Run]
) -> None:
    log = airflow_site.log("s_monitor", scheduled[1].run_id, "View3")

    assert (
        "s_View3[5917110] (2015-01-01T10:00) ends at 2015-01-01T10:04, which is not in this run's span, "
        "2015-01-01T10:01 to 2015-01-01T10:02."
    ) in log


def test_published_parts_are_events_of_the_views_asset(
    airflow_site: AirflowSite, airflow_warehouse: Path, scheduled: Mapping[int, Run]
) -> None:
    events = airflow_site._list("/assets/events", "asset_events", source_dag_id="s_monitor", limit=100)
    helper = [event for event in events if event["name"] == "s_Helper"]

    assert {event["partition_key"] for event in helper} == {f"2015-01-01T10:{minute:02}" for minute in range(MINUTES)}
    assert all(event["extra"]["changed"] for event in helper)
    # An empty part is published too, but a run that publishes nothing is no event.
    assert {event["partition_key"] for event in events if event["name"] == "s_View3"} == {
        "2015-01-01T10:00",
        "2015-01-01T10:04",
    }


def test_clearing_a_past_run_after_late_rows_heals_every_later_part(
    airflow_site: AirflowSite, airflow_warehouse: Path, scheduled: Mapping[int, Run]
) -> None:
    write_rows(airflow_site.dags / "s_in", range(2, 3))

    airflow_site.clear("s_monitor", scheduled[2].run_id, ["load_M"], downstream=True)
    airflow_site.wait_for_runs("s_monitor", run_ids=[scheduled[2].run_id])

    assert read_views(airflow_warehouse, "s_") == compute_expected()
    view2 = read_parts(airflow_warehouse, "s_View2")
    assert view2[FIRST + 4][0][2:] == (4, 71)
    assert view2[FIRST + 5][0][2:] == (5, 87)
    assert [row for row in view2[FIRST + 6] if row[0] == "10.0.0.1"] == []


def test_a_backfill_of_four_runs_at_a_time_gives_the_same_parts(
    airflow_site: AirflowSite, airflow_warehouse: Path, add_monitor: Callable[[str, bool], str]
) -> None:
    write_rows(airflow_site.dags / "b_in", range(MINUTES))
    dag_id = add_monitor("b_", False)
    airflow_site.unpause(dag_id)

    backfill = airflow_site.backfill(dag_id, START, START + (MINUTES - 1) * MINUTE, max_active_runs=4)
    runs = airflow_site.wait_for_backfill(backfill)

    assert {run.run_type for run in runs} == {"backfill"}
    assert read_views(airflow_warehouse, "b_") == compute_expected()


def test_missing_inputs_are_waited_for_and_then_listed(
    airflow_site: AirflowSite, airflow_warehouse: Path, scheduled: Mapping[int, Run]
) -> None:
    airflow_site.add_dag_file("waiting.py", WAITING.replace("SECONDS", "4"), "waiting")
    airflow_site.unpause("waiting")
    run = airflow_site.trigger("waiting", logical_date=START + 9 * MINUTE)
    airflow_site.wait_for_runs("waiting", run_ids=[run.run_id], allow_failed=True)

    assert states(airflow_site, "waiting", run) == {"sensor": "failed", "view": "failed", "polling": "failed"}
    remedy = "Load it, or declare it empty: viewdf declare-empty s_M --at 2015-01-01T10:0"
    sensor = airflow_site.log("waiting", run.run_id, "sensor")
    assert "Task sensor waited 4 seconds in vain for s_M[23668449] (2015-01-01T10:09). " + remedy + "9" in sensor
    for task_id in ("view", "polling"):
        log = airflow_site.log("waiting", run.run_id, task_id)
        assert "s_Helper[23668449] (2015-01-01T10:09) waited " in log
        assert " in vain for s_M[23668448 .. 23668449] (2015-01-01T10:08 .. 2015-01-01T10:09). " + remedy + "8" in log


def test_a_deferred_task_goes_on_when_its_inputs_arrive(
    airflow_site: AirflowSite, airflow_warehouse: Path, scheduled: Mapping[int, Run]
) -> None:
    airflow_site.add_dag_file("waiting.py", WAITING.replace("SECONDS", "120"), "waiting")
    airflow_site.unpause("waiting")
    run = airflow_site.trigger("waiting", logical_date=START + 8 * MINUTE)
    for _ in airflow_site._poll("both tasks to be deferred", 90):
        found = states(airflow_site, "waiting", run)
        if found.get("sensor") == found.get("view") == "deferred":
            break
    with Warehouse.open(airflow_warehouse) as warehouse:
        warehouse.declare_empty("s_M", START + 8 * MINUTE, "the feed was down")
    airflow_site.wait_for_runs("waiting", run_ids=[run.run_id])

    assert read_parts(airflow_warehouse, "s_Helper")[FIRST + 8] == []


def test_a_run_without_a_date_needs_to_be_told_the_part(
    airflow_site: AirflowSite, scheduled: Mapping[int, Run]
) -> None:
    source = textwrap.dedent(
        """
        from airflow.sdk import DAG
        from airflow_provider_viewdf import ViewDFOperator

        with DAG("undated", schedule=None):
            ViewDFOperator(task_id="view", view="s_Helper")
        """
    )
    airflow_site.add_dag_file("undated.py", source, "undated")
    airflow_site.unpause("undated")
    told = airflow_site.trigger("undated", conf={"at": "2015-01-01T10:03"})
    untold = airflow_site.trigger("undated")
    airflow_site.wait_for_runs("undated", run_ids=[told.run_id, untold.run_id], allow_failed=True)

    assert states(airflow_site, "undated", told) == {"view": "success"}
    assert states(airflow_site, "undated", untold) == {"view": "failed"}
    log = airflow_site.log("undated", untold.run_id, "view")
    assert "This run has no logical date and no partition date, so it names no part; " in log
