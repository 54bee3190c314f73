"""Queries of one's own: what they are refused for, and that a filter on PART never loses a part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.compiler import compile_query
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import (
    LanguageError,
    MissingPartError,
    SubscriptError,
    UnknownTableError,
    ViewDFError,
)
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet

SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT src, loss FROM M;
CREATE TABLE d (src STRING) LOCATION 'd' FORMAT csv
"""
DEFINITIONS = {fold(item.name): item for item in parse_script(SCRIPT)}
EXISTING = PartSet.between(23667840, 23667850)


def existing(table: str) -> PartSet:
    return EXISTING


@pytest.mark.parametrize(
    ("sql", "error", "sentence"),
    [
        ("", LanguageError, "The query is empty; write a SELECT."),
        (" ; ", LanguageError, "The query is empty; write a SELECT."),
        (
            "DROP TABLE M",
            LanguageError,
            "Line 1, column 1: A query begins with SELECT or WITH, not with DROP.\n  DROP TABLE M\n  ^^^^",
        ),
        (
            "SELECT 1; SELECT 2",
            LanguageError,
            "Line 1, column 9: Only one query can be asked at a time; leave out what follows the semicolon.\n"
            "  SELECT 1; SELECT 2\n          ^",
        ),
        (
            "WITH a AS (SELECT 1) INSERT INTO M SELECT * FROM a",
            LanguageError,
            "Line 1, column 1: A query is expected here.\n"
            "  WITH a AS (SELECT 1) INSERT INTO M SELECT * FROM a\n"
            "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "SELECT *\nFROM Nothing",
            UnknownTableError,
            "Line 2, column 6: There is no table or view Nothing; create it first, or correct the name.\n"
            "  FROM Nothing\n       ^^^^^^^",
        ),
        (
            "SELECT * FROM V_quarantine",
            UnknownTableError,
            "Line 1, column 15: There is no table or view V_quarantine; create it first, or correct the name.\n"
            "  SELECT * FROM V_quarantine\n                ^^^^^^^^^^^^",
        ),
        (
            "SELECT * FROM M[j]",
            SubscriptError,
            "Line 1, column 17: j is not in scope: outside of a view there is no subscript variable; "
            "write a number, or a time in quotes.\n  SELECT * FROM M[j]\n                  ^",
        ),
        (
            "SELECT * FROM M['noon']",
            SubscriptError,
            "Line 1, column 17: 'noon' is not a time; write it like 2015-01-01T10:04.\n"
            "  SELECT * FROM M['noon']\n                  ^^^^^^",
        ),
        (
            "SELECT * FROM M[23667842 .. 23667841]",
            SubscriptError,
            "Line 1, column 15: The range 23667842 .. 23667841 runs backwards; write the earlier part first.\n"
            "  SELECT * FROM M[23667842 .. 23667841]\n                ^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "SELECT * FROM d[5]",
            LanguageError,
            "Line 1, column 15: d is a dimension table, which has no parts; leave the subscript out.\n"
            "  SELECT * FROM d[5]\n                ^^^^",
        ),
        (
            "SELECT * FROM M_quarantine[5]",
            LanguageError,
            "Line 1, column 15: M_quarantine has no parts; leave the subscript out.\n"
            "  SELECT * FROM M_quarantine[5]\n                ^^^^^^^^^^^^^^^",
        ),
        (
            "SELECT PART FROM M, V",
            LanguageError,
            "Line 1, column 8: PART is ambiguous; write M.PART or V.PART.\n  SELECT PART FROM M, V\n         ^^^^",
        ),
        (
            "SELECT M.PART, V.PART FROM M NATURAL JOIN V",
            LanguageError,
            "Line 1, column 30: PART and PART_TIMESTAMP of both sides of a NATURAL JOIN would become columns to join on; "
            "write ON or USING.\n  SELECT M.PART, V.PART FROM M NATURAL JOIN V\n                               ^^^^^^^^^^^^^^",
        ),
        (
            "SELECT * FROM M WHERE PART_TIMESTAMP = 'noon'",
            LanguageError,
            "Line 1, column 40: 'noon' is not a time; write it like 2015-01-01T10:04.\n"
            "  SELECT * FROM M WHERE PART_TIMESTAMP = 'noon'\n                                         ^^^^^^",
        ),
        (
            "SELECT * FROM M[23667851]",
            MissingPartError,
            "The query reads M[23667851] (2015-01-01T00:11), which has not been loaded. Load it, or declare it empty: "
            "viewdf declare-empty M --at 2015-01-01T00:11",
        ),
        (
            "SELECT * FROM V['2015-01-01 00:09' .. '2015-01-01 00:12']",
            MissingPartError,
            "The query reads V[23667851 .. 23667852] (2015-01-01T00:11 .. 2015-01-01T00:12), which do not exist. "
            "Compute what is missing: viewdf refresh V --from 2015-01-01T00:11 --to 2015-01-01T00:13",
        ),
    ],
)
def test_a_query_is_refused_with_one_sentence(sql: str, error: type[ViewDFError], sentence: str) -> None:
    with pytest.raises(error) as refused:
        compile_query(sql, DEFINITIONS, existing, "_q")
    assert str(refused.value) == sentence
    assert type(refused.value) is error


