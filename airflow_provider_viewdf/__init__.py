"""Declarative, incremental materialized views for Apache Airflow, on Spark.

The names below are imported when they are first used, so that a DAG file imports only what it needs, and never PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_viewdf.hooks.viewdf import ViewDFHook
    from airflow_provider_viewdf.operators.load import LoadOperator
    from airflow_provider_viewdf.operators.maintenance import ViewDFMaintenanceOperator
    from airflow_provider_viewdf.operators.viewdf import ViewDFOperator
    from airflow_provider_viewdf.sensors.partition import PartitionSensor
    from airflow_provider_viewdf.task_groups.viewdf import ViewDFTaskGroup
    from airflow_provider_viewdf.timetables.parts import after_parts_of
    from airflow_provider_viewdf.warehouse import Warehouse

__version__ = "0.1.0"

_MODULES = {
    "LoadOperator": "operators.load",
    "PartitionSensor": "sensors.partition",
    "ViewDFHook": "hooks.viewdf",
    "ViewDFMaintenanceOperator": "operators.maintenance",
    "ViewDFOperator": "operators.viewdf",
    "ViewDFTaskGroup": "task_groups.viewdf",
    "Warehouse": "warehouse",
    "after_parts_of": "timetables.parts",
}

__all__ = [
    "LoadOperator",
    "PartitionSensor",
    "ViewDFHook",
    "ViewDFMaintenanceOperator",
    "ViewDFOperator",
    "ViewDFTaskGroup",
    "Warehouse",
    "__version__",
    "after_parts_of",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
