"""How fast a backfill of the demo is: `python -m bench.backfill [MINUTES]` loads so many minutes and refreshes its views.

For each view: parts per second, and Spark jobs per 100 parts, counted by the highest job number in Spark's status store.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "dags"))

START = datetime(2015, 1, 1, 10, tzinfo=UTC)


def main(minutes: int, views: list[str]) -> None:
    from loss_measurements import measure_delay, measure_loss

    from airflow_provider_viewdf import Warehouse
    from airflow_provider_viewdf.engine.sessions import open_session

    spark = open_session(master="local[2]")
    end = START + timedelta(minutes=minutes)
    script = re.sub(r"\{\{.*?\}\}", "4", (ROOT / "dags" / "network_monitor.sql").read_text())
    with tempfile.TemporaryDirectory() as folder, Warehouse.open(folder, spark=spark) as warehouse:
        warehouse.apply(script)
        warehouse.load("M", measure_loss(START, end), covers=(START, end))
        warehouse.load("N", measure_delay(START, end), covers=(START, end))
        for view in views:
            jobs, started = count_jobs(spark), time.monotonic()
            report = warehouse.refresh(view)
            by_view: dict[str, int] = {}
            for step in report.steps:
                by_view[step.view] = by_view.get(step.view, 0) + 1
            parts, seconds, jobs = len(report.steps), time.monotonic() - started, count_jobs(spark) - jobs
            print(
                f"{view}: {by_view} in {seconds:.1f} s, {parts / seconds:.1f} parts/s, "
                f"{100 * jobs / max(1, parts):.1f} jobs per 100 parts",
                flush=True,
            )


def count_jobs(spark: Any) -> int:
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return max((jobs.apply(number).jobId() for number in range(jobs.size())), default=-1) + 1


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:] or ["J", "View3"])
