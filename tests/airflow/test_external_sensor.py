"""What a sensor of an external stream does in its own process: poke by poke, without a scheduler."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_provider_viewdf import PartitionSensor, ViewDFTaskGroup, Warehouse
from airflow_provider_viewdf.errors import ExternalFilesError, UsageError
from airflow_provider_viewdf.hooks.scripts import missing_parts_error
from airflow_provider_viewdf.hooks.viewdf import WarehouseAddress
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.triggers.parts import PartsTrigger, are_ready

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
FIRST = 394474


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(
        "AIRFLOW_CONN_VIEWDF_DEFAULT",
        json.dumps({"conn_type": "viewdf", "extra": {"warehouse": str(tmp_path / "wh")}}),
    )
    return tmp_path / "lake"


def script(lake: Path, clauses: str = "FORMAT csv") -> str:
    return (
        f"CREATE STREAM E (ts TIMESTAMP ORDERED, v INT) PARTITION LENGTH '1 hour' LOCATION '{lake}/{{yyyyMMdd}}/{{HH}}' "
        f"{clauses};\nCREATE VIEW V AS SELECT v FROM E"
    )


def write(lake: Path, number: int, name: str = "a.csv") -> None:
    place = lake / "20150101" / f"{number:02}"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("ts,v\n")


def context(number: int) -> Any:
    """What a run of an hour has, as far as the sensor asks."""
    at = START + timedelta(hours=number - 10)
    return {
        "logical_date": at,
        "data_interval_start": at,
        "data_interval_end": at + timedelta(hours=1),
        "ti": SimpleNamespace(dag_id="d", run_id="r", task_id="E", try_number=1),
    }


def test_a_sensor_defines_the_stream_registers_parts_and_looks_back_once_at_each_end(lake: Path) -> None:
    sensor = PartitionSensor(task_id="E", table="E", sql=script(lake), lookback=2)
    write(lake, 9)
    assert not sensor.poke(context(11))

    with Warehouse.open(lake.parent / "wh") as warehouse:
        assert [item.name for item in warehouse.definitions()] == ["E"]  # its view is the operator's business
        assert warehouse.existing_parts("E") == PartSet.of_indexes([FIRST - 1])
        write(lake, 10)
        assert not sensor.poke(context(11))
        assert len(warehouse.existing_parts("E")) == 1  # it has looked back, and waits
        write(lake, 11)
        assert sensor.poke(context(11))
        assert warehouse.existing_parts("E") == PartSet.between(FIRST - 1, FIRST + 1)
        (version,) = warehouse.version_history("E", START)
        assert version.produced_by == "d/r/E try 1"


def test_without_a_look_back_only_the_runs_own_parts_are_looked_at(lake: Path) -> None:
    for number in (9, 10):
        write(lake, number)

    assert PartitionSensor(task_id="E", table="E", sql=script(lake), lookback=0).poke(context(10))

    with Warehouse.open(lake.parent / "wh") as warehouse:
        assert warehouse.existing_parts("E") == PartSet.of_indexes([FIRST])


def test_a_trigger_registers_what_it_waits_for(lake: Path) -> None:
    address = WarehouseAddress(str(lake.parent / "wh"))
    with Warehouse.open(lake.parent / "wh") as warehouse:
        warehouse.apply(script(lake).partition(";")[0])
    wanted = {"E": PartSet.of_indexes([FIRST])}
    assert not are_ready(address, wanted)

    write(lake, 10)
    trigger = PartsTrigger("viewdf_default", {"E": [[FIRST, FIRST]]}, deadline=time.time() + 60, poll_interval=1)

    async def first_event() -> Any:
        return await anext(trigger.run())

    assert asyncio.run(first_event()).payload == {"status": "ready"}
    with Warehouse.open(lake.parent / "wh") as warehouse:
        assert warehouse.existing_parts("E") == PartSet.of_indexes([FIRST])


def test_a_trigger_imports_no_spark(lake: Path) -> None:
    write(lake, 10)
    program = (
        "import sys\n"
        "from airflow_provider_viewdf.hooks.viewdf import WarehouseAddress, open_warehouse\n"
        "from airflow_provider_viewdf.triggers.parts import PartSet, are_ready\n"
        f"address = WarehouseAddress({str(lake.parent / 'wh')!r})\n"
        "with open_warehouse(address) as wh:\n"
        f"    wh.apply({script(lake).partition(';')[0]!r})\n"
        f"print(are_ready(address, {{'E': PartSet.of_indexes([{FIRST}])}}), 'pyspark' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "True False"


def test_what_is_wrong_with_a_file_is_said_by_the_task_not_by_the_trigger(lake: Path) -> None:
    sensor = PartitionSensor(task_id="E", table="E", sql=script(lake, "FORMAT parquet"))
    assert not sensor.poke(context(10))
    write(lake, 10, "a.parquet")

    assert are_ready(WarehouseAddress(str(lake.parent / "wh")), {"E": PartSet.of_indexes([FIRST])})
    with pytest.raises(ExternalFilesError) as error:
        sensor.poke(context(10))
    assert str(error.value) == (
        f"file://{lake}/20150101/10/a.parquet is not a Parquet file, as E declares; nothing was registered."
    )


def test_a_part_that_is_rewritten_is_waited_for_again(lake: Path) -> None:
    sensor = PartitionSensor(task_id="E", table="E", sql=script(lake, "FORMAT csv COMPLETE WHEN '_SUCCESS'"))
    for name in ("a.csv", "_SUCCESS"):
        write(lake, 10, name)
    assert sensor.poke(context(10))
    (lake / "20150101" / "10" / "_SUCCESS").unlink()

    assert not sensor.poke(context(10))


def test_the_sentence_of_a_vain_wait_says_where_the_files_belong(lake: Path) -> None:
    with Warehouse.open(lake.parent / "wh") as warehouse:
        warehouse.apply(script(lake, "FORMAT csv COMPLETE WHEN '_SUCCESS'").partition(";")[0])
        error = missing_parts_error("Task E", {"E": PartSet.of_indexes([FIRST])}, warehouse.definitions(), 4)

    assert str(error) == (
        f"Task E waited 4 seconds in vain for E[{FIRST}] (2015-01-01T10:00). Its files belong at {lake}/20150101/10, with a "
        "file _SUCCESS; put them there, or declare it empty: viewdf declare-empty E --at 2015-01-01T10:00"
    )


@pytest.mark.parametrize("lookback", [-1, 1.5, True, "24"])
def test_a_look_back_is_a_number_of_parts(lookback: Any) -> None:
    with pytest.raises(UsageError) as error:
        PartitionSensor(task_id="E", table="E", lookback=lookback)

    assert str(error.value) == f"lookback of task E must be a number of parts, 0 or more, not {lookback!r}."


def test_a_task_group_hands_its_look_back_to_its_sensors(lake: Path) -> None:
    with DAG("d", schedule=None, start_date=START) as dag:
        ViewDFTaskGroup("views", script(lake), lookback=3)

    assert dag.get_task("views.E").lookback == 3
    assert PartitionSensor(task_id="other", table="E").lookback == 24
