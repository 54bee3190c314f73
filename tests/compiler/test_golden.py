"""Every golden case, and that Spark's own grammar (as far as sqlglot knows it) takes what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from golden import CASES, Case, describe_reads
from sqlglot import exp


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_a_case_compiles_to_what_its_file_says(path: Path) -> None:
    case = Case.read(path)
    compiled = case.compile()
    assert compiled.sql == case.sql
    assert describe_reads(compiled) == case.reads


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_the_tables_of_the_statement_are_what_it_says_it_reads(path: Path) -> None:
    compiled = Case.read(path).compile()
    tree = sqlglot.parse_one(compiled.sql, dialect="spark")
    commons = {common.alias for common in tree.find_all(exp.CTE)}
    named = {table.name for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)}
    reads = {line.split(" = ")[0] for line in describe_reads(compiled)}
    assert {name.lower() for name in named - commons} == {name.lower() for name in reads}


def test_compiling_twice_gives_the_same_and_leaves_the_definition_alone() -> None:
    for path in CASES:
        case = Case.read(path)
        before = {name: item.digest for name, item in case.definitions.items()}
        assert case.compile() == case.compile()
        assert case.definitions == Case.read(path).definitions
        assert {name: item.digest for name, item in case.definitions.items()} == before
