"""Runs and parts of different lengths, and days with a change of the clock, on a real scheduler."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from site_samples import read_parts, states

from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.hooks.runs import find_span
from airflow_provider_viewdf.parts import Partitioning
from demo.airflow_site import AirflowSite

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

SHAPES = '''
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = """
CREATE STREAM shape_M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 'FINE' LATE ROWS QUARANTINE AFTER '1 hour';
CREATE VIEW shape_fine AS SELECT count(*) AS ct, max(x) AS x FROM shape_M;
CREATE VIEW shape_coarse AS
INITIALIZE shape_coarse[i] AS SELECT sum(x) AS x FROM shape_M[i*60 .. i*60+59]
UPDATE shape_coarse[j] AS SELECT sum(x) AS x FROM shape_M[j*60 .. j*60+59]
PARTITION LENGTH 'COARSE'
"""

def measure(start, end):
    length = timedelta(FINE_SECONDS)
    late = {"ts": start - 2 * (end - start), "x": -1}
    return [{"ts": start + k * length, "x": k} for k in range(int((end - start) / length))] + [late]
'''

MINUTES_IN_HOURS = SHAPES.replace("FINE_SECONDS", "seconds=60").replace("FINE", "1 minute").replace(
    "COARSE", "1 hour"
) + (
    """
with DAG("shape_hourly", schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
         start_date=datetime(2015, 1, 1, 10, tzinfo=UTC), end_date=datetime(2015, 1, 1, 10, tzinfo=UTC), catchup=True):
    load = LoadOperator(task_id="load", table="shape_M", source=measure, sql=SQL)
    load >> ViewDFOperator(task_id="fine", view="shape_fine", sql=SQL)

with DAG("shape_minutely", schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
         start_date=datetime(2015, 1, 1, 10, tzinfo=UTC), end_date=datetime(2015, 1, 1, 11, tzinfo=UTC), catchup=False):
    ViewDFOperator(task_id="coarse", view="shape_coarse")
"""
)

BERLIN = '''
from datetime import timedelta
import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = """
CREATE STREAM dst_M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH '1 hour';
CREATE VIEW dst_hours AS
INITIALIZE dst_hours[i] AS SELECT 1 AS hours, x FROM dst_M[i]
UPDATE dst_hours[j] AS SELECT h.hours + 1, m.x FROM dst_M[j] AS m CROSS JOIN dst_hours[j-1] AS h
PARTITION LENGTH '1 hour'
"""

def measure(start, end):
    return [{"ts": start + timedelta(hours=k), "x": k} for k in range(int((end - start) / timedelta(hours=1)))]

def make(name, start, end):
    sql = SQL.replace("dst_", name)
    with DAG(f"{name}berlin", schedule=CronDataIntervalTimetable("0 */6 * * *", timezone="Europe/Berlin"),
             start_date=pendulum.datetime(*start, tz="Europe/Berlin"),
             end_date=pendulum.datetime(*end, tz="Europe/Berlin"), catchup=True) as dag:
        load = LoadOperator(task_id="load", table=f"{name}M", source=measure, sql=sql)
        load >> ViewDFOperator(task_id="hours", view=f"{name}hours", sql=sql)
    return dag

forward = make("forward_", (2015, 3, 29, 0), (2015, 3, 29, 6))
back = make("back_", (2015, 10, 25, 0), (2015, 10, 25, 0))
'''


@pytest.mark.airflow
def test_a_minutely_view_in_an_hourly_dag_and_an_hourly_view_in_a_minutely_dag(
    airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer
) -> None:
    airflow_site.add_dag_file("shapes.py", MINUTES_IN_HOURS, "shape_hourly", "shape_minutely")
    airflow_site.unpause("shape_hourly")
    start = datetime(2015, 1, 1, 10, tzinfo=UTC)
    (hourly,) = airflow_site.wait_for_runs("shape_hourly", logical_dates=[start])
    log = airflow_site.log("shape_hourly", hourly.run_id, "load")
    assert "Late rows: 1 set aside (LATE ROWS QUARANTINE AFTER '1 hour')." in log
    assert read_parts(airflow_warehouse, "shape_fine") == {23668440 + k: [(1, k)] for k in range(60)}

    airflow_site.pause("shape_hourly")
    airflow_site.unpause("shape_minutely")
    runs = [
        airflow_site.trigger("shape_minutely", logical_date=at, data_interval=(at, at + MINUTE))
        for at in (start + 58 * MINUTE, start + 59 * MINUTE)
    ]
    airflow_site.wait_for_runs("shape_minutely", run_ids=[run.run_id for run in runs])
    assert [states(airflow_site, "shape_minutely", run)["coarse"] for run in runs] == ["skipped", "success"]
    assert read_parts(airflow_warehouse, "shape_coarse") == {394474: [(sum(range(60)),)]}


@pytest.mark.airflow
def test_a_change_of_the_clock_neither_leaves_out_an_hour_nor_repeats_one(
    airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer
) -> None:
    airflow_site.add_dag_file("berlin.py", textwrap.dedent(BERLIN), "forward_berlin", "back_berlin")
    for dag_id in ("forward_berlin", "back_berlin"):
        airflow_site.unpause(dag_id)
    # 00:00 and 06:00 in Berlin, on the day when there is no 02:00: the first run is for five hours.
    dates = [datetime(2015, 3, 28, 23, tzinfo=UTC), datetime(2015, 3, 29, 4, tzinfo=UTC)]
    runs = airflow_site.wait_for_runs("forward_berlin", logical_dates=dates)
    assert [run.data_interval_end for run in runs] == [dates[1], datetime(2015, 3, 29, 10, tzinfo=UTC)]
    check_hours(airflow_warehouse, "forward_hours", dates[0], [*range(5), *range(6)])

    # On the day when 02:00 comes twice, it is for seven.
    start = datetime(2015, 10, 24, 22, tzinfo=UTC)
    (run,) = airflow_site.wait_for_runs("back_berlin", logical_dates=[start])
    assert run.data_interval_end == datetime(2015, 10, 25, 5, tzinfo=UTC)
    check_hours(airflow_warehouse, "back_hours", start, list(range(7)))


def check_hours(warehouse: Path, view: str, start: datetime, numbers: list[int]) -> None:
    first = Partitioning(3600).index_at(start)
    assert read_parts(warehouse, view) == {first + number: [(number + 1, x)] for number, x in enumerate(numbers)}


@pytest.mark.parametrize(
    ("start", "hours"),
    [
        pytest.param(datetime(2015, 3, 28, 23, tzinfo=UTC), 23, id="the clock goes forward"),
        pytest.param(datetime(2015, 10, 24, 22, tzinfo=UTC), 25, id="the clock goes back"),
        pytest.param(datetime(2015, 6, 1, 22, tzinfo=UTC), 24, id="an ordinary day"),
    ],
)
def test_a_day_of_berlin_has_as_many_hourly_parts_as_hours(start: datetime, hours: int) -> None:
    parts = find_span(start, start, start + hours * HOUR).parts(Partitioning(3600))
    first = Partitioning(3600).index_at(start)
    assert list(parts) == list(range(first, first + hours))
