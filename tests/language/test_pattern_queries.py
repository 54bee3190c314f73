"""What can be written in a pattern query."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.language.dialect import read_tokens
from airflow_provider_viewdf.language.pattern_queries import is_pattern

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;\n"


def notes(statement: str) -> tuple[str, ...]:
    definition = parse_script(STREAM + statement)[-1]
    assert definition.translation is not None
    return definition.translation.notes


def test_brackets_and_parentheses_mean_the_same() -> None:
    query = "CREATE VIEW V AS SELECT src FROM M PATTERN {} WHERE a.loss > 1 GROUP BY src"
    assert notes(query.format("[a, b+]")) == notes(query.format("(a, b+)"))


def test_words_of_sql_in_any_case_can_be_variables_and_comments_stand_anywhere() -> None:
    found = notes(
        "CREATE VIEW V AS SELECT src FROM M PATTERN [start, /* the */ end+] -- x\n"
        "WHERE START.loss > 1 AND End[ i - 1 /* before */ ].loss < eNd.loss GROUP BY src"
    )
    assert found[3:6] == (
        "  begin -> 1: start.loss > 1",
        "  1 -> 2: any row",
        "  2 -> 2: end[i-1].loss < end.loss",
    )


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("[a{2,3}]", ["a#1", "a#2, ends a match", "a#3, ends a match"]),
        ("[a{2,}]", ["a#1", "a#2, ends a match"]),
        ("[a{2}, b?]", ["a#1", "a#2, ends a match", "b, ends a match"]),
        ("[a | b, c]", ["a, ends a match", "b", "c, ends a match"]),
        ("[(a | b), c*]", ["a, ends a match", "b, ends a match", "c, ends a match"]),
    ],
)
def test_quantifiers_and_alternatives_become_states(pattern: str, states: list[str]) -> None:
    found = notes(f"CREATE VIEW V AS SELECT src FROM M PATTERN {pattern} WHERE a.loss > 1 GROUP BY src")
    assert [line.split(": ", 1)[1] for line in found if line.startswith("  state ")] == states


def test_a_hundred_states_are_written_in_a_text_that_does_not_grow_with_their_square() -> None:
    # One test of states per state, each with a list of all the states before it, took a quarter of a minute to parse.
    view = parse_script(STREAM + "CREATE VIEW V AS SELECT src FROM M PATTERN [a{1,100}] WHERE a.loss > 1 GROUP BY src")[
        -1
    ]
    assert view.translation is not None
    assert len(view.translation.helpers[0].text) < 60_000


def test_only_what_follows_from_is_a_pattern_query() -> None:
    assert is_pattern(read_tokens("SELECT x FROM M PATTERN [a]"))
    assert is_pattern(read_tokens("SELECT x FROM M m pattern (a)"))
    assert not is_pattern(read_tokens("SELECT pattern(x) FROM M"))
    assert not is_pattern(read_tokens("SELECT x FROM pattern(1)"))
    assert not is_pattern(read_tokens("SELECT x FROM M WHERE y = 'PATTERN [a]'"))


def test_the_helper_view_says_whose_it_is_and_the_view_keeps_the_text() -> None:
    statement = "CREATE VIEW V AS SELECT src FROM M PATTERN [a] WHERE a.loss > 1 GROUP BY src"
    _, helper, view = parse_script(STREAM + statement)
    assert (helper.name, helper.owners, view.name, view.text) == ("V_runs", ("V",), "V", statement)
    assert (helper.keys, view.keys) == (("src",), ("src",))


def test_the_layout_of_a_pattern_query_does_not_change_its_digest() -> None:
    one = parse_script(
        STREAM + "CREATE VIEW V AS SELECT src FROM M PATTERN [a, b+] WHERE a.loss > 1 AND b.loss > 2 GROUP BY src"
    )
    two = parse_script(
        STREAM
        + "create view V as select src from M\n pattern [a , b +] -- here\n where a.loss>1 and b.loss>2 group by src"
    )
    assert [item.digest for item in one] == [item.digest for item in two]
