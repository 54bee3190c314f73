"""PARTIAL ranges: what they read, and how they are written."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.compiler import compile_part, compile_query
from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.errors import MissingPartError, SubscriptError
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet

SCRIPT = """CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW V AS INITIALIZE V[i] AS SELECT x FROM M[i - 3 .. i{0}] UPDATE V[j] AS SELECT x FROM M[j - 3 .. j{0}]
PARTITION LENGTH 60"""


def define(words: str) -> dict[str, Definition]:
    return {item.name.lower(): item for item in parse_script(SCRIPT.format(words))}


@pytest.mark.parametrize(
    ("first", "low"),
    [(None, 10), (2, 7), (7, 7), (9, 9), (10, 10)],
    ids=["no part", "long ago", "same", "later", "last"],
)
def test_a_partial_range_is_cut_at_the_first_part_and_remembers_its_reach(first: int | None, low: int) -> None:
    definitions = define(" PARTIAL")
    compiled = compile_part(definitions["v"], "update", 10, definitions, lambda table: first)
    (read,) = compiled.inputs
    assert (read.parts, read.reach) == (PartRange(low, 10), PartRange(7, 10))
    assert read.name == ("M_10" if low == 10 else f"M_{low}_10")


def test_a_range_that_is_not_partial_is_never_cut() -> None:
    definitions = define("")
    (read,) = compile_part(definitions["v"], "update", 10, definitions, lambda table: 9).inputs
    assert (read.parts, read.reach) == (PartRange(7, 10), PartRange(7, 10))


def test_partial_is_part_of_what_a_view_means() -> None:
    assert define("")["v"].digest != define(" PARTIAL")["v"].digest
    assert define(" partial")["v"].digest == define(" PARTIAL")["v"].digest
    assert [str(item) for item in define(" PARTIAL")["v"].references] == [
        "M[i - 3 .. i PARTIAL]",
        "M[j - 3 .. j PARTIAL]",
    ]


def test_only_a_range_can_be_partial() -> None:
    with pytest.raises(SubscriptError) as caught:
        parse_script(SCRIPT.format("").replace("M[j - 3 .. j]", "M[j PARTIAL]"))
    assert caught.value.reason == (
        "PARTIAL is not expected here; a subscript is one expression, or two with .. in between."
    )


def test_a_query_of_ones_own_may_be_partial_too() -> None:
    definitions = define("")

    def existing(table: str) -> PartSet:
        return PartSet.between(5, 9)

    (read,) = compile_query("SELECT * FROM M[2 .. 7 PARTIAL]", definitions, existing, "_q").inputs
    assert read.parts == PartSet.between(5, 7)
    with pytest.raises(MissingPartError):
        compile_query("SELECT * FROM M[2 .. 7]", definitions, existing, "_q")
    with pytest.raises(MissingPartError):
        compile_query("SELECT * FROM M[7 .. 12 PARTIAL]", definitions, existing, "_q")
