"""Clearing in the UI, in each of its forms, with late_data="refresh" and "leave": which parts are right then, and which stay.

A late row of part 1 changes Helper in parts 1 to 3 and View2 in parts 2 and 3. Then a task of run 1 is cleared, with or without
what is downstream, with or without future runs. With "rerun" the same is in test_late_data.py.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from site_samples import read_parts

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from demo.airflow_client import Run
from demo.airflow_site import AirflowSite

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]

START = datetime(2015, 1, 1, 10, 1, tzinfo=UTC)
PART_ZERO = 23668440
MINUTE = timedelta(minutes=1)
PARTS = (1, 2, 3)
MODES = ("refresh", "leave")
LATE = ("late00", "late01", "late10", "late11")  # hosts whose row of part 1 is late

SQL = """
CREATE STREAM @_M (ts TIMESTAMP ORDERED, host STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW @_Helper AS
INITIALIZE @_Helper[i] AS SELECT host, 1 AS ct, CAST(loss AS BIGINT) AS sum_loss FROM @_M[i]
UPDATE @_Helper[j] AS
  SELECT m.host, COALESCE(h.ct, 0) + 1, COALESCE(h.sum_loss, 0) + m.loss
  FROM @_M[j] AS m LEFT OUTER JOIN @_Helper[j-1] AS h ON m.host = h.host
PARTITION LENGTH 60;
CREATE VIEW @_View2 AS SELECT host, ct, sum_loss FROM @_Helper WHERE ct >= 2
"""

SOURCE = f'''
from datetime import UTC, datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import ViewDFOperator

SQL = """{SQL}"""

for mode in {MODES}:
    with DAG(
        f"clear_{{mode}}",
        schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
        start_date=datetime(2015, 1, 1, 10, 1, tzinfo=UTC),
        end_date=datetime(2015, 1, 1, 10, 3, tzinfo=UTC),
        catchup=True,
    ):
        sql = SQL.replace("@", f"clear_{{mode}}")
        helper = ViewDFOperator(task_id="Helper", view=f"clear_{{mode}}_Helper", sql=sql, late_data=mode)
        helper >> ViewDFOperator(task_id="View2", view=f"clear_{{mode}}_View2", sql=sql, late_data=mode)
'''

Losses = dict[str, set[int]]
Rows = dict[int, list[tuple[Any, ...]]]


class Cleared:
    """The runs of both DAGs, and who has lost packets in which parts: one packet each, two in part 3."""

    def __init__(self, site: AirflowSite, warehouse: Path, remote: str) -> None:
        self.site, self.warehouse, self.remote = site, warehouse, remote
        self.losses: dict[str, Losses] = {mode: {"a": {1, 2, 3}, "b": {2}} for mode in MODES}
        for losses in self.losses.values():
            losses.update({host: {2, 3} for host in LATE})
        self.runs: dict[str, list[Run]] = {}

    def start(self) -> None:
        with Warehouse.open(self.warehouse, remote=self.remote) as opened:
            for mode in MODES:
                opened.apply(SQL.replace("@", f"clear_{mode}"), start=START)
                for number in PARTS:
                    self._load(opened, mode, number)
            # The runs will find their parts done, and start no Spark.
            opened.refresh([f"clear_{mode}_View2" for mode in MODES])
        self.site.add_dag_file("clear.py", SOURCE, *(f"clear_{mode}" for mode in MODES))
        for mode in MODES:
            self.site.unpause(f"clear_{mode}")
        dates = [START + (number - 1) * MINUTE for number in PARTS]
        self.runs = {mode: self.site.wait_for_runs(f"clear_{mode}", logical_dates=dates) for mode in MODES}

    def add_late_row(self, mode: str, host: str) -> None:
        """The row of part 1, when everything is computed with those of parts 2 and 3."""
        with Warehouse.open(self.warehouse, remote=self.remote) as opened:
            opened.refresh([f"clear_{mode}_View2"])
            self.losses[mode][host].add(1)
            self._load(opened, mode, 1)

    def _load(self, opened: Warehouse, mode: str, number: int) -> None:
        at = START + (number - 1) * MINUTE
        rows = [
            {"ts": at, "host": host, "loss": 2 if number == 3 else 1}
            for host, numbers in self.losses[mode].items()
            if number in numbers
        ]
        opened.load(f"clear_{mode}_M", rows, batch_id=f"part {number}", covers=(at, at + MINUTE))

    def read(self, mode: str) -> dict[str, Rows]:
        return {
            view: {
                index - PART_ZERO: rows for index, rows in read_parts(self.warehouse, f"clear_{mode}_{view}").items()
            }
            for view in ("Helper", "View2")
        }

    def compute(self, mode: str) -> dict[str, Rows]:
        """Both views from scratch, in plain Python."""
        helper: Rows = {}
        for number in PARTS:
            before = {row[0]: row for row in helper.get(number - 1, [])}
            rows = []
            for host in sorted(host for host, numbers in self.losses[mode].items() if number in numbers):
                _, ct, total = before.get(host, (host, 0, 0))
                rows.append((host, ct + 1, total + (2 if number == 3 else 1)))
            helper[number] = rows
        return {
            "Helper": helper,
            "View2": {number: [row for row in rows if row[1] >= 2] for number, rows in helper.items()},
        }


@pytest.fixture(scope="module")
def cleared(airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer) -> Cleared:
    made = Cleared(airflow_site, airflow_warehouse, connect_server.url)
    made.start()
    return made


def check_clearing(cleared: Cleared, mode: str, *, downstream: bool, future: bool) -> None:
    cleared.add_late_row(mode, f"late{downstream:d}{future:d}")
    before, right = cleared.read(mode), cleared.compute(mode)
    assert [number for number in PARTS if before["Helper"][number] != right["Helper"][number]] == [1, 2, 3]
    assert [number for number in PARTS if before["View2"][number] != right["View2"][number]] == [2, 3]
    runs, dag_id = cleared.runs[mode], f"clear_{mode}"

    found = cleared.site.clear(dag_id, runs[0].run_id, ["Helper"], downstream=downstream, future=future)
    cleared.site.wait_for_runs(dag_id)

    tasks = ("Helper", "View2") if downstream else ("Helper",)
    assert found == sorted((run.run_id, task) for run in (runs if future else runs[:1]) for task in tasks)
    # "refresh": a cleared task makes all of its view right. "leave": the parts of the runs that were cleared.
    numbers = PARTS if future or mode == "refresh" else (1,)
    expected = {
        view: {number: (right if view in tasks and number in numbers else before)[view][number] for number in PARTS}
        for view in right
    }
    assert cleared.read(mode) == expected
    # Nothing that is wrong passes for right: the next refresh would compute it.
    with Warehouse.open(cleared.warehouse) as opened:
        planned = opened.refresh([f"{dag_id}_View2"], dry_run=True)
    wrong = {
        (f"{dag_id}_{view}", PART_ZERO + number)
        for view in right
        for number in PARTS
        if expected[view][number] != right[view][number]
    }
    steps = {(step.view, step.index) for step in planned.steps}
    assert wrong <= steps
    assert bool(wrong) == bool(steps)


@pytest.mark.parametrize("mode", MODES)
def test_clearing_one_task_of_one_run(cleared: Cleared, mode: str) -> None:
    check_clearing(cleared, mode, downstream=False, future=False)


@pytest.mark.parametrize("mode", MODES)
def test_clearing_with_downstream_and_future_runs_makes_everything_right(cleared: Cleared, mode: str) -> None:
    check_clearing(cleared, mode, downstream=True, future=True)


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("downstream", "future"), [(True, False), (False, True)])
def test_clearing_with_either(cleared: Cleared, mode: str, downstream: bool, future: bool) -> None:
    check_clearing(cleared, mode, downstream=downstream, future=future)
