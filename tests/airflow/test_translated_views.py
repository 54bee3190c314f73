"""A pattern view and a window view, with the helper views they become, through a real scheduler: late rows and a cleared run.

Two scheduled runs of three minutes each. The helper view of the pattern is a task of its own, those of the window are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from site_samples import read_parts, states
from warehouse.pattern_oracle import Check, find_matches

from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from demo.airflow_site import AirflowSite

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
FIRST = 23668440
MINUTE = timedelta(minutes=1)
WIDTH = 4

SOURCE = '''
from datetime import UTC, datetime
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow_provider_viewdf import ViewDFTaskGroup

STREAM = "CREATE STREAM tv_M (ts TIMESTAMP ORDERED, host STRING, loss INT) PARTITION LENGTH 60;"
PATTERN = STREAM + """
CREATE VIEW tv_Runs AS SELECT host, count(*) AS ct, sum(loss) AS total FROM tv_M PATTERN [a, b+]
  WHERE a.loss > 10 AND b.loss > a.loss GROUP BY host
"""
WINDOW = STREAM + """
CREATE VIEW tv_Sums AS SELECT host, sum(loss) AS total, max(loss) AS worst FROM tv_M [WINDOW 4 minutes] GROUP BY host
  WITH (strategy = 'dyadic')
"""

with DAG(
    "translated",
    schedule=CronDataIntervalTimetable("*/3 * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    end_date=datetime(2015, 1, 1, 10, 3, tzinfo=UTC),
    catchup=True,
):
    ViewDFTaskGroup("patterns", PATTERN, show_helpers=True, poll_interval=1)
    ViewDFTaskGroup("windows", WINDOW, poll_interval=1)
'''

# By host, the loss of each minute; None: no row. The row of host x in minute 2 is late.
LOSSES: dict[str, list[int | None]] = {
    "x": [5, 12, 13, 20, 14, 30],
    "y": [20, 21, 9, 11, None, 40],
    "z": [11, 12, 13, 14, 15, 16],
}
EARLY = {**LOSSES, "x": [5, 12, None, 20, 14, 30]}

CHECKS = (
    Check("a.loss > 10", "a", lambda bound: bound.last("a", "loss") > 10),
    Check("b.loss > a.loss", "b", lambda bound: bound.last("b", "loss") > bound.last("a", "loss")),
)


def load(warehouse: Path, remote: str, losses: dict[str, list[int | None]], minutes: Sequence[int]) -> None:
    with Warehouse.open(warehouse, remote=remote) as opened:
        opened.apply(SOURCE.split('STREAM = "')[1].split('"')[0])
        for number in minutes:
            at = START + number * MINUTE
            rows = [
                {"ts": at, "host": host, "loss": of[number]} for host, of in losses.items() if of[number] is not None
            ]
            opened.load("tv_M", rows, batch_id=f"minute {number}", covers=(at, at + MINUTE))


def compute_expected(losses: dict[str, list[int | None]]) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    """Both views from scratch: every stretch of rows is tried, every window is added up."""
    runs: dict[int, list[tuple[Any, ...]]] = {FIRST + number: [] for number in range(6)}
    sums: dict[int, list[tuple[Any, ...]]] = {}
    for host, of in sorted(losses.items()):
        parts = [[] if loss is None else [{"ts": START + n * MINUTE, "loss": loss}] for n, loss in enumerate(of)]
        pattern = ("seq", ("a",), ("rep", ("b",), 1, None))
        for number, match in enumerate(find_matches(pattern, CHECKS, parts)):
            if match is not None:
                runs[FIRST + number].append((host, len(match.rows), sum(row["loss"] for row in match.rows)))
        for number in range(WIDTH - 1, 6):
            inside = [loss for loss in of[number - WIDTH + 1 : number + 1] if loss is not None]
            sums.setdefault(FIRST + number, []).append((host, sum(inside), max(inside)))
    return {"tv_Runs": runs, "tv_Sums": sums}


def read_views(warehouse: Path) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    return {view: read_parts(warehouse, view) for view in ("tv_Runs", "tv_Sums")}


def test_late_rows_and_a_cleared_run_of_a_pattern_view_and_a_window_view(
    airflow_site: AirflowSite, airflow_warehouse: Path, connect_server: ConnectServer
) -> None:
    load(airflow_warehouse, connect_server.url, EARLY, range(6))
    airflow_site.add_dag_file("translated.py", SOURCE, "translated")
    airflow_site.unpause("translated")
    runs = airflow_site.wait_for_runs("translated", logical_dates=[START, START + 3 * MINUTE])
    assert read_views(airflow_warehouse) == compute_expected(EARLY)
    assert states(airflow_site, "translated", runs[1]) == {
        "patterns.tv_M": "success",
        "patterns.tv_Runs_runs": "success",
        "patterns.tv_Runs": "success",
        "windows.tv_M": "success",
        "windows.tv_Sums": "success",
    }
    assert "tv_Runs_runs_" in airflow_site.rendered_fields("translated", runs[1].run_id, "patterns.tv_Runs")["sql"]
    # The first run ends before the first window is full: its task says so, and is no failure.
    assert "tv_Sums" in airflow_site.log("translated", runs[0].run_id, "windows.tv_Sums")

    expected = compute_expected(LOSSES)
    changed = {
        view: [index - FIRST for index in parts if parts[index] != compute_expected(EARLY)[view][index]]
        for view, parts in expected.items()
    }
    assert changed == {"tv_Runs": [2, 3, 4, 5], "tv_Sums": [3, 4, 5]}
    load(airflow_warehouse, connect_server.url, LOSSES, [2])
    airflow_site.clear("translated", runs[0].run_id, ["patterns.tv_Runs_runs", "windows.tv_Sums"], downstream=True)
    airflow_site.wait_for_runs("translated")

    assert read_views(airflow_warehouse) == expected
    with Warehouse.open(airflow_warehouse) as opened:
        assert opened.refresh(["tv_Runs", "tv_Sums"], dry_run=True).steps == ()
    log = airflow_site.log("translated", runs[0].run_id, "patterns.tv_Runs_runs")
    assert f"tv_Runs_runs[{FIRST + 5}]" in log