def test_the_suffix_is_in_every_name() -> None:
    compiled = compile_query("SELECT * FROM M, V[23667841], d, M_quarantine q", DEFINITIONS, existing, "_17")
    assert all(item.name.endswith("_17") for item in compiled.inputs)
    assert compiled.dimensions == (("d_17", "d"),)


PARTS = range(23667836, 23667856)
START = datetime(2015, 1, 1, tzinfo=UTC)

COMPARISONS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
Condition = tuple[str, "frozenset[int]"]


def holds_for(column: str, operator: str, value: int, mirrored: bool) -> Condition:
    """A condition as SQL, and the parts it holds for. `value` is a part, or so many half minutes since the start."""
    compare = COMPARISONS[operator]
    if column == "PART":
        number, text = 23667840 + value, str(23667840 + value)
        parts = {p for p in PARTS if (compare(number, p) if mirrored else compare(p, number))}
    else:
        time = START + timedelta(seconds=30 * value)
        text = f"'{time:%Y-%m-%d %H:%M:%S}'"
        times = {p: datetime.fromtimestamp(p * 60, tz=UTC) for p in PARTS}
        parts = {p for p in PARTS if (compare(time, times[p]) if mirrored else compare(times[p], time))}
    return (f"{text} {operator} {column}" if mirrored else f"{column} {operator} {text}"), frozenset(parts)


CONDITIONS = st.recursive(
    st.one_of(
        st.builds(
            holds_for,
            st.sampled_from(["PART", "PART_TIMESTAMP"]),
            st.sampled_from(list(COMPARISONS)),
            st.integers(-3, 13),
            st.booleans(),
        ),
        st.just(("loss > 1", frozenset(PARTS))),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: (f"({pair[0][0]} AND {pair[1][0]})", pair[0][1] & pair[1][1])),
        st.tuples(inner, inner).map(lambda pair: (f"({pair[0][0]} OR {pair[1][0]})", pair[0][1] | pair[1][1])),
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(CONDITIONS)
def test_a_filter_reads_exactly_the_existing_parts_it_names(condition: Condition) -> None:
    where, parts = condition
    compiled = compile_query(f"SELECT src FROM M WHERE {where}", DEFINITIONS, existing, "_q")
    (item,) = compiled.inputs
    assert list(item.parts) == sorted(parts & set(EXISTING))


@pytest.mark.parametrize(
    "where",
    [
        "NOT PART = 23667841",
        "PART <> 23667841",
        "PART + 1 = 23667841",
        "PART IN (SELECT 1)",
        "PART IS NULL",
        "PART NOT IN (5)",
    ],
)
def test_other_conditions_leave_no_part_out(where: str) -> None:
    compiled = compile_query(f"SELECT src FROM M WHERE {where}", DEFINITIONS, existing, "_q")
    (item,) = compiled.inputs
    assert item.parts == EXISTING
