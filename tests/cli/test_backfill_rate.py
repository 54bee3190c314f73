"""A thousand minutes of the demo, backfilled by the real `viewdf` command on two cores: how many jobs, and at what rate."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_viewdf.warehouse import Warehouse

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2015, 1, 1, 10, tzinfo=UTC)
MINUTES = 1000
MOST_JOBS_PER_100_PARTS = 4

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


def run_viewdf(folder: Path, *arguments: str) -> str:
    """What the command says on stderr. Its Spark writes a log of events, from which jobs can be counted."""
    done = subprocess.run(
        [Path(sys.executable).with_name("viewdf"), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "VIEWDF_WAREHOUSE": str(folder / "wh"),
            "SPARK_CONF_DIR": str(folder / "conf"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def count_jobs(folder: Path) -> int:
    """The jobs that Spark says it started, in all logs of events so far."""
    logs = [file for file in (folder / "events").rglob("*") if file.is_file() and not file.name.startswith(".")]
    return sum(
        json.loads(line)["Event"] == "SparkListenerJobStart" for log in logs for line in log.read_text().splitlines()
    )


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a warehouse that has the demo's definitions and a thousand minutes of its rows."""
    monkeypatch.syspath_prepend(str(ROOT / "dags"))
    monkeypatch.setenv("LOSS_MEASUREMENTS_DIR", str(tmp_path / "late"))
    from loss_measurements import measure_delay, measure_loss

    (tmp_path / "conf").mkdir()
    (tmp_path / "events").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir {(tmp_path / 'events').as_uri()}\n"
        "spark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n"
    )
    script = tmp_path / "network_monitor.sql"
    script.write_text(re.sub(r"\{\{.*?\}\}", "4", (ROOT / "dags" / "network_monitor.sql").read_text()))
    run_viewdf(tmp_path, "apply", str(script))
    end = START + timedelta(minutes=MINUTES)
    for table, rows in (("M", measure_loss(START, end)), ("N", measure_delay(START, end))):
        file = tmp_path / f"{table}.jsonl"
        file.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
        run_viewdf(tmp_path, "load", table, str(file), "--master", "local[2]")
    return tmp_path


def test_a_thousand_minutes_take_few_jobs(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # J is of minutes, View3 of hours; neither reads its own past. The hours that are not complete are not there.
    for view, parts in (("J", MINUTES), ("View3", MINUTES // 60)):
        before, started = count_jobs(demo), time.monotonic()
        said = run_viewdf(demo, "refresh", view, "--master", "local[2]")
        seconds, jobs = time.monotonic() - started, count_jobs(demo) - before
        with capsys.disabled():
            print(
                f"\n{view}: {parts} parts in {seconds:.1f} s, {parts / seconds:.1f} parts/s, {jobs} jobs; {said.splitlines()[-1]}"
            )
        groups = -(-parts // 100)
        assert 0 < jobs <= MOST_JOBS_PER_100_PARTS * groups
        with Warehouse.open(demo / "wh") as opened:
            assert len(opened.existing_parts(view)) == parts
            assert not opened.status(view)[0].stale
