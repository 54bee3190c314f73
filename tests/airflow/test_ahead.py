from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from airflow_provider_viewdf.hooks.ahead import find_parts_of_other_runs, find_parts_of_runs, find_parts_of_schedule
from airflow_provider_viewdf.hooks.runs import RunSpan
from airflow_provider_viewdf.parts import Partitioning, PartSet

START = datetime(2015, 1, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIRST = 23668440
MINUTES = Partitioning(60)


class Runs:
    """The runs of a DAG: a minute each, numbered from ten o'clock on. Counts how often it is asked."""

    def __init__(self, *numbers: int) -> None:
        self.dates = {START + number * MINUTE for number in numbers}
        self.calls = 0

    def count(self, dates: list[datetime]) -> int:
        self.calls += 1
        return len(self.dates & set(dates))


def span(number: int) -> RunSpan:
    return RunSpan(START + number * MINUTE, START + (number + 1) * MINUTE)


def test_the_parts_are_those_of_neighbouring_runs_without_a_gap() -> None:
    runs = Runs(*range(10), 11, 12)
    assert find_parts_of_runs(span(3), MINUTES, 0, 100, runs.count) == PartSet.between(
        FIRST, FIRST + 2
    ) | PartSet.between(FIRST + 4, FIRST + 9)
    assert find_parts_of_runs(span(3), MINUTES, 0, 2, runs.count) == PartSet.between(
        FIRST + 1, FIRST + 2
    ) | PartSet.between(FIRST + 4, FIRST + 5)


def test_a_run_alone_has_no_others_and_asks_twice() -> None:
    runs = Runs(3)
    assert find_parts_of_runs(span(3), MINUTES, 0, 100, runs.count) == PartSet()
    assert runs.calls == 2


def test_a_thousand_runs_are_found_by_a_few_questions() -> None:
    runs = Runs(*range(1000))
    assert len(find_parts_of_runs(span(0), MINUTES, 0, 700, runs.count)) == 700
    assert runs.calls < 25


def test_an_offset_and_hours_in_a_minutely_dag() -> None:
    runs = Runs(*range(130))
    assert find_parts_of_runs(span(0), MINUTES, -1, 3, runs.count) == PartSet.between(FIRST, FIRST + 2)
    hours = find_parts_of_runs(span(59), Partitioning(3600), 0, 100, runs.count)
    assert hours == PartSet.between(FIRST // 60 + 1, FIRST // 60 + 1)


def test_a_moment_stands_for_the_part_around_it() -> None:
    moment = RunSpan(START, START)
    assert find_parts_of_runs(moment, MINUTES, 0, 2, Runs(0, 1).count) == PartSet.between(FIRST + 1, FIRST + 1)


def test_a_dag_that_catches_up_may_do_its_schedule_until_now() -> None:
    def find(end: datetime | None, now: datetime) -> PartSet:
        return find_parts_of_schedule(span(0), MINUTES, 0, START, end, now)

    assert find(None, START + 5 * MINUTE) == PartSet.between(FIRST, FIRST + 4)
    assert find(START + 2 * MINUTE, START + 5 * MINUTE) == PartSet.between(FIRST, FIRST + 2)
    assert find(None, START) == PartSet()


def test_runs_that_cannot_be_asked_for_are_no_reason_to_fail() -> None:
    class Dag:
        catchup = False
        start_date = START
        end_date = None

    class Silent:
        dag_id = "d"

        def get_dr_count(self, **_: object) -> int:
            raise RuntimeError("no answer")

    context = {"dag": Dag(), "ti": Silent()}
    assert find_parts_of_other_runs(context, span(0), MINUTES, 0, 100) == PartSet()


def test_a_dag_that_ends_has_runs_up_to_its_end() -> None:
    with DAG("ahead", start_date=START, end_date=START + 4 * MINUTE, schedule=None, catchup=True) as dag:
        # Airflow makes them times of its own kind.
        assert type(dag.end_date) is not datetime
        assert find_parts_of_other_runs({"dag": dag}, span(0), MINUTES, 0, 100) == PartSet.between(FIRST, FIRST + 4)
