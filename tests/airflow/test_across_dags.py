"""The example DAGs losses_by_minute and losses_by_hour: an hour is computed when it is complete and when it changes."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from site_samples import read_parts, states

from airflow_provider_viewdf import Warehouse, after_parts_of
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.errors import UsageError
from demo.airflow_client import Run
from demo.airflow_site import AirflowSite

EXAMPLES = Path(__file__).parents[2] / "dags"
START = datetime(2015, 1, 1, 10, 0, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)
WAIT = 400  # seconds, for a machine that has other things to do
FIRST = 23668440  # the minute at START
HOUR = 394474  # the hour at START
START_OF_LATE = "2015-01-01T10:02:00+00:00"
LATE_LOSS = 15  # of 10.0.0.1 at 10:02, as loss_measurements has it


def read_sums(warehouse: Path, view: str) -> dict[int, dict[str, int]]:
    return {index: dict(rows) for index, rows in read_parts(warehouse, view).items()}


def sum_up(minutes: dict[int, dict[str, int]]) -> dict[str, int]:
    hosts = {host for minute in minutes.values() for host in minute}
    return {host: sum(minute.get(host, 0) for minute in minutes.values()) for host in hosts}


def wait_for_followers(site: AirflowSite) -> dict[str, list[Run]]:
    """The runs of the following DAG by what became of its task, once every event has made its run, and each is over."""
    for _ in site._poll("the runs of losses_by_hour to end", WAIT):
        # Airflow fails to list events whose runs have not begun: then there is something to wait for, too.
        page = {"name_pattern": "losses_by_minute", "limit": 100}
        answer = site._send("GET", "/assets/events", params=page, accept=(500,))
        if answer.status_code == 200 and all(item["created_dagruns"] for item in answer.json()["asset_events"]):
            runs = sorted(site.runs("losses_by_hour"), key=lambda run: run.run_id)
            if all(run.is_finished for run in runs):
                break
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(str(states(site, "losses_by_hour", run)["losses_by_hour"]), []).append(run)
    return found


def load_half_an_hour(site: AirflowSite, number: int) -> Run:
    start = START + number * HALF_AN_HOUR
    return site.trigger("losses_by_minute", logical_date=start, data_interval=(start, start + HALF_AN_HOUR))


@pytest.mark.airflow
@pytest.mark.timeout(900)
def test_an_hour_is_computed_once_complete_and_again_when_a_late_minute_changes_it(
    airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer
) -> None:
    for name in ("loss_measurements.py", "losses_by_minute.sql", "losses_by_hour.sql"):
        shutil.copy(EXAMPLES / name, airflow_site.dags / name)
    for dag_id in ("losses_by_minute", "losses_by_hour"):
        airflow_site.add_dag_file(f"{dag_id}.py", (EXAMPLES / f"{dag_id}.py").read_text(), dag_id)
        airflow_site.unpause(dag_id)

    first = load_half_an_hour(airflow_site, 0)
    airflow_site.wait_for_runs("losses_by_minute", timeout_seconds=WAIT)
    followers = wait_for_followers(airflow_site)
    assert set(followers) == {"skipped"}
    log = airflow_site.log("losses_by_hour", followers["skipped"][-1].run_id, "losses_by_hour")
    assert f"losses_by_hour[{HOUR}] (2015-01-01T10:00) is skipped: waits for losses[" in log
    load_half_an_hour(airflow_site, 1)
    airflow_site.wait_for_runs("losses_by_minute", timeout_seconds=WAIT)
    followers = wait_for_followers(airflow_site)

    minutes = read_sums(airflow_warehouse, "losses_by_minute")
    assert sorted(minutes) == list(range(FIRST, FIRST + 60))
    assert read_sums(airflow_warehouse, "losses_by_hour") == {HOUR: sum_up(minutes)}
    assert len(followers["success"]) == 1

    # A late row changes the minute 10:02, and so the hour.
    airflow_home = airflow_site.home
    (airflow_home / "loss_measurements").mkdir()
    (airflow_home / "loss_measurements" / "20150101T1002.jsonl").write_text(
        json.dumps({"ts": START_OF_LATE, "src": "10.0.0.1", "dest": "10.0.0.2", "loss": LATE_LOSS})
    )
    airflow_site.clear("losses_by_minute", first.run_id)
    airflow_site.wait_for_runs("losses_by_minute", timeout_seconds=WAIT)
    followers = wait_for_followers(airflow_site)

    late = read_sums(airflow_warehouse, "losses_by_minute")
    assert late[FIRST + 2]["10.0.0.1"] == minutes[FIRST + 2]["10.0.0.1"] + LATE_LOSS
    assert read_sums(airflow_warehouse, "losses_by_hour") == {HOUR: sum_up(late)}
    assert len(followers["success"]) == 2
    with Warehouse.open(airflow_warehouse) as warehouse:
        assert [item.version for item in warehouse.version_history("losses_by_hour", START)] == [1, 2]

    # The same again changes nothing: no event, no run.
    before = airflow_site.runs("losses_by_hour")
    airflow_site.clear("losses_by_minute", first.run_id)
    airflow_site.wait_for_runs("losses_by_minute", timeout_seconds=WAIT)
    wait_for_followers(airflow_site)
    assert airflow_site.runs("losses_by_hour") == before

    # Nor does a follower that is cleared find anything to do. It needs no Spark to find that out.
    idle = followers["skipped"][0].run_id
    airflow_site.clear("losses_by_hour", idle)
    airflow_site.wait_for_runs("losses_by_hour", timeout_seconds=WAIT)
    log = airflow_site.log("losses_by_hour", idle, "losses_by_hour")
    assert f"losses_by_hour[{HOUR}] (2015-01-01T10:00) is skipped: it is up to date" in log
    assert "Working with" not in log

    events = list_events(airflow_site, "losses_by_minute")
    assert len(events) == 61
    assert [extra for key, extra in events if key == "2015-01-01T10:02"] == [
        {"rows": 3, "version": 1, "changed": True, "reason": "new"},
        {"rows": 3, "version": 2, "changed": True, "reason": f"late data in losses[{FIRST + 2}]"},
    ]
    assert [extra["version"] for key, extra in list_events(airflow_site, "losses_by_hour")] == [1, 2]
    assert {
        "rows": 4,
        "version": 2,
        "changed": True,
        "reason": "batch losses_by_minute/load_losses/2015-01-01T10:00",
    } in [extra for key, extra in list_events(airflow_site, "losses")]


DYING = """
import os
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG
from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = "CREATE STREAM mortal_M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60; CREATE VIEW mortal AS SELECT x FROM mortal_M"

