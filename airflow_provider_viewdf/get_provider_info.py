"""What Airflow is told about this provider. It imports nothing: Airflow calls it in every process."""

from __future__ import annotations

from typing import Any

INTEGRATION = "ViewDF"


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-provider-viewdf",
        "name": "ViewDF",
        "description": "Declarative, incremental materialized views on Spark.",
        "integrations": [
            {
                "integration-name": INTEGRATION,
                "tags": ["software"],
            }
        ],
        "operators": _modules("operators.load", "operators.maintenance", "operators.viewdf"),
        "sensors": _modules("sensors.partition"),
        "hooks": _modules("hooks.viewdf"),
        "triggers": _modules("triggers.parts"),
        "connection-types": [
            {
                "hook-class-name": "airflow_provider_viewdf.hooks.viewdf.ViewDFHook",
                "hook-name": "ViewDF warehouse",
                "connection-type": "viewdf",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "port", "schema", "login"],
                    "relabeling": {"password": "Password of the catalog's database"},
                },
                "conn-fields": {
                    "warehouse": {
                        "label": "Warehouse",
                        "description": "The directory of the part files, as Spark reaches it: /data/warehouse, s3a://...",
                        "schema": {"type": ["string", "null"]},
                    },
                    "catalog_url": {
                        "label": "Catalog URL",
                        "description": (
                            "The catalog's database, such as postgresql+psycopg://viewdf@db/viewdf. "
                            "Left empty: a SQLite file in the warehouse."
                        ),
                        "schema": {"type": ["string", "null"], "format": "password"},
                    },
                },
            }
        ],
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [
        {
            "integration-name": INTEGRATION,
            "python-modules": [f"airflow_provider_viewdf.{name}" for name in names],
        }
    ]
