"""Late data on a real scheduler: the paper's Figure 3, with each way of passing a change on, and whatever is cleared.

The DAG has a run a minute, for the parts 1 to 9 of Figure 3. What is late comes as a new file for its minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from site_samples import read_parts, states

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.actions.leases import hold_lease
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.parts import PartSet
from demo.airflow_client import AirflowSiteError, Run
from demo.airflow_site import AirflowSite

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]

ZERO = datetime(2015, 1, 1, 10, 0, tzinfo=UTC)
PART_ZERO = 23668440  # the part at ZERO; Figure 3's parts are counted from there
MINUTE = timedelta(minutes=1)
PARTS = range(1, 10)

Losses = dict[str, dict[int, int]]

# Host x loses packets from part 1 on. Its row of part 5 is late; in part 8 its run of losses ends with or without it.
LOSSES: Losses = {
    "x": dict(zip(PARTS, [12, 15, 24, 20, 16, 30, 31, 7, 12], strict=True)),
    "y": dict(zip(PARTS, [3, 11, 4, 30, 31, 32, 33, 34, 35], strict=True)),
}

SOURCE = '''
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = """
CREATE STREAM @M (ts TIMESTAMP ORDERED, host STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW @Helper AS
INITIALIZE @Helper[i] AS SELECT host, 1 AS ct, CAST(loss AS BIGINT) AS sum_loss FROM @M[i] WHERE loss > 10
UPDATE @Helper[j] AS
  SELECT m.host, COALESCE(h.ct, 0) + 1, COALESCE(h.sum_loss, 0) + m.loss
  FROM @M[j] AS m LEFT OUTER JOIN @Helper[j-1] AS h ON m.host = h.host WHERE m.loss > 10
PARTITION LENGTH 60;
CREATE VIEW @View2 AS SELECT host, ct, sum_loss FROM @Helper WHERE ct >= 4
"""

def make(dag_id, **arguments):
    with DAG(
        dag_id,
        schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
        start_date=datetime(2015, 1, 1, 10, 1, tzinfo=UTC),
        end_date=datetime(2015, 1, 1, 10, 9, tzinfo=UTC),
        catchup=CATCHUP,
        default_args={"retry_delay": timedelta(0)},  # Airflow may count a task that is cleared while it runs as a retry
    ) as dag:
        load = LoadOperator(
            task_id="load", table="@M", source="@in/{{ logical_date | ts_nodash }}.csv", sql=SQL,
            batch_id="{{ ts }}",
        )
        helper = ViewDFOperator(task_id="Helper", view="@Helper", sql=SQL, **arguments)
        view2 = ViewDFOperator(task_id="View2", view="@View2", sql=SQL, **arguments)
        load >> helper >> view2
    return dag
'''


def write_rows(directory: Path, losses: Losses, minutes: Iterable[int]) -> None:
    directory.mkdir(exist_ok=True)
    for number in minutes:
        at = ZERO + number * MINUTE
        rows = [f"{at:%Y-%m-%d %H:%M:%S},{host},{of[number]}" for host, of in losses.items() if number in of]
        (directory / f"{at:%Y%m%dT%H%M%S}.csv").write_text("\n".join(["ts,host,loss", *rows]) + "\n")


def compute_expected(losses: Losses, minutes: Iterable[int] = PARTS) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    """Helper and View2 from scratch, in plain Python."""
    helper: dict[int, list[tuple[Any, ...]]] = {}
    runs: dict[str, tuple[int, int]] = {}
    for number in minutes:
        lost = {host: of[number] for host, of in losses.items() if of.get(number, 0) > 10}
        runs = {host: (runs.get(host, (0, 0))[0] + 1, runs.get(host, (0, 0))[1] + loss) for host, loss in lost.items()}
        helper[number] = sorted((host, ct, total) for host, (ct, total) in runs.items())
    return {
        "Helper": helper,
        "View2": {number: [row for row in rows if row[1] >= 4] for number, rows in helper.items()},
    }


def read_views(warehouse: Path, prefix: str) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    return {
        view: {index - PART_ZERO: rows for index, rows in read_parts(warehouse, f"{prefix}{view}").items()}
        for view in ("Helper", "View2")
    }


def read_changed(warehouse: Path, view: str, since: datetime) -> list[int]:
    """The parts that `last_updated` shows as changed since then."""
    with Warehouse.open(warehouse) as opened:
        return sorted(version.index - PART_ZERO for version in opened.changed_since(since, view))


def read_stale(warehouse: Path, view: str) -> list[int]:
    with Warehouse.open(warehouse) as opened:
        return [index - PART_ZERO for index in opened.status(view)[0].stale]


def count_tries(site: AirflowSite, dag_id: str, runs: Mapping[int, Run], task_id: str) -> dict[int, int]:
    return {
        number: next(task.try_number for task in site.task_instances(dag_id, run.run_id) if task.task_id == task_id)
        for number, run in runs.items()
    }


@pytest.fixture(scope="module")
def late(airflow_site: AirflowSite, connect_server: ConnectServer) -> Mapping[int, Run]:
    """The runs 1 to 9 of a DAG with late_data="rerun", while the row of host x in part 5 is on its way."""
    losses = {**LOSSES, "x": {number: loss for number, loss in LOSSES["x"].items() if number != 5}}
    write_rows(airflow_site.dags / "r_in", losses, PARTS)
    source = SOURCE + 'rerun = make("r_figure3", late_data="rerun")\n'
    airflow_site.add_dag_file("r_figure3.py", source.replace("@", "r_").replace("CATCHUP", "True"), "r_figure3")
    airflow_site.unpause("r_figure3")
    dates = [ZERO + number * MINUTE for number in PARTS]
    runs = airflow_site.wait_for_runs("r_figure3", logical_dates=dates)
    return {(run.logical_date - ZERO) // MINUTE: run for run in runs if run.logical_date is not None}


def test_figure_3_by_reruns_hop_by_hop_until_nothing_changes(
    airflow_site: AirflowSite, airflow_warehouse: Path, late: Mapping[int, Run]
) -> None:
    without = {**LOSSES, "x": {number: loss for number, loss in LOSSES["x"].items() if number != 5}}
    assert read_views(airflow_warehouse, "r_") == compute_expected(without)
    before = count_tries(airflow_site, "r_figure3", late, "Helper")
    since = datetime.now(UTC)
    write_rows(airflow_site.dags / "r_in", LOSSES, [5])

    airflow_site.clear("r_figure3", late[5].run_id, ["load"], downstream=True)
    airflow_site.wait_for_runs("r_figure3")

    assert read_views(airflow_warehouse, "r_") == compute_expected(LOSSES)
    # Each part that changed, and the first that did not, were computed by their own runs; no other run ran again.
    after = count_tries(airflow_site, "r_figure3", late, "Helper")
    assert {number: after[number] - before[number] for number in PARTS} == {
        number: 1 if number in (5, 6, 7, 8) else 0 for number in PARTS
    }
    assert read_changed(airflow_warehouse, "r_Helper", since) == [5, 6, 7]
    assert read_changed(airflow_warehouse, "r_View2", since) == [5, 6, 7]
    assert airflow_site.xcom("r_figure3", late[5].run_id, "Helper")["rerun"] == late[6].run_id
    assert airflow_site.xcom("r_figure3", late[8].run_id, "Helper")["rerun"] is None
    log = airflow_site.log("r_figure3", late[7].run_id, "Helper")
    assert (
        f"r_Helper[{PART_ZERO + 8}] (2015-01-01T10:08) is not up to date either: "
        f"its run {late[8].run_id} is done again."
    ) in log
    with Warehouse.open(airflow_warehouse) as warehouse:
        made_by = {
            version.index - PART_ZERO: version.produced_by for version in warehouse.changed_since(since, "r_Helper")
        }
    assert {number: text.split("/")[1] for number, text in made_by.items()} == {
        number: late[number].run_id for number in (5, 6, 7)
    }


def test_clearing_one_task_without_downstream_and_a_paused_dag(
    airflow_site: AirflowSite, airflow_warehouse: Path, late: Mapping[int, Run]
) -> None:
    losses = {**LOSSES, "z": {8: 40}}
    write_rows(airflow_site.dags / "r_in", losses, [8])
    airflow_site.clear("r_figure3", late[8].run_id, ["load"])
    airflow_site.wait_for_runs("r_figure3")
    # Nobody has asked for the views yet: what is stale says so.
    assert read_stale(airflow_warehouse, "r_Helper") == [8]

    airflow_site.pause("r_figure3")
    airflow_site.clear("r_figure3", late[8].run_id, ["Helper"])
    assert {run.run_id: run.state for run in airflow_site.runs("r_figure3")}[late[8].run_id] == "queued"
    assert read_stale(airflow_warehouse, "r_Helper") == [8]
    airflow_site.unpause("r_figure3")
    airflow_site.wait_for_runs("r_figure3")

    # View2[8] was not cleared; the rerun of 9, of which Helper[9] had to be looked at, brought it up to date too.
    assert read_views(airflow_warehouse, "r_") == compute_expected(losses)
    assert read_stale(airflow_warehouse, "r_View2") == []


def test_clearing_with_downstream_and_future(
    airflow_site: AirflowSite, airflow_warehouse: Path, late: Mapping[int, Run]
) -> None:
    losses = {**LOSSES, "z": {8: 40, 7: 41}}
    write_rows(airflow_site.dags / "r_in", losses, [7])
    airflow_site.clear("r_figure3", late[7].run_id, ["load"])
    airflow_site.wait_for_runs("r_figure3")

    cleared = airflow_site.clear("r_figure3", late[7].run_id, ["Helper"], downstream=True, future=True)
    assert cleared == sorted((late[number].run_id, task) for number in (7, 8, 9) for task in ("Helper", "View2"))
    airflow_site.wait_for_runs("r_figure3")

    assert read_views(airflow_warehouse, "r_") == compute_expected(losses)
    assert read_stale(airflow_warehouse, "r_Helper") == read_stale(airflow_warehouse, "r_View2") == []


def test_leave_leaves_later_parts_stale_and_a_manual_rerun_computes_what_no_run_owns(
    airflow_site: AirflowSite, airflow_warehouse: Path, late: Mapping[int, Run]
) -> None:
    losses = {**LOSSES, "z": {6: 40, 7: 41, 8: 40}}
    write_rows(airflow_site.dags / "r_in", losses, [6])
    source = SOURCE + 'leave = make("r_leave", late_data="leave")\nalone = make("r_alone", late_data="rerun")\n'
    source = source.replace("@", "r_").replace("CATCHUP", "False")
    airflow_site.add_dag_file("r_others.py", source, "r_leave", "r_alone")
    for dag_id in ("r_leave", "r_alone"):
        airflow_site.unpause(dag_id)
    at = ZERO + 6 * MINUTE

    run = airflow_site.trigger("r_leave", logical_date=at, data_interval=(at, at + MINUTE))
    airflow_site.wait_for_runs("r_leave", run_ids=[run.run_id])
    assert read_stale(airflow_warehouse, "r_Helper") == [7]
    expected = compute_expected(losses)
    found = read_views(airflow_warehouse, "r_")
    assert [found[view][6] for view in found] == [expected[view][6] for view in found]
    assert found["Helper"][7] != expected["Helper"][7]

    # Its DAG has no runs for parts 7 to 9: it computes them itself, and says so.
    run = airflow_site.trigger("r_alone", logical_date=at, data_interval=(at, at + MINUTE))
    airflow_site.wait_for_runs("r_alone", run_ids=[run.run_id])
    assert read_views(airflow_warehouse, "r_") == expected
    assert (
        f"r_Helper[{PART_ZERO + 7}] (2015-01-01T10:07) is not up to date either: "
        "computed here, since no later run of r_alone is for it."
    ) in airflow_site.log("r_alone", run.run_id, "Helper")


@pytest.fixture(scope="module")
def overlap(airflow_site: AirflowSite, connect_server: ConnectServer) -> tuple[list[Run], list[Run]]:
    """The runs of two DAGs over the same views: the first, with reruns, for parts 1 to 3, the second for 2 to 4."""
    write_rows(airflow_site.dags / "o_in", LOSSES, range(1, 5))
    source = SOURCE + 'one = make("o_one", late_data="rerun")\ntwo = make("o_two", late_data="refresh")\n'
    source = source.replace("@", "o_").replace("CATCHUP", "False")
    airflow_site.add_dag_file("o_overlap.py", source, "o_one", "o_two")

    first = airflow_site.backfill("o_one", ZERO + MINUTE, ZERO + 3 * MINUTE)
    body = {"dag_id": "o_one", "from_date": "2015-01-01T10:02:00Z", "to_date": "2015-01-01T10:04:00Z"}
    # Airflow itself refuses a second backfill of the same DAG; one of another DAG, over the same views, is serialised by us.
    with pytest.raises(AirflowSiteError, match="409"):
        airflow_site._send("POST", "/backfills", json={**body, "reprocess_behavior": "none", "max_active_runs": 4})
    second = airflow_site.backfill("o_two", ZERO + 2 * MINUTE, ZERO + 4 * MINUTE)
    for dag_id in ("o_one", "o_two"):
        airflow_site.unpause(dag_id)
    return airflow_site.wait_for_backfill(first), airflow_site.wait_for_backfill(second)


def test_overlapping_backfills_do_no_damage(
    airflow_site: AirflowSite, airflow_warehouse: Path, overlap: tuple[list[Run], list[Run]]
) -> None:
    assert read_views(airflow_warehouse, "o_") == compute_expected(LOSSES, range(1, 5))
    with Warehouse.open(airflow_warehouse) as warehouse:
        histories = [warehouse.version_history("o_Helper", ZERO + number * MINUTE) for number in range(2, 5)]
        # Part 1 may have become the first part after part 2 was; what was computed from the same is there once.
        assert all(len({version.inputs_digest for version in found}) == len(found) for found in histories)


def test_a_run_of_a_backfill_is_rerun_too_and_beyond_the_last_run_parts_are_computed_at_once(
    airflow_site: AirflowSite, airflow_warehouse: Path, overlap: tuple[list[Run], list[Run]]
) -> None:
    losses = {**LOSSES, "x": {**LOSSES["x"], 2: 50}}
    write_rows(airflow_site.dags / "o_in", losses, [2])
    runs = overlap[0]

    airflow_site.clear("o_one", runs[1].run_id, ["load"], downstream=True)
    airflow_site.wait_for_runs("o_one")

    assert read_views(airflow_warehouse, "o_") == compute_expected(losses, range(1, 5))
    assert airflow_site.xcom("o_one", runs[1].run_id, "Helper")["rerun"] == runs[2].run_id
    assert (
        f"o_Helper[{PART_ZERO + 4}] (2015-01-01T10:04) is not up to date either: "
        "computed here, since no later run of o_one is for it."
    ) in airflow_site.log("o_one", runs[2].run_id, "Helper")


def test_clearing_a_running_task_does_no_damage(
    airflow_site: AirflowSite, airflow_warehouse: Path, overlap: tuple[list[Run], list[Run]]
) -> None:
    write_rows(airflow_site.dags / "o_in", {**LOSSES, "z": {4: 50}}, [4])
    run = overlap[1][-1]
    with Warehouse.open(airflow_warehouse) as warehouse:
        # Whoever computes a part holds its lease: while the test does, the task runs and waits.
        with hold_lease(warehouse._bench.catalog, "o_Helper", PART_ZERO + 4):
            airflow_site.clear("o_two", run.run_id, ["load"], downstream=True)
            for _ in airflow_site._poll("Helper to run, and to wait", 240):
                is_running = states(airflow_site, "o_two", run)["Helper"] == "running"
                if is_running and "; waiting." in airflow_site.log("o_two", run.run_id, "Helper"):
                    break
            tries = count_tries(airflow_site, "o_two", {0: run}, "Helper")[0]
            airflow_site.clear("o_two", run.run_id, ["Helper"], downstream=True)
            for _ in airflow_site._poll("Helper to run again", 240):
                if count_tries(airflow_site, "o_two", {0: run}, "Helper")[0] > tries:
                    break
        airflow_site.wait_for_runs("o_two", run_ids=[run.run_id])
        history = warehouse.version_history("o_Helper", ZERO + 4 * MINUTE)
        assert len({version.inputs_digest for version in history}) == len(history)
        assert warehouse.unready_parts("o_View2", PartSet.between(PART_ZERO + 1, PART_ZERO + 4)) == PartSet()
    hosts = [(host, ct) for host, ct, _ in read_views(airflow_warehouse, "o_")["Helper"][4]]
    assert hosts == [("x", 4), ("y", 1), ("z", 1)]
