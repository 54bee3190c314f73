"""A real scheduler: late rows in the log of a load, the plan in the log of a view, and a definition that changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.sdk import DAG

from airflow_provider_viewdf import LoadOperator, ViewDFOperator, ViewDFTaskGroup, Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.errors import TimeFormatError, UsageError
from airflow_provider_viewdf.versions import LateCount
from demo.airflow_client import Run
from demo.airflow_site import AirflowSite

START = datetime(2015, 1, 1, 10, 0, tzinfo=UTC)
FIRST = 23668440

SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG
from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = """
CREATE STREAM c_M (ts TIMESTAMP ORDERED, loss INT) PARTITION LENGTH 60 LATE ROWS IGNORE AFTER '1 hour';
CREATE VIEW c_V AS SELECT loss FROM c_M WHERE loss > LIMIT
"""

def rows(start):
    # Each run finds a row that is two hours late.
    from datetime import timedelta
    return [{"ts": start, "loss": 5}, {"ts": start, "loss": 15}, {"ts": start - timedelta(hours=2), "loss": 1}]

with DAG("c_changes", schedule=None, start_date=datetime(2015, 1, 1, tzinfo=UTC)):
    load = LoadOperator(task_id="load", table="c_M", source=rows, sql=SQL, CHOICE)
    load >> ViewDFOperator(task_id="c_V", sql=SQL, CHOICE)
'''


def add_dag(site: AirflowSite, limit: int, choice: str) -> None:
    source = SOURCE.replace("LIMIT", str(limit)).replace("CHOICE", choice)
    site.add_dag_file("c_changes.py", source, "c_changes")


def run_minute(site: AirflowSite, number: int, *, allow_failed: bool = False) -> Run:
    run = site.trigger("c_changes", logical_date=START + timedelta(minutes=number))
    site.wait_for_runs("c_changes", run_ids=[run.run_id], allow_failed=allow_failed)
    return run


@pytest.mark.airflow
def test_late_rows_plans_and_changed_definitions_are_told_in_the_logs(
    airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer
) -> None:
    add_dag(airflow_site, 10, 'changed="refuse"')
    airflow_site.unpause("c_changes")
    first = run_minute(airflow_site, 0)
    log = airflow_site.log("c_changes", first.run_id, "load")
    assert "Late rows: 1 ignored (LATE ROWS IGNORE AFTER '1 hour')." in log
    assert airflow_site.xcom("c_changes", first.run_id, "load")["late"] == {
        "taken": 0,
        "quarantined": 0,
        "ignored": 1,
    }
    log = airflow_site.log("c_changes", first.run_id, "c_V")
    assert "The plan is to compute at most" in log
    assert f"c_V[{FIRST}]  2015-01-01T10:00  UPDATE  because new" in log

    add_dag(airflow_site, 3, 'changed="refuse"')
    refused = run_minute(airflow_site, 1, allow_failed=True)
    log = airflow_site.log("c_changes", refused.run_id, "load")
    assert "c_V is already defined differently and has parts; nothing was changed. Choose: restate, with" in log

    add_dag(airflow_site, 3, 'changed="restate", restate_from="2015-01-01T10:00"')
    restated = run_minute(airflow_site, 2)
    log = airflow_site.log("c_changes", restated.run_id, "load")
    assert f"c_V[{FIRST}], 1 part, because definition changed  (2015-01-01T10:00)" in log
    with Warehouse.open(airflow_warehouse) as warehouse:
        assert warehouse.status("c_M")[0].late == LateCount(ignored=2)
        [status] = warehouse.status("c_V")
        # The first part by the new definition; the minute between them was never loaded.
        assert (str(status.parts), status.rows, str(status.earlier_definition)) == (f"{FIRST}, {FIRST + 2}", 4, "")


def test_choices_are_checked_when_the_dag_is_parsed_and_handed_on_by_a_group() -> None:
    script = "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60; CREATE VIEW V AS SELECT x FROM M"
    with DAG("choices", schedule=None, start_date=START) as dag:
        ViewDFTaskGroup("group", sql=script, changed="restate", restate_from="2015-01-01T10:00")
        with pytest.raises(UsageError) as unknown:
            ViewDFOperator(task_id="a", sql=script, changed="rename")  # type: ignore[arg-type]
        with pytest.raises(UsageError) as alone:
            LoadOperator(task_id="b", table="M", source="x.csv", restate_from=START)
        with pytest.raises(TimeFormatError):
            ViewDFOperator(task_id="c", sql=script, changed="restate", restate_from="yesterday")
    view = dag.get_task("group.V")
    assert isinstance(view, ViewDFOperator)
    assert (view.changed, view.restate_from) == ("restate", "2015-01-01T10:00")
    assert str(unknown.value) == """changed of task a must be "refuse", "restate" or "forward", not 'rename'."""
    assert str(alone.value) == """restate_from of task b goes with changed="restate", not with 'refuse'."""
