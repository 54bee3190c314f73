"""The same network monitor, from its SQL alone: the task group makes the sensors, the view tasks and their order.

It works on the same tables and views as `network_monitor`, and may run beside it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from loss_measurements import measure_delay, measure_loss

from airflow_provider_viewdf import LoadOperator, ViewDFTaskGroup

SQL = "network_monitor.sql"

with DAG(
    "network_monitor_group",
    description="The network monitor as a task group",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    end_date=datetime(2015, 1, 1, 12, tzinfo=UTC),
    catchup=False,
    params={"minutes": 4},
    tags=["viewdf"],
    doc_md=__doc__,
):
    load_m = LoadOperator(task_id="load_M", table="M", source=measure_loss, sql=SQL, batch_id="loss-{{ ts_nodash }}")
    load_n = LoadOperator(task_id="load_N", table="N", source=measure_delay, sql=SQL, batch_id="delay-{{ ts_nodash }}")

    [load_m, load_n] >> ViewDFTaskGroup("network", sql=SQL)
