"""An external stream in a real Airflow: the sensor waits for its files, registers them, and finds late ones by looking back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from demo.airflow_site import AirflowSite

pytestmark = pytest.mark.airflow

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
FIRST = 394474  # the part at START

SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import ViewDFTaskGroup

SQL = """
CREATE STREAM lake_E (ts TIMESTAMP ORDERED, k STRING, v INT) PARTITION LENGTH '1 hour'
  LOCATION '@/dt={yyyy-MM-dd}/h={HH}' FORMAT csv COMPLETE WHEN '_SUCCESS';
CREATE VIEW lake_Total AS
  INITIALIZE lake_Total[i] AS SELECT k, SUM(v) AS total FROM lake_E[i] GROUP BY k
  UPDATE lake_Total[j] AS SELECT k, SUM(total) FROM
    (SELECT k, v AS total FROM lake_E[j] UNION ALL SELECT k, total FROM lake_Total[j-1]) GROUP BY k
  PARTITION LENGTH '1 hour'
"""

with DAG(
    "lake",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    catchup=False,
):
    ViewDFTaskGroup("views", SQL, lookback=24, poll_interval=1, timeout=200)
'''


def write(lake: Path, number: int, value: int, name: str = "a.csv", *, is_complete: bool = True) -> None:
    place = lake / "dt=2015-01-01" / f"h={number:02}"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(f"ts,k,v\n2015-01-01 {number:02}:30:00,a,{value}\n")
    if is_complete:
        (place / "_SUCCESS").touch()


def read_totals(warehouse: Path) -> dict[int, Any]:
    """The view's current parts, read from their files without Spark: hour and total."""
    with Warehouse.open(warehouse) as opened:
        versions = opened.changed_since(datetime(1970, 1, 1, tzinfo=UTC), "lake_Total")
    return {
        version.index - FIRST + 10: [
            row["total"] for row in pyarrow.parquet.read_table(warehouse / version.location).to_pylist()
        ]
        for version in versions
    }


def test_the_sensor_waits_registers_and_looks_back(
    airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    airflow_site.add_dag_file("lake.py", SOURCE.replace("@/", f"{lake}/"), "lake")
    airflow_site.unpause("lake")
    write(lake, 10, 1)
    write(lake, 11, 10)
    for number in (0, 1):
        run = airflow_site.trigger("lake", logical_date=START + timedelta(hours=number))
        airflow_site.wait_for_runs("lake", run_ids=[run.run_id])
    assert read_totals(airflow_warehouse) == {10: [1], 11: [11]}

    # The next hour is on its way, and not complete; meanwhile a late file comes for the first one.
    write(lake, 12, 100, is_complete=False)
    run = airflow_site.trigger("lake", logical_date=START + timedelta(hours=2))
    for _ in airflow_site._poll("the sensor to be deferred", 90):
        tasks = {task.task_id: task.state for task in airflow_site.task_instances("lake", run.run_id)}
        if tasks.get("views.lake_E") == "deferred":
            break
    write(lake, 10, 5, "late.csv")
    write(lake, 12, 100)
    airflow_site.wait_for_runs("lake", run_ids=[run.run_id])

    assert read_totals(airflow_warehouse) == {10: [6], 11: [16], 12: [116]}
    with Warehouse.open(airflow_warehouse) as warehouse:
        history = warehouse.version_history("lake_E", START)
        (status,) = warehouse.status("lake_E")
    assert [[item.name for item in version.files] for version in history] == [["a.csv"], ["a.csv", "late.csv"]]
    assert (len(status.parts), status.files) == (3, 4)
    log = airflow_site.log("lake", run.run_id, "views.lake_E")
    assert "lake_E: changed: 2015-01-01T10:00" in log
    view_log = airflow_site.log("lake", run.run_id, "views.lake_Total")
    assert f"new files in lake_E[{FIRST}]" in view_log
