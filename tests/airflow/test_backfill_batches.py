"""A backfill on a real scheduler: the first task to come does the work of many runs, and the others find theirs done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from demo.airflow_site import AirflowSite

pytestmark = pytest.mark.airflow

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIRST = 23668440

SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import ViewDFOperator

SQL = """
CREATE STREAM bb_S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW bb_V AS SELECT x FROM bb_S;
CREATE VIEW bb_W AS SELECT x + 1 AS x FROM bb_S;
"""

with DAG(
    "bb_backfilled",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    ViewDFOperator(task_id="bb_V", sql=SQL, batch_limit=100)
    ViewDFOperator(task_id="bb_W", sql=SQL, late_data="leave")
'''
SQL = SOURCE.split('"""')[1]


def test_the_first_task_of_a_backfill_does_the_work_that_is_there(
    airflow_site: AirflowSite, connect_server: ConnectServer, airflow_warehouse: Path
) -> None:
    minutes = 5
    with Warehouse.open(airflow_warehouse, remote=connect_server.url) as warehouse:
        warehouse.apply(SQL, start=START)
        # One more than the backfill has runs: no run is for that.
        rows = [{"ts": START + number * MINUTE, "x": number} for number in range(minutes + 1)]
        warehouse.load("bb_S", rows, covers=(START, START + (minutes + 1) * MINUTE))
    airflow_site.add_dag_file("bb_backfilled.py", SOURCE, "bb_backfilled")
    airflow_site.unpause("bb_backfilled")
    backfill = airflow_site.backfill("bb_backfilled", START, START + (minutes - 1) * MINUTE, max_active_runs=1)
    runs = airflow_site.wait_for_backfill(backfill)
    assert [run.state for run in runs] == ["success"] * minutes
    with Warehouse.open(airflow_warehouse) as warehouse:
        made = {
            name: {item.index - FIRST: item.produced_by for item in warehouse.changed_since(START, name)}
            for name in ("bb_V", "bb_W")
        }
    assert sorted(made["bb_V"]) == list(range(minutes))
    assert len(set(made["bb_V"].values())) == 1
    assert sorted(made["bb_W"]) == list(range(minutes))
    assert len(set(made["bb_W"].values())) == minutes
    working = [
        run.run_id
        for run in runs
        if "Working with a Spark Connect server" in airflow_site.log("bb_backfilled", run.run_id, "bb_V")
    ]
    assert len(working) == 1
