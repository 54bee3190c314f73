"""Connections, as Airflow has them, and the warehouse and Spark that they lead to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.hooks.viewdf import SparkAddress, ViewDFHook, WarehouseAddress


@pytest.fixture
def define(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_connection(conn_id: str, **fields: Any) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    return set_connection


def test_a_connection_says_where_warehouse_and_catalog_are(define: Any) -> None:
    define("wh", conn_type="viewdf", extra={"warehouse": "s3a://bucket/wh", "catalog_url": "sqlite:////tmp/c.db"})

    assert ViewDFHook("wh").find_warehouse() == WarehouseAddress("s3a://bucket/wh", "sqlite:////tmp/c.db")


def test_the_password_field_completes_the_catalog_url(define: Any) -> None:
    url = "postgresql+psycopg://viewdf@db/viewdf"
    define("wh", conn_type="viewdf", password="p@ss", extra={"warehouse": "/wh", "catalog_url": url})

    address = ViewDFHook("wh").find_warehouse()

    assert address.catalog_url == "postgresql+psycopg://viewdf:p%40ss@db/viewdf"
    assert "p%40ss" not in repr(address)


def test_without_the_default_connection_the_warehouse_is_in_airflow_home() -> None:
    from airflow.configuration import AIRFLOW_HOME

    assert ViewDFHook().find_warehouse() == WarehouseAddress(str(Path(AIRFLOW_HOME, "viewdf")))
    assert asyncio.run(ViewDFHook().afind_warehouse()) == ViewDFHook().find_warehouse()


def test_a_misspelt_connection_does_not_lead_to_another_warehouse() -> None:
    with pytest.raises(UsageError) as error:
        ViewDFHook("viewdf_prod").find_warehouse()

    assert str(error.value) == (
        "There is no connection viewdf_prod; define it, with the type viewdf and the field Warehouse."
    )


def test_a_connection_without_a_warehouse_is_refused(define: Any) -> None:
    define("wh", conn_type="viewdf", extra={"catalog_url": "sqlite://"})

    with pytest.raises(UsageError) as error:
        ViewDFHook("wh").find_warehouse()

    assert str(error.value) == (
        "The connection wh does not say where the warehouse is; "
        'give its extra a field such as "warehouse": "/data/warehouse".'
    )


def test_spark_is_local_unless_a_connection_is_defined() -> None:
    assert ViewDFHook().find_spark() == SparkAddress()


def test_a_defined_default_connection_is_used_and_spark_connect_comes_first(define: Any) -> None:
    define("spark_default", conn_type="spark", host="spark://master", port=7077, extra={"spark.executor.memory": "2g"})
    classic = ViewDFHook().find_spark()
    define("spark_connect_default", conn_type="spark_connect", host="sc://server", port=15002)
    connect = ViewDFHook().find_spark()

    assert classic == SparkAddress(master="spark://master:7077", conf={"spark.executor.memory": "2g"})
    assert connect == SparkAddress(remote="sc://server:15002")


def test_a_named_spark_connection_is_read_as_the_spark_provider_reads_it(define: Any) -> None:
    define("mine", conn_type="spark_connect", host="server", port=443, login="me", extra={"use_ssl": True})
    define("local", conn_type="spark", host="local[2]")

    assert ViewDFHook(spark_conn_id="mine").find_spark().remote == "sc://server:443/;user_id=me;use_ssl=True"
    assert ViewDFHook(spark_conn_id="local").find_spark() == SparkAddress(master="local[2]")
    with pytest.raises(AirflowNotFoundException):
        ViewDFHook(spark_conn_id="missing").find_spark()


def test_the_test_button_looks_into_the_catalog(define: Any, tmp_path: Path) -> None:
    define("wh", conn_type="viewdf", extra={"warehouse": str(tmp_path / "wh")})
    define("bad", conn_type="viewdf")

    assert ViewDFHook("wh").test_connection() == (True, "The catalog answers, and has 0 definitions.")
    assert ViewDFHook("bad").test_connection()[0] is False
