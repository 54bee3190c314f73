"""`make demo`: the network monitor on a real Airflow and a real Spark, with late data, in about six minutes.

Everything lives in `.demo`, which each run begins anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.warehouse import Warehouse
from demo.airflow_client import Run
from demo.airflow_site import AirflowSite, leave_on_signals

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".demo"
DAG = "network_monitor"
START = datetime(2015, 1, 1, 10, 0, tzinfo=UTC)
MINUTES = 12
LATE = datetime(2015, 1, 1, 10, 2, tzinfo=UTC)

console = Console(highlight=False)


def main() -> None:
    started = time.monotonic()
    shutil.rmtree(HOME, ignore_errors=True)
    warehouse = HOME / "warehouse"
    late = HOME / "late"
    console.print("Starting a Spark Connect server and an Airflow (API server, scheduler, DAG processor, triggerer)")
    with leave_on_signals(), ConnectServer(HOME / "spark-connect.log", master="local[2]") as spark:
        env = {
            "AIRFLOW_CONN_VIEWDF_DEFAULT": _connection("viewdf", extra={"warehouse": str(warehouse)}),
            "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": _connection("spark_connect", host="sc://127.0.0.1", port=spark.port),
            "LOSS_MEASUREMENTS_DIR": str(late),
        }
        with AirflowSite(HOME / "airflow", ROOT / "dags", env=env, on_progress=_say) as site:
            _run(site, spark, warehouse, late)
            took = time.monotonic() - started
            console.print(f"\nDone in {took // 60:.0f} min {took % 60:.0f} s.")
            if os.environ.get("KEEP"):
                _keep(site)
    console.print("Everything is stopped. `make demo KEEP=1` leaves Airflow up to look around in.")


def _run(site: AirflowSite, spark: ConnectServer, warehouse: Path, late: Path) -> None:
    link = f"{site.url}/dags/{DAG}/grid"
    console.print(f"Airflow: {link}  (user {site.user}, password {site.password})")
    site.wait_until_parsed(DAG)
    site.unpause(DAG)

    console.print(f"\n[bold]1. A backfill of {MINUTES} minutes, four runs at a time[/bold]")
    backfill = site.backfill(DAG, START, START + timedelta(minutes=MINUTES - 1), max_active_runs=4)
    with _progress("minutes", MINUTES) as show:
        runs = site.wait_for_backfill(backfill, timeout_seconds=900, on_progress=show)
    with Warehouse.open(warehouse, remote=spark.url) as wh:
        console.print(_show_view2(wh, "View2: more than ten packets lost, four minutes in a row or longer"))
        before = _versions(wh)

        console.print("\n[bold]2. A measurement of 10:02 arrives late[/bold]")
        subprocess.run(
            [sys.executable, str(ROOT / "dags" / "loss_measurements.py"), "deliver", f"{LATE:%Y-%m-%dT%H:%M}"],
            env={**os.environ, "LOSS_MEASUREMENTS_DIR": str(late)},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        run = next(run for run in runs if run.logical_date == LATE)
        cleared = site.clear(DAG, run.run_id, ["load_M"], downstream=True)
        console.print(f"Cleared the run of 10:02, as the UI's Clear does: {', '.join(task for _, task in cleared)}")
        with _progress("run of 10:02", 1) as show:
            site.wait_for_runs(DAG, run_ids=[run.run_id], timeout_seconds=300, on_progress=show)

        console.print("\n[bold]3. What that changed, and no more[/bold]")
        console.print(_show_changes(before, _versions(wh)))
        console.print(_show_view2(wh, "View2 now"))
    console.print(f"See it in Airflow: {link}")


def _show_view2(wh: Warehouse, title: str) -> Table:
    rows = wh.query(
        "SELECT date_format(PART_TIMESTAMP, 'HH:mm') AS part, src, dest, ct, sum_loss FROM View2 "
        "ORDER BY part, src, dest"
    ).collect()
    table = Table("part", "src", "dest", "ct", "sum_loss", title=title, title_justify="left")
    for row in rows:
        table.add_row(*(str(value) for value in row))
    return table


def _versions(wh: Warehouse) -> dict[tuple[str, int], tuple[str, int, int]]:
    """By table and part: its time, version and rows."""
    lengths = {item.name: item for item in wh.definitions()}
    return {
        (version.table, version.index): (
            f"{lengths[version.table].partitioning.start_of(version.index):%H:%M}",
            version.version,
            version.rows,
        )
        for version in wh.changed_since(datetime(2000, 1, 1, tzinfo=UTC))
    }


def _show_changes(
    before: dict[tuple[str, int], tuple[str, int, int]], after: dict[tuple[str, int], tuple[str, int, int]]
) -> Table:
    changed = [key for key in sorted(after) if after[key] != before.get(key)]
    table = Table(
        "table", "part", "version", "rows", title=f"{len(changed)} of {len(after)} parts", title_justify="left"
    )
    for key in changed:
        time_of_part, version, rows = after[key]
        _, old_version, old_rows = before.get(key, ("", 0, 0))
        table.add_row(key[0], time_of_part, f"v{old_version} -> v{version}", f"{old_rows} -> {rows}")
    return table


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[Sequence[Run]], None]]:
    columns = (SpinnerColumn(), TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)

        def show(runs: Sequence[Run]) -> None:
            progress.update(task, completed=sum(run.is_finished for run in runs))

        yield show


def _keep(site: AirflowSite) -> None:
    console.print(f"Airflow stays up at {site.url} (user {site.user}, password {site.password}). Ctrl-C ends it.")
    try:
        while site.is_running:
            time.sleep(1)
    except KeyboardInterrupt:
        pass


def _connection(conn_type: str, **fields: object) -> str:
    return json.dumps({"conn_type": conn_type, **fields})


def _say(message: str) -> None:
    console.print(f"  {message}")


if __name__ == "__main__":
    main()