class Dying(ViewDFOperator):
    def _announce(self, warehouse, context, *arguments):
        if context["ti"].try_number == 1:
            os._exit(9)
        super()._announce(warehouse, context, *arguments)

with DAG("mortal", schedule=None, start_date=datetime(2015, 1, 1, tzinfo=UTC)):
    load = LoadOperator(task_id="load", table="mortal_M", sql=SQL, source=lambda start, end: [{"ts": start, "x": 1}])
    load >> Dying(task_id="mortal", sql=SQL, retries=1, retry_delay=timedelta(0))
"""


@pytest.mark.airflow
def test_a_part_whose_task_died_after_publishing_it_gets_its_event_by_the_next_try(
    airflow_site: AirflowSite, connect_server: ConnectServer
) -> None:
    airflow_site.add_dag_file("mortal.py", DYING, "mortal")
    airflow_site.unpause("mortal")
    run = airflow_site.trigger("mortal", logical_date=START)
    airflow_site.wait_for_runs("mortal", run_ids=[run.run_id])

    assert airflow_site.xcom("mortal", run.run_id, "mortal")["published"] == 0
    assert list_events(airflow_site, "mortal") == [
        ("2015-01-01T10:00", {"rows": 1, "version": 1, "changed": True, "reason": "computed earlier by this task"})
    ]


def list_events(site: AirflowSite, asset: str) -> list[tuple[str, dict[str, Any]]]:
    events = site._list("/assets/events", "asset_events", name_pattern=asset)
    found = [(item["partition_key"], item["extra"]) for item in events if item["name"] == asset]
    return sorted(found, key=lambda event: (event[0], event[1]["version"]))


def test_a_schedule_follows_parts_by_the_length_of_the_view() -> None:
    hourly = after_parts_of("M", length="1 hour").default_partition_mapper
    daily = after_parts_of("M", length=86400).default_partition_mapper
    other = after_parts_of("M", "N", length="4 minutes").default_partition_mapper
    assert [type(item).__name__ for item in (hourly, daily, other)] == [
        "StartOfHourMapper",
        "StartOfDayMapper",
        "IdentityMapper",
    ]
    with pytest.raises(UsageError) as error:
        after_parts_of(length="1 hour")
    assert str(error.value) == "after_parts_of needs the name of at least one view or table."
