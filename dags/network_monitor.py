"""The paper's network monitor, task by task.

It is about the morning of the paper's example, so run it by a backfill (of 10:00 to 10:12, say) once it is unpaused. For a
live feed, move `start_date` and take `end_date` away; with views that read their own past, let no minute be left out
(`catchup=True`).
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from loss_measurements import measure_delay, measure_loss

from airflow_provider_viewdf import LoadOperator, ViewDFOperator

SQL = "network_monitor.sql"

with DAG(
    "network_monitor",
    description="Losses on a network: who has been losing packets for four minutes or longer",
    schedule=CronDataIntervalTimetable("* * * * *", timezone="UTC"),
    start_date=datetime(2015, 1, 1, 10, tzinfo=UTC),
    end_date=datetime(2015, 1, 1, 12, tzinfo=UTC),
    catchup=False,
    params={"minutes": 4},
    tags=["viewdf"],
    doc_md=__doc__,
):
    # The batch is named after the minute, not after the DAG: network_monitor_group may load the same minute, and whoever
    # comes second changes nothing.
    load_m = LoadOperator(task_id="load_M", table="M", source=measure_loss, sql=SQL, batch_id="loss-{{ ts_nodash }}")
    load_n = LoadOperator(task_id="load_N", table="N", source=measure_delay, sql=SQL, batch_id="delay-{{ ts_nodash }}")

    helper = ViewDFOperator(task_id="Helper", sql=SQL)
    view2 = ViewDFOperator(task_id="View2", sql=SQL)
    band_join = ViewDFOperator(task_id="J", sql=SQL)
    # Skipped until the last minute of an hour.
    view3 = ViewDFOperator(task_id="View3", sql=SQL)

    load_m >> helper >> view2
    [load_m, load_n] >> band_join
    load_m >> view3
