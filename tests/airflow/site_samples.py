"""What tests of a real Airflow look at: the parts in its warehouse, and the states of its tasks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet

from airflow_provider_viewdf import Warehouse
from demo.airflow_client import Run
from demo.airflow_site import AirflowSite


def read_parts(warehouse: Path, table: str, catalog_url: str | None = None) -> dict[int, list[tuple[Any, ...]]]:
    """A view's current parts, read from their files without Spark."""
    with Warehouse.open(warehouse, catalog_url) as opened:
        versions = opened.changed_since(datetime(1970, 1, 1, tzinfo=UTC), table)
    return {
        version.index: sorted(
            tuple(row.values()) for row in pyarrow.parquet.read_table(warehouse / version.location).to_pylist()
        )
        if version.location
        else []
        for version in versions
    }


def states(site: AirflowSite, dag_id: str, run: Run) -> dict[str, str | None]:
    return {task.task_id: task.state for task in site.task_instances(dag_id, run.run_id)}
