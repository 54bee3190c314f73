"""Runs that come about because parts of other DAGs' tables and views have a new content."""

from __future__ import annotations

from airflow.sdk import AssetAny, IdentityMapper, PartitionedAssetTimetable, StartOfDayMapper, StartOfHourMapper

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.hooks.assets import name_asset
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION
from airflow_provider_viewdf.parts import parse_length

# How Partitioning.format writes a part that begins on a whole minute.
KEY_FORMAT = "%Y-%m-%dT%H:%M"


def after_parts_of(
    *views: str, length: int | str | None = None, viewdf_conn_id: str = DEFAULT_CONNECTION
) -> PartitionedAssetTimetable:
    """A schedule: a run whenever parts of any of these views or tables have been published, for the part that contains them.

        with DAG("losses_by_hour", schedule=after_parts_of("losses_by_minute", length="1 hour")):
            ViewDFOperator(task_id="losses_by_hour", sql="losses_by_hour.sql", incomplete="skip")

    A run does not mean that there is something to compute: the hour may lack minutes. The operator decides that, exactly;
    with `incomplete="skip"` it is skipped if not.

    :param views: the views and tables that the DAG's view reads.
    :param length: the partition length of the DAG's view. For an hour and a day, the events of many parts that come at once make
        one run; for any other length, each part makes a run of its own.
    """
    if not views:
        raise UsageError("after_parts_of needs the name of at least one view or table.")
    seconds = None if length is None else parse_length(str(length))
    mapper: IdentityMapper | StartOfHourMapper | StartOfDayMapper = IdentityMapper()
    if seconds == 3600:
        mapper = StartOfHourMapper(input_format=KEY_FORMAT)
    elif seconds == 86400:
        mapper = StartOfDayMapper(input_format=KEY_FORMAT)
    assets = [name_asset(view, viewdf_conn_id) for view in views]
    return PartitionedAssetTimetable(
        assets=assets[0] if len(assets) == 1 else AssetAny(*assets), default_partition_mapper=mapper
    )
