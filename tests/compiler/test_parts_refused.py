"""Parts that cannot be compiled although their view is fine."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from airflow_provider_viewdf.compiler import compile_part
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError, SubscriptError
from airflow_provider_viewdf.language import parse_script

SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW V AS INITIALIZE V[i] AS SELECT x FROM M[i] UPDATE V[j] AS {0} PARTITION LENGTH 60
"""


def compile_update(query: str, index: int) -> str:
    definitions = {fold(item.name): item for item in parse_script(SCRIPT.format(query))}
    return compile_part(definitions["v"], "update", index, definitions).sql


def test_a_range_that_runs_backwards_for_this_part_is_refused() -> None:
    query = "SELECT x FROM M[100 .. j]"
    assert compile_update(query, 200)
    with pytest.raises(SubscriptError) as refused:
        compile_update(query, 99)
    assert str(refused.value) == (
        "V[99] (1970-01-01T01:39) reads M[100 .. j], which is M[100 .. 99] and runs backwards; it cannot be computed."
    )


def test_an_ambiguous_part_is_refused_with_its_place_in_the_statement() -> None:
    with pytest.raises(LanguageError) as refused:
        compile_update("SELECT PART + 1 AS p FROM M[j] a, M[j-1] b", 5)
    assert str(refused.value).startswith("Line 1, column 78: PART is ambiguous; write a.PART or b.PART.\n")


def test_no_part_table_is_left_in_the_statement() -> None:
    sql = compile_update("SELECT x FROM M[j] WHERE x IN (SELECT x FROM V[j-1] UNION SELECT x FROM M[j-3..j])", 5)
    names = {table.name for table in sqlglot.parse_one(sql, dialect="spark").find_all(exp.Table)}
    assert names == {"M_5", "V_4", "M_2_5"}
