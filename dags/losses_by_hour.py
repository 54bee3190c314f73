"""Hourly sums over the minutely view of another DAG, `losses_by_minute`.

An hour is computed once its sixty minutes are there, and again when a late row has changed one of them, and only then: in the
runs between, the task is skipped.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from airflow_provider_viewdf import ViewDFOperator, after_parts_of

with DAG(
    "losses_by_hour",
    description="How many packets each host loses in an hour",
    schedule=after_parts_of("losses_by_minute", length="1 hour"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    tags=["viewdf"],
    doc_md=__doc__,
):
    ViewDFOperator(task_id="losses_by_hour", sql="losses_by_hour.sql", incomplete="skip")
