"""Which parts of its view a task may compute for other runs of its DAG, so that these need no Spark of their own.

In a backfill of a thousand runs the first task to come finds the work of many others ready to be done. It may do that of
runs that exist, whether they wait or have failed, and, in a DAG that catches up, of every interval of its schedule up to now.
What runs will never be is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_viewdf.hooks.runs import RunSpan
from airflow_provider_viewdf.parts import Partitioning, PartSet, as_time

logger = logging.getLogger(__name__)

# Of these logical dates, of how many is there a run?
CountRuns = Callable[[list[datetime]], int]


def find_parts_of_other_runs(
    context: Mapping[str, Any], span: RunSpan, partitioning: Partitioning, offset: int, limit: int
) -> PartSet:
    """The parts of runs near this one in time, `limit` runs in both directions at most."""
    dag = context.get("dag")
    if limit < 1 or dag is None:
        return PartSet()
    try:
        if getattr(dag, "catchup", False) and dag.start_date is not None:
            return find_parts_of_schedule(span, partitioning, offset, dag.start_date, dag.end_date, datetime.now(UTC))
        ti = context["ti"]
        return find_parts_of_runs(
            span, partitioning, offset, limit, lambda dates: ti.get_dr_count(dag_id=ti.dag_id, logical_dates=dates)
        )
    except Exception as error:
        # To do the work of others is a courtesy, which must not make a task fail.
        logger.info("The other runs of the DAG are not known (%s); only this run's parts are computed.", error)
        return PartSet()


def find_parts_of_schedule(
    span: RunSpan,
    partitioning: Partitioning,
    offset: int,
    start: datetime,
    end: datetime | None,
    now: datetime,
) -> PartSet:
    """The parts of every run from a DAG's start_date to its end_date, or until now."""
    length = span.end - span.start
    last = as_time(now) if end is None else min(as_time(now), as_time(end) + length)
    if last <= as_time(start):
        return PartSet()
    return RunSpan(as_time(start), last).parts(partitioning, offset)


def find_parts_of_runs(
    span: RunSpan, partitioning: Partitioning, offset: int, limit: int, count_runs: CountRuns
) -> PartSet:
    """The parts of the runs that follow this one, and of those that precede it, as far as they exist without a gap."""
    step = span.end - span.start or timedelta(seconds=partitioning.length_seconds)
    found = PartSet()
    for direction in (1, -1):
        spans = [
            RunSpan(span.start + direction * number * step, span.end + direction * number * step)
            for number in range(1, limit + 1)
        ]
        existing = _count_first(spans, count_runs)
        for other in spans[:existing]:
            found |= other.parts(partitioning, offset)
    return found


def _count_first(spans: list[RunSpan], count_runs: CountRuns) -> int:
    """How many of these spans, from the first on without a gap, have a run: by doubling, then by halving."""

    def have_all(number: int) -> bool:
        return count_runs([span.start for span in spans[:number]]) == number

    known, beyond = 0, 1
    while beyond <= len(spans) and have_all(beyond):
        known, beyond = beyond, beyond * 2
    beyond = min(beyond, len(spans) + 1)
    while beyond - known > 1:
        middle = (known + beyond) // 2
        if have_all(middle):
            known = middle
        else:
            beyond = middle
    return known
