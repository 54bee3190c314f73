from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_viewdf import ViewDFMaintenanceOperator, Warehouse
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.parts import PartSet

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
FIRST = 23668440


def test_one_task_archives_rolls_up_and_cleans_up(
    tmp_path: Path, open_spark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = open_spark("classic")
    monkeypatch.setenv(
        "AIRFLOW_CONN_VIEWDF_DEFAULT", json.dumps({"conn_type": "viewdf", "extra": {"warehouse": str(tmp_path / "wh")}})
    )
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.apply("CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60 RETAIN '8 minutes'")
        warehouse.load("S", [{"ts": START + timedelta(minutes=m), "x": m} for m in range(12)])
    task = ViewDFMaintenanceOperator(
        task_id="maintain", span="5 minutes", older_than="0 seconds", grace=timedelta(seconds=-60)
    )
    context: Any = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="maintain", try_number=1)}
    assert task.execute(context) == {"archived": 4, "rolled_up": 5, "versions_removed": 0, "leftovers_removed": 0}
    # Of 10:00 to 10:05 only one part is left, which has nothing to be put together with.
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        assert warehouse.archived_parts("S") == PartSet.between(FIRST, FIRST + 3)
        assert sorted(row.x for row in warehouse.query("SELECT x FROM S").collect()) == list(range(4, 12))
    names = sorted(path.name for path in (tmp_path / "wh" / "S").iterdir())
    assert names == [str(FIRST + m) for m in (4, 10, 11)] + ["rolled"]
    assert task.execute(context)["archived"] == 0


def test_a_task_that_is_to_do_nothing_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        ViewDFMaintenanceOperator(task_id="m", retire=False, roll_up=False, gc=False)
    assert str(raised.value) == "Task m is to do nothing; leave one of retire, roll_up and gc as True."
