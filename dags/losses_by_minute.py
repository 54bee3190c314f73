"""Minutely sums, from a feed that delivers half an hour at a time. `losses_by_hour` follows, in a DAG of its own.

Run it by a backfill (of 2015-01-01 10:00 to 10:30, say) once it is unpaused.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from loss_measurements import measure_loss

from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = "losses_by_minute.sql"

with DAG(
    "losses_by_minute",
    description="How many packets each host loses in a minute",
    schedule=CronDataIntervalTimetable("*/30 * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    end_date=datetime(2015, 1, 1, 12, tzinfo=UTC),
    catchup=False,
    tags=["viewdf"],
    doc_md=__doc__,
):
    load = LoadOperator(task_id="load_losses", table="losses", source=measure_loss, sql=SQL)
    load >> ViewDFOperator(task_id="losses_by_minute", sql=SQL)
