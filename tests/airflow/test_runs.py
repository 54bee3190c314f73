"""Which parts are a run's parts: every kind of run that Airflow knows, as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest

from airflow_provider_viewdf.errors import PartDateError, TimeFormatError
from airflow_provider_viewdf.hooks.runs import RunSpan, explain_no_parts, find_span, find_span_of
from airflow_provider_viewdf.parts import Partitioning, PartSet

T = datetime(2015, 1, 1, 10, 4, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
PART = 23668444  # of length 60, at T

minutely, hourly = Partitioning(60), Partitioning(3600)


@pytest.mark.parametrize(
    ("logical_date", "interval", "other", "expected"),
    [
        pytest.param(T, (T, T), {}, [PART], id="cron string or timedelta: an interval without length"),
        pytest.param(T, (T, T + MINUTE), {}, [PART], id="data-interval timetable"),
        pytest.param(T - MINUTE, (T - MINUTE, T), {}, [PART - 1], id="cron trigger timetable with an interval"),
        pytest.param(T, (T, T + MINUTE), {}, [PART], id="backfill"),
        pytest.param(T, (T - MINUTE, T), {}, [PART], id="manual with a logical date: the interval lies before it"),
        pytest.param(T, (T, T + 3 * MINUTE), {}, [PART, PART + 1, PART + 2], id="manual with an interval"),
        pytest.param(T, None, {}, [PART], id="logical date without interval"),
        pytest.param(None, None, {"conf": {"at": "2015-01-01T10:04:30"}}, [PART], id="no date, conf"),
        pytest.param(None, None, {"partition_date": T}, [PART], id="partitioned timetable"),
        pytest.param(
            None, None, {"partition_date": T, "conf": {"at": "1999-01-01"}}, [PART], id="partition date first"
        ),
        pytest.param(None, None, {"partition_key": "2015-01-01T10:04"}, [PART], id="partition key of a part"),
        pytest.param(
            None, None, {"partition_key": "eu", "conf": {"at": "2015-01-01T10:04"}}, [PART], id="another partition key"
        ),
    ],
)
def test_a_run_is_for_the_parts_that_end_in_its_span(
    logical_date: datetime | None,
    interval: tuple[datetime, datetime] | None,
    other: dict[str, Any],
    expected: list[int],
) -> None:
    start, end = interval or (None, None)

    span = find_span(logical_date, start, end, **other)

    assert list(span.parts(minutely)) == expected


@pytest.mark.parametrize(
    ("start", "length", "partitioning", "expected"),
    [
        (T.replace(minute=0), HOUR, minutely, PartSet.between(PART - 4, PART + 55)),
        (T, MINUTE, hourly, PartSet()),
        (T.replace(minute=59), MINUTE, hourly, PartSet.of_indexes([394474])),
        (T + timedelta(seconds=30), MINUTE, minutely, PartSet.of_indexes([PART])),
        (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), MINUTE, minutely, PartSet.of_indexes([-1])),
    ],
    ids=["sixty minutes", "an hour that is not over", "an hour that is over", "off the grid", "before 1970"],
)
def test_lengths_of_run_and_part_may_differ(
    start: datetime, length: timedelta, partitioning: Partitioning, expected: PartSet
) -> None:
    assert RunSpan(start, start + length).parts(partitioning) == expected


def test_an_offset_moves_by_parts_of_the_table() -> None:
    span = RunSpan(T.replace(minute=59), T.replace(minute=59) + MINUTE)

    assert list(span.parts(minutely, -1)) == [23668498]
    assert list(span.parts(hourly, -1)) == [394473]
    assert not RunSpan(T, T + MINUTE).parts(hourly, -1)


def test_a_batch_covers_the_span_or_the_part_around_the_moment() -> None:
    assert RunSpan(T, T + MINUTE).bounds(minutely) == (T, T + MINUTE)
    assert RunSpan(T, T + MINUTE).bounds(minutely, -2) == (T - 2 * MINUTE, T - MINUTE)
    assert RunSpan(T + timedelta(seconds=9), T + timedelta(seconds=9)).bounds(minutely) == (T, T + MINUTE)


def test_dates_of_airflow_are_dates_of_pendulum_in_any_zone() -> None:
    logical_date = pendulum.instance(T).in_timezone("America/Toronto")

    span = find_span_of(
        {
            "logical_date": logical_date,
            "data_interval_start": logical_date,
            "data_interval_end": logical_date.add(minutes=1),
            "dag_run": SimpleNamespace(conf={}),
        }
    )

    assert span == RunSpan(T, T + MINUTE)
    assert type(span.start) is datetime


@pytest.mark.parametrize("conf", [None, {}, {"other": 1}])
def test_a_run_without_any_date_is_told_what_to_give(conf: dict[str, Any] | None) -> None:
    with pytest.raises(PartDateError) as error:
        find_span_of({"dag_run": SimpleNamespace(conf=conf)})

    assert str(error.value) == (
        "This run has no logical date and no partition date, so it names no part; trigger it with a logical date, or with "
        'a configuration such as {"at": "2015-01-01T10:04"}.'
    )


def test_a_configuration_with_a_bad_time_is_refused() -> None:
    with pytest.raises(TimeFormatError) as error:
        find_span(None, conf={"at": "ten past nine"})

    assert str(error.value) == "'ten past nine' is not a time; write it like 2015-01-01T10:04."


def test_a_run_without_parts_says_when_the_part_ends() -> None:
    assert explain_no_parts("View3", hourly, RunSpan(T, T + MINUTE)) == (
        "View3[394474] (2015-01-01T10:00) ends at 2015-01-01T11:00, which is not in this run's span, "
        "2015-01-01T10:04 to 2015-01-01T10:05."
    )


@pytest.mark.parametrize(
    ("start", "end", "partitioning", "offset", "expected"),
    [
        pytest.param(T, T + MINUTE, minutely, 0, PART, id="its own part"),
        pytest.param(T, T + MINUTE, minutely, -1, PART - 1, id="its own part, moved"),
        pytest.param(T, T, minutely, 0, PART, id="a moment"),
        pytest.param(T, T + MINUTE, hourly, 0, 394473, id="an hour that it does not complete is a later part"),
        pytest.param(T + 55 * MINUTE, T + 56 * MINUTE, hourly, 0, 394474, id="an hour that it completes is not"),
    ],
)
def test_the_last_part_of_a_run_is_where_later_parts_begin(
    start: datetime, end: datetime, partitioning: Partitioning, offset: int, expected: int
) -> None:
    assert RunSpan(start, end).last_part(partitioning, offset) == expected
