"""Looks after the warehouse once a day: archives what RETAIN lets go of, rolls up yesterday's minutes, cleans up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_viewdf import ViewDFMaintenanceOperator

with DAG(
    "viewdf_maintenance",
    description="Retention, roll-up and clean-up of the warehouse",
    schedule="@daily",
    start_date=datetime(2015, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["viewdf"],
    doc_md=__doc__,
):
    ViewDFMaintenanceOperator(task_id="maintain", span="1 day", older_than="1 day", grace=timedelta(hours=24))
