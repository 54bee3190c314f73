"""Airflow's connections as a `Warehouse`: where it is, and which Spark works for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.versions import Producer

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from pyspark.sql import SparkSession

    from airflow_provider_viewdf.warehouse import Warehouse

DEFAULT_CONNECTION = "viewdf_default"
DEFAULT_SPARK_CONNECTIONS = ("spark_connect_default", "spark_default")


@dataclass(frozen=True, slots=True)
class WarehouseAddress:
    """Where the part files and the catalog are. No catalog URL: the SQLite file in the warehouse."""

    location: str
    catalog_url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """A Spark Connect server (`remote`), or the master of a Spark of one's own; neither: a local one."""

    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)


class ViewDFHook(BaseHook):
    """Opens the warehouse of a connection.

    :param viewdf_conn_id: a connection of type viewdf, whose extra has `warehouse` (a directory or URL) and may have
        `catalog_url`. If `viewdf_default` is not defined, there is a warehouse in the directory `viewdf` of AIRFLOW_HOME.
    :param spark_conn_id: a connection of type spark_connect, or of type spark. Without one: `spark_connect_default`, else
        `spark_default`, where they are defined, else a local Spark in the task's own process.
    :param produced_by: who is at work, for the catalog to remember.
    """

    conn_name_attr = "viewdf_conn_id"
    default_conn_name = DEFAULT_CONNECTION
    conn_type = "viewdf"
    hook_name = "ViewDF warehouse"

    def __init__(
        self,
        viewdf_conn_id: str = DEFAULT_CONNECTION,
        spark_conn_id: str | None = None,
        produced_by: Producer | None = None,
    ) -> None:
        super().__init__()
        self.viewdf_conn_id = viewdf_conn_id
        self.spark_conn_id = spark_conn_id
        self.produced_by = produced_by or Producer(name="airflow")
        self._spark: SparkSession | None = None
        self._is_remote = False

    @contextmanager
    def working_warehouse(self) -> Iterator[Warehouse]:
        """The warehouse for the length of a task, and no longer the Spark session that was opened for it."""
        try:
            with self.get_conn() as warehouse:
                yield warehouse
        finally:
            self.release_spark()

    def release_spark(self, *, stop: bool = False) -> None:
        """End the session on a Spark Connect server; a local Spark only if told to, since it ends with its process."""
        spark, self._spark = self._spark, None
        if spark is not None and (stop or self._is_remote):
            spark.stop()

    def get_conn(self) -> Warehouse:
        """The warehouse. Spark is looked up and opened only when something needs it."""
        return open_warehouse(self.find_warehouse(), self)

    def find_warehouse(self) -> WarehouseAddress:
        try:
            return read_warehouse_address(self.get_connection(self.viewdf_conn_id))
        except AirflowNotFoundException:
            return self._address_without_connection()

    async def afind_warehouse(self) -> WarehouseAddress:
        """The same in the triggerer, where the event loop must not be held up."""
        try:
            return read_warehouse_address(await self.aget_connection(self.viewdf_conn_id))
        except AirflowNotFoundException:
            return self._address_without_connection()

    def _address_without_connection(self) -> WarehouseAddress:
        if self.viewdf_conn_id != DEFAULT_CONNECTION:
            # A misspelt name must not lead to another warehouse than the one that was meant.
            raise UsageError(
                f"There is no connection {self.viewdf_conn_id}; define it, with the type viewdf and the field Warehouse."
            )
        return WarehouseAddress(os.path.join(_find_airflow_home(), "viewdf"))

    def find_spark(self) -> SparkAddress:
        if self.spark_conn_id is not None:
            return read_spark_address(self.get_connection(self.spark_conn_id))
        for conn_id in DEFAULT_SPARK_CONNECTIONS:
            try:
                return read_spark_address(self.get_connection(conn_id))
            except AirflowNotFoundException:
                continue
        return SparkAddress()

    def open_spark(self) -> SparkSession:
        from airflow_provider_viewdf.engine.sessions import open_session

        address = self.find_spark()
        where = "a Spark Connect server" if address.remote else address.master or "a local Spark"
        self.log.info("Working with %s.", where)
        self._is_remote = address.remote is not None
        self._spark = open_session(master=address.master, remote=address.remote, conf=address.conf)
        return self._spark

    def test_connection(self) -> tuple[bool, str]:
        """What the connection form's Test button says."""
        from airflow_provider_viewdf.errors import ViewDFError

        try:
            with self.get_conn() as warehouse:
                count = len(warehouse.definitions())
        except (ViewDFError, OSError) as error:
            return False, str(error)
        return True, f"The catalog answers, and has {count} definition{'' if count == 1 else 's'}."


def open_warehouse(address: WarehouseAddress, hook: ViewDFHook | None = None) -> Warehouse:
    """A warehouse at an address; without a hook, one for looking only, since it cannot find a Spark of the site's."""
    from airflow_provider_viewdf.warehouse import Warehouse

    if hook is None:
        return Warehouse.open(address.location, address.catalog_url, produced_by=Producer(name="airflow"))
    return Warehouse.open(
        address.location, address.catalog_url, open_spark=hook.open_spark, produced_by=hook.produced_by
    )


def find_producer(context: Mapping[str, Any]) -> Producer:
    """The task try that a context belongs to."""
    ti = context["ti"]
    return Producer(ti.dag_id, ti.run_id, ti.task_id, ti.try_number)


def read_warehouse_address(connection: Connection) -> WarehouseAddress:
    extra = connection.extra_dejson
    location = extra.get("warehouse")
    if not location:
        raise UsageError(
            f"The connection {connection.conn_id} does not say where the warehouse is; "
            'give its extra a field such as "warehouse": "/data/warehouse".'
        )
    url = extra.get("catalog_url") or None
    if url and connection.password:
        from sqlalchemy import make_url

        url = make_url(url).set(password=connection.password).render_as_string(hide_password=False)
    return WarehouseAddress(str(location), url)


def read_spark_address(connection: Connection) -> SparkAddress:
    """The Spark that a connection of the Spark provider names, read by the provider's own classes."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    conf = {key: str(value) for key, value in connection.extra_dejson.items() if key.startswith("spark.")}
    if connection.conn_type == SparkConnectHook.conn_type:
        return SparkAddress(remote=_tidy_remote(SparkConnectHook(connection.conn_id).get_connection_url()), conf=conf)
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    # The provider offers no public way to ask for the master alone.
    master = SparkSubmitHook(conn_id=connection.conn_id)._connection["master"]
    return SparkAddress(master=str(master), conf=conf)


def _tidy_remote(url: str) -> str:
    # The provider ends every URL in "/;": PySpark takes an empty list of parameters for a malformed one.
    return url.removesuffix(";").removesuffix("/")


def _find_airflow_home() -> str:
    from airflow.configuration import AIRFLOW_HOME

    return str(AIRFLOW_HOME)
