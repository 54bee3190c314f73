"""A script as tasks: which tasks there are, in which order, and what of it Airflow gets to see."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, CronDataIntervalTimetable

from airflow_provider_viewdf import LoadOperator, PartitionSensor, ViewDFOperator, ViewDFTaskGroup
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.task_groups.viewdf import find_edges

SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60;
CREATE STREAM N (ts TIMESTAMP ORDERED, src STRING, delay INT) PARTITION LENGTH 60;
CREATE TABLE Hosts (src STRING, owner STRING) LOCATION 'hosts.csv' FORMAT csv;
CREATE VIEW Total AS
INITIALIZE Total[i] AS SELECT src, loss FROM M[i]
UPDATE Total[j] AS SELECT n.src, n.loss + p.loss FROM M[{{ j }}] n JOIN Total[{{ j - W }}] p ON n.src = p.src
PARTITION LENGTH 60;
CREATE VIEW Joined AS SELECT t.src, t.loss, n.delay, h.owner FROM Total t JOIN N n ON t.src = n.src JOIN Hosts h ON h.src = t.src
"""


def make_dag(**arguments: Any) -> DAG:
    schedule = CronDataIntervalTimetable("* * * * *", timezone="UTC")
    return DAG("monitor", schedule=schedule, start_date=datetime(2015, 1, 1, tzinfo=UTC), **arguments)


def test_streams_become_sensors_and_views_become_operators_wired_as_they_read() -> None:
    with make_dag(params={"W": 1}) as dag:
        load = LoadOperator(task_id="load_M", table="M", source="in.csv")
        load >> ViewDFTaskGroup("network", sql=SCRIPT)

    kinds = {task.task_id: type(task) for task in dag.tasks}
    assert kinds == {
        "load_M": LoadOperator,
        "network.M": PartitionSensor,
        "network.N": PartitionSensor,
        "network.Total": ViewDFOperator,
        "network.Joined": ViewDFOperator,
    }
    assert {task.task_id: task.upstream_task_ids for task in dag.tasks} == {
        "load_M": set(),
        "network.M": {"load_M"},
        "network.N": {"load_M"},
        "network.Total": {"network.M"},
        "network.Joined": {"network.Total", "network.N"},
    }


def test_a_view_that_has_no_task_of_its_own_is_looked_through() -> None:
    definitions = parse_script(SCRIPT.replace("{{ j }}", "j").replace("{{ j - W }}", "j-1"))

    assert find_edges(definitions, ["m", "n", "joined"]) == [("joined", ["m", "n"])]


def test_the_script_may_be_a_file_on_the_search_path(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(SCRIPT)

    with make_dag(template_searchpath=[str(tmp_path)]) as dag:
        ViewDFTaskGroup("network", sql="views.sql", params={"W": 2}, late_data="rerun", incomplete="skip", offset=-1)

    total = dag.get_task("network.Total")
    assert isinstance(total, ViewDFOperator)
    assert (total.late_data, total.incomplete, total.offset) == ("rerun", "skip", -1)
    assert total.params.dump() == {"W": 2}


def test_a_script_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with make_dag(template_searchpath=[str(tmp_path)]) as dag, pytest.raises(UsageError) as error:
        ViewDFTaskGroup("network", sql="views.sql")

    assert str(error.value) == f"There is no file views.sql in {dag.folder}, {tmp_path}."


def test_a_script_that_needs_the_dates_of_a_run_is_refused() -> None:
    with make_dag(), pytest.raises(UsageError) as error:
        ViewDFTaskGroup("network", sql="CREATE VIEW V AS SELECT '{{ ds }}' AS d FROM M")

    assert str(error.value) == (
        "The script of a task group is read when the DAG is parsed, so it can use i, j and params only: 'ds' is undefined."
    )


def test_arguments_that_make_no_sense_are_refused_when_the_dag_is_parsed() -> None:
    with make_dag():
        with pytest.raises(UsageError) as late:
            ViewDFOperator(task_id="V", view="V", late_data="ignore")  # type: ignore[arg-type]
        with pytest.raises(UsageError) as incomplete:
            ViewDFOperator(task_id="V3", view="V", incomplete="fail")  # type: ignore[arg-type]
        with pytest.raises(UsageError) as neither:
            ViewDFOperator(task_id="V2")
        with pytest.raises(UsageError) as on_error:
            LoadOperator(task_id="L", table="M", source="x", on_error="skip")  # type: ignore[arg-type]

    assert str(late.value) == 'late_data of task V must be "refresh", "rerun" or "leave", not \'ignore\'.'
    assert str(incomplete.value) == 'incomplete of task V3 must be "wait" or "skip", not \'fail\'.'
    assert str(neither.value) == "Task V2 says neither sql=... nor view=...; give it at least one of them."
    assert str(on_error.value) == 'on_error of task L must be "reject" or "quarantine", not \'skip\'.'


def test_the_rendered_tab_shows_one_part_and_the_definition_stays_the_same_for_every_part() -> None:
    with make_dag(params={"W": 1}) as dag:
        ViewDFTaskGroup("network", sql=SCRIPT)
    shown, applied = [], []
    for minute in (4, 5):
        task = dag.get_task("network.Total").prepare_for_execution()
        assert isinstance(task, ViewDFOperator)
        at = datetime(2015, 1, 1, 10, minute, tzinfo=UTC)
        task.render_template_fields({"logical_date": at, "params": {"W": 1}})  # type: ignore[typeddict-item]
        shown.append(task.sql or "")
        applied.append(task._definition_sql)

    assert applied[0] == applied[1]
    assert shown[0].splitlines()[0] == "-- Total[23668444] (2015-01-01T10:04), UPDATE"
    assert "Total_23668443" in shown[0]
    assert "Total_23668444" in shown[1]


def test_a_script_that_cannot_be_resolved_is_shown_as_it_is() -> None:
    with make_dag():
        task = ViewDFOperator(task_id="V", sql="CREATE VEW V AS SELECT {{ j }}")

    task.render_template_fields({"logical_date": datetime(2015, 1, 1, tzinfo=UTC)})  # type: ignore[typeddict-item]

    assert task.sql == "CREATE VEW V AS SELECT __part__"


def test_airflow_can_serialize_the_group() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    with make_dag(params={"W": 1}) as dag:
        ViewDFTaskGroup("network", sql=SCRIPT)

    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert {task.task_id for task in again.tasks} == {task.task_id for task in dag.tasks}


def test_only_rows_and_paths_that_are_meant_reach_the_warehouse() -> None:
    from airflow_provider_viewdf.operators.load import call_with_accepted, place_paths

    assert place_paths("in/a.csv", "/dags") == "/dags/in/a.csv"
    assert place_paths(["/abs/a.csv", "s3://bucket/b.csv"], "/dags") == ["/abs/a.csv", "s3://bucket/b.csv"]
    assert call_with_accepted(lambda start: [start], {"start": 1, "end": 2}) == [1]
    assert call_with_accepted(lambda **values: sorted(values), {"start": 1, "end": 2}) == ["end", "start"]
