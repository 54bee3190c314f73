"""What no retry can mend fails at once; anything else is left to the task's retries."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_viewdf import LoadOperator, PartitionSensor, ViewDFOperator
from airflow_provider_viewdf.errors import LoadError, UnknownTableError

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, loss INT) PARTITION LENGTH 60;"
NO_DATE = "This run has no logical date and no partition date, so it names no part; "


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    connection = {"conn_type": "viewdf", "extra": {"warehouse": str(tmp_path / "wh")}}
    monkeypatch.setenv("AIRFLOW_CONN_VIEWDF_DEFAULT", json.dumps(connection))
    return tmp_path


def run(task: BaseOperator, **context: Any) -> None:
    ti = SimpleNamespace(dag_id="d", run_id="r", task_id=task.task_id, try_number=1)
    with DAG("retries", start_date=START, schedule=None) as dag:
        dag.add_task(task)
    task.execute({"ti": ti, "dag": dag, **context})  # type: ignore[arg-type]


WRONG = {
    "a view task": lambda: ViewDFOperator(task_id="V", sql=f"{STREAM} CREATE VIEW V AS SELECT FROM WHERE"),
    "a load task": lambda: LoadOperator(task_id="L", table="M", sql=f"{STREAM} CREATE VIEW", source=list),
    "a sensor": lambda: PartitionSensor(task_id="S", table="M", sql=f"{STREAM} CREATE VIEW"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_script_fails_for_good(warehouse: Path, kind: str) -> None:
    with pytest.raises(AirflowFailException, match=r"^Line 1, column "):
        run(WRONG[kind](), logical_date=START)


@pytest.mark.parametrize("kind", WRONG)
def test_a_run_that_names_no_part_fails_for_good(warehouse: Path, kind: str) -> None:
    task = WRONG[kind]()
    task.sql = STREAM  # type: ignore[attr-defined]
    with pytest.raises(AirflowFailException) as found:
        run(task)
    assert str(found.value).startswith(NO_DATE)


def test_what_may_be_there_in_the_next_try_is_left_to_the_retries(warehouse: Path) -> None:
    with pytest.raises(UnknownTableError):
        run(ViewDFOperator(task_id="V", view="V"), logical_date=START)
    half = warehouse / "half.csv"
    half.write_text("ts,loss\n2015-01-01T10:00:00Z")
    with pytest.raises(LoadError):
        run(LoadOperator(task_id="L", table="M", sql=STREAM, source=str(half)), logical_date=START)
