"""Which view a task means, what its rendered tab shows, and what it says when it gives up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import UnknownTableError, UsageError
from airflow_provider_viewdf.hooks.runs import RunSpan
from airflow_provider_viewdf.hooks.scripts import (
    blocked_parts,
    choose_view,
    describe_step,
    missing_parts_error,
    require_definition,
    resolve_sql,
)
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import PartsSetAside, StepReport

T = datetime(2015, 1, 1, 10, 4, tzinfo=UTC)
PART = 23668444
SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW Total AS
INITIALIZE Total[i] AS SELECT SUM(loss) AS loss FROM M[i]
UPDATE Total[j] AS SELECT SUM(loss) AS loss FROM (SELECT loss FROM M[j] UNION ALL SELECT loss FROM Total[j-1])
PARTITION LENGTH 60;
CREATE VIEW Bad AS SELECT src FROM M WHERE loss > 10;
CREATE VIEW Hourly AS
INITIALIZE Hourly[i] AS SELECT SUM(loss) AS loss FROM M[i*60 .. i*60+59]
UPDATE Hourly[j] AS SELECT SUM(loss) AS loss FROM M[j*60 .. j*60+59]
PARTITION LENGTH 3600
"""


@pytest.fixture(scope="module")
def definitions() -> list[Definition]:
    return parse_script(SCRIPT)


def test_the_view_is_the_one_named_or_the_one_named_like_the_task(definitions: list[Definition]) -> None:
    assert choose_view(definitions, "bad", "whatever").name == "Bad"
    assert choose_view(definitions, None, "total").name == "Total"
    assert choose_view(definitions, None, "network.Bad").name == "Bad"


def test_an_only_view_needs_no_name(definitions: list[Definition]) -> None:
    assert choose_view(definitions[:2], None, "refresh_it").name == "Total"


def test_an_unclear_view_is_refused_with_the_candidates(definitions: list[Definition]) -> None:
    with pytest.raises(UsageError) as error:
        choose_view(definitions, None, "refresh_it")

    assert str(error.value) == (
        "It is not clear which view task refresh_it is to refresh; it has Total, Bad, Hourly. "
        "Name the task like the view, or give view=..."
    )


def test_a_view_that_the_script_does_not_have_is_refused(definitions: list[Definition]) -> None:
    with pytest.raises(UsageError) as error:
        choose_view(definitions, "Totl", "refresh_it")

    assert str(error.value) == (
        "Task refresh_it is to refresh Totl, but the script has no such view; it has Total, Bad, Hourly."
    )


def test_a_table_that_nobody_has_defined_is_refused(definitions: list[Definition]) -> None:
    with pytest.raises(UnknownTableError) as error:
        require_definition(definitions, "N")

    assert str(error.value) == "N is not defined yet; give sql=... with its definition, or apply it beforehand."


def resolve(definitions: list[Definition], view: str, span: RunSpan) -> str:
    known = {fold(item.name): item for item in definitions}
    return resolve_sql(known[fold(view)], known, span)


def test_the_resolved_sql_has_part_tables_and_both_rules(definitions: list[Definition]) -> None:
    sql = resolve(definitions, "Total", RunSpan(T, T + timedelta(minutes=1)))

    update, initialize = sql.split("\n\n")
    assert update.splitlines()[0] == "-- Total[23668444] (2015-01-01T10:04), UPDATE"
    assert "FROM M_23668444" in update
    assert "FROM Total_23668443" in update
    assert initialize.splitlines()[0] == "-- Total[23668444] (2015-01-01T10:04), INITIALIZE"


def test_two_rules_of_one_text_are_shown_once(definitions: list[Definition]) -> None:
    sql = resolve(definitions, "Bad", RunSpan(T, T + timedelta(minutes=3)))

    assert sql.splitlines()[0] == "-- Bad[23668446] (2015-01-01T10:06), UPDATE (and 2 more parts)"
    assert sql.count("--") == 1


def test_a_part_that_the_run_does_not_complete_is_shown_as_such(definitions: list[Definition]) -> None:
    sql = resolve(definitions, "Hourly", RunSpan(T, T + timedelta(minutes=1)))

    assert sql.splitlines()[0] == "-- Hourly[394474] (2015-01-01T10:00), UPDATE (not computed by this run)"
    assert "M_23668440_23668499" in sql


def test_only_the_runs_own_parts_are_waited_for() -> None:
    blocked = [
        PartsSetAside("Total", PartSet.of_indexes([PART]), "it waits", (("M", PartSet.of_indexes([PART - 1, PART])),)),
        PartsSetAside("Total", PartSet.of_indexes([PART - 90]), "it waits", (("M", PartSet.of_indexes([PART - 90])),)),
        PartsSetAside("Bad", PartSet.of_indexes([PART]), "it waits", (("N", PartSet.of_indexes([PART])),)),
    ]

    assert blocked_parts(blocked, "TOTAL", PartSet.of_indexes([PART])) == {"M": PartSet.between(PART - 1, PART)}


def test_giving_up_lists_the_missing_parts_and_the_remedy(definitions: list[Definition]) -> None:
    error = missing_parts_error("Task Total", {"M": PartSet.between(PART, PART + 1), "N": PartSet()}, definitions, 59.6)

    assert str(error) == (
        "Task Total waited 60 seconds in vain for M[23668444 .. 23668445] (2015-01-01T10:04 .. 2015-01-01T10:05); "
        "N, which is not defined. Load it, or declare it empty: viewdf declare-empty M --at 2015-01-01T10:04; "
        "define and load N"
    )


def test_a_step_is_told_in_one_line() -> None:
    step = StepReport(
        "Total", PART, T, "update", "new", "published", 1, 2, 0.84, ("M[23668444] v1", "Total[23668443] v3")
    )

    assert describe_step(step, 1, 3, "Total[23668444] (2015-01-01T10:04)") == (
        "Total[23668444] (2015-01-01T10:04) by UPDATE (new): read M[23668444] v1, Total[23668443] v3; "
        "1 row, published as v2 in 0.8 s [1 of 3]"
    )
