"""Which parts are a run's parts. Pure: dates in, part sets out.

A run's span is `[logical date, logical date + length of its data interval)`, and its parts are those that end inside: one
if the lengths agree, sixty minutes in an hourly DAG, and none for an hour that this minute does not complete. A data interval
without length (Airflow 3's default for cron strings) stands for the part that contains the logical date.

Never `data_interval_start` alone: in a manual run it lies before the logical date, and sites choose whether cron strings
have intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_viewdf.errors import PartDateError, TimeFormatError
from airflow_provider_viewdf.parts import Partitioning, PartRange, PartSet, as_time, format_time, parse_time


@dataclass(frozen=True, slots=True)
class RunSpan:
    """The time that a run is for. Without length it is a moment, and means the part around it."""

    start: datetime
    end: datetime

    @property
    def is_moment(self) -> bool:
        return self.end <= self.start

    def parts(self, partitioning: Partitioning, offset: int = 0) -> PartSet:
        """The run's parts of a table: those that end inside the span, moved by `offset` parts."""
        found: PartRange | None
        if self.is_moment:
            index = partitioning.index_at(self.start)
            found = PartRange(index, index)
        else:
            found = partitioning.parts_ending_within(self.start, self.end)
        return PartSet() if found is None else PartSet.between(found.low + offset, found.high + offset)

    def last_part(self, partitioning: Partitioning, offset: int = 0) -> int:
        """The run's last part or, if it has none, the one before what its span does not complete."""
        parts = self.parts(partitioning, offset)
        return parts.last if parts else partitioning.index_at(self.end) - 1 + offset

    def bounds(self, partitioning: Partitioning, offset: int = 0) -> tuple[datetime, datetime]:
        """From when to when a batch loaded by the run is for: the span itself, or the part around the moment."""
        shift = partitioning.start_of(offset) - partitioning.start_of(0)
        if self.is_moment:
            index = partitioning.index_at(self.start)
            return partitioning.start_of(index) + shift, partitioning.end_of(index) + shift
        return self.start + shift, self.end + shift

    def __str__(self) -> str:
        if self.is_moment:
            return f"at {format_time(self.start)}"
        return f"{format_time(self.start)} to {format_time(self.end)}"


def find_span(
    logical_date: datetime | None,
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
    partition_date: datetime | None = None,
    partition_key: str | None = None,
    conf: Mapping[str, Any] | None = None,
) -> RunSpan:
    """The span of a run, from what Airflow says about it."""
    if logical_date is not None:
        start = as_time(logical_date)
        if data_interval_start is None or data_interval_end is None:
            return RunSpan(start, start)
        return RunSpan(start, start + (as_time(data_interval_end) - as_time(data_interval_start)))
    if partition_date is not None:
        moment = as_time(partition_date)
        return RunSpan(moment, moment)
    at = (conf or {}).get("at")
    if at is None and partition_key is not None:
        # Behind an identity mapper a run has the key of the part that it follows, and no date. Keys of others mean others.
        with suppress(TimeFormatError):
            at = parse_time(partition_key)
    if at is not None:
        moment = as_time(at)
        return RunSpan(moment, moment)
    raise PartDateError(
        "This run has no logical date and no partition date, so it names no part; trigger it with a logical date, or with "
        'a configuration such as {"at": "2015-01-01T10:04"}.'
    )


def find_span_of(context: Mapping[str, Any]) -> RunSpan:
    """The span of the run that a task context belongs to. What a run does not have may be absent from the context."""
    return find_span(
        context.get("logical_date"),
        context.get("data_interval_start"),
        context.get("data_interval_end"),
        context.get("partition_date"),
        context.get("partition_key"),
        getattr(context.get("dag_run"), "conf", None),
    )


def has_date(context: Mapping[str, Any]) -> bool:
    """Whether the run says which part it is for."""
    try:
        find_span_of(context)
    except PartDateError:
        return False
    return True


def explain_no_parts(name: str, partitioning: Partitioning, span: RunSpan) -> str:
    """Why a run has no part of a table: `View3[394474] (2015-01-01T10:00) is not over ...`."""
    index = partitioning.index_at(span.start)
    return (
        f"{name}[{index}] ({partitioning.format(index)}) ends at {format_time(partitioning.end_of(index))}, "
        f"which is not in this run's span, {span}."
    )
