"""A sensor and a trigger of an external stream on a real S3-compatible server: poke by poke, and in a real Airflow."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from object_stores import S3Server
from warehouse.lake import FIRST, Lake, row

from airflow_provider_viewdf import PartitionSensor, Warehouse
from airflow_provider_viewdf.hooks.viewdf import WarehouseAddress
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.triggers.parts import PartsTrigger, are_ready
from demo.airflow_site import AirflowSite

SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG
from airflow_provider_viewdf import PartitionSensor

with DAG("bucket", schedule=None, start_date=datetime(2015, 1, 1, tzinfo=UTC)):
    PartitionSensor(task_id="E", table="E", sql="""@SQL""", poke_interval=1, timeout=200)
'''


@pytest.fixture
def lake(s3_environment: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv(
        "AIRFLOW_CONN_VIEWDF_DEFAULT",
        json.dumps({"conn_type": "viewdf", "extra": {"warehouse": str(tmp_path / "wh")}}),
    )
    return Lake(f"s3a://{s3_environment.create_bucket()}/events")


def context(number: int) -> Any:
    """What a run of an hour has, as far as the sensor asks."""
    at = datetime(2015, 1, 1, number, tzinfo=UTC)
    return {
        "logical_date": at,
        "data_interval_start": at,
        "data_interval_end": at + timedelta(hours=1),
        "ti": SimpleNamespace(dag_id="d", run_id="r", task_id="E", try_number=1),
    }


def test_a_sensor_registers_complete_parts_of_a_bucket_and_finds_late_and_replaced_objects(
    lake: Lake, tmp_path: Path
) -> None:
    def make_sensor() -> PartitionSensor:
        return PartitionSensor(task_id="E", table="E", sql=lake.define("COMPLETE WHEN '_SUCCESS'"), lookback=2)

    lake.write(10, [row(10, "a", 1)])
    assert not make_sensor().poke(context(10))
    lake.write_text(10, "_SUCCESS")
    assert make_sensor().poke(context(10))

    lake.write(10, [row(10, "a", 7)])  # of the same size
    lake.write(10, [row(10, "late", 1)], "late")
    lake.write(11, [row(11, "a", 1)])
    lake.write_text(11, "_SUCCESS")
    assert make_sensor().poke(context(11))

    with Warehouse.open(tmp_path / "wh") as warehouse:
        assert warehouse.existing_parts("E") == PartSet.between(FIRST, FIRST + 1)
        first, second = warehouse.version_history("E", "2015-01-01T10:00")
    assert [[item.name for item in version.files] for version in (first, second)] == [["a.csv"], ["a.csv", "late.csv"]]
    assert first.files[0].mark != second.files[0].mark


def test_a_trigger_sees_an_object_that_somebody_else_puts_after_its_first_look(lake: Lake, tmp_path: Path) -> None:
    import boto3

    with Warehouse.open(tmp_path / "wh") as warehouse:
        warehouse.apply(lake.define())
    # s3fs remembers listings; the first look leaves one behind.
    assert not are_ready(WarehouseAddress(str(tmp_path / "wh")), {"E": PartSet.of_indexes([FIRST])})
    bucket, _, key = lake.directory(10).partition("/")
    boto3.client("s3").put_object(Bucket=bucket, Key=f"{key}/a.csv", Body=b"ts,k,v\n")
    trigger = PartsTrigger("viewdf_default", {"E": [[FIRST, FIRST]]}, deadline=time.time() + 60, poll_interval=1)

    async def first_event() -> Any:
        return await anext(trigger.run())

    assert asyncio.run(first_event()).payload == {"status": "ready"}
    with Warehouse.open(tmp_path / "wh") as warehouse:
        assert warehouse.existing_parts("E") == PartSet.of_indexes([FIRST])


@pytest.mark.airflow
def test_a_deferred_sensor_goes_on_when_its_objects_come(lake: Lake, s3_environment: S3Server, tmp_path: Path) -> None:
    connection = {"conn_type": "viewdf", "extra": {"warehouse": str(tmp_path / "wh")}}
    env = {**s3_environment.environment, "AIRFLOW_CONN_VIEWDF_DEFAULT": json.dumps(connection)}
    at = datetime(2015, 1, 1, 10, tzinfo=UTC)
    with AirflowSite(tmp_path / "airflow", tmp_path / "dags", env=env) as site:
        site.add_dag_file("bucket.py", SOURCE.replace("@SQL", lake.define("COMPLETE WHEN '_SUCCESS'")), "bucket")
        site.unpause("bucket")
        lake.write(10, [row(10, "a", 1)])
        run = site.trigger("bucket", logical_date=at, data_interval=(at, at + timedelta(hours=1)))
        for _ in site._poll("the sensor to be deferred", 120):
            if [task.state for task in site.task_instances("bucket", run.run_id)] == ["deferred"]:
                break
        lake.write_text(10, "_SUCCESS")
        site.wait_for_runs("bucket", run_ids=[run.run_id])
        log = site.log("bucket", run.run_id, "E")
    with Warehouse.open(tmp_path / "wh") as warehouse:
        assert warehouse.existing_parts("E") == PartSet.of_indexes([FIRST])
    assert f"E[{FIRST}] (2015-01-01T10:00): all there." in log
