"""One statement for many parts: what it says, and that it reads what the statements of single parts read."""

from __future__ import annotations

import re

import pytest
from golden import CASES, Case

from airflow_provider_viewdf.compiler import compile_batch, compile_part, find_inputs, unite_parts
from airflow_provider_viewdf.definitions import Rule
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet

PARTS = [case for case in (Case.read(path) for path in CASES) if case.asked.startswith("part")]


@pytest.mark.parametrize("case", PARTS, ids=lambda case: case.asked)
def test_many_parts_read_what_each_of_them_reads(case: Case) -> None:
    match = re.fullmatch(r"part (\w+)\[(-?\d+)\] by (initialize|update)", case.asked)
    assert match is not None
    definition = case.definitions[match.group(1).lower()]
    rule: Rule = "initialize" if match.group(3) == "initialize" else "update"
    indexes = [int(match.group(2)) + number for number in range(3)]
    compiled = [compile_part(definition, rule, index, case.definitions) for index in indexes]
    read: dict[str, PartSet] = {}
    for index, part in zip(indexes, compiled, strict=True):
        inputs = [(item.table, item.parts) for item in part.inputs]
        assert find_inputs(definition, rule, index, case.definitions) == inputs
        for table, parts in inputs:
            read[table] = read.get(table, PartSet()) | PartSet((parts,))
    batch = compile_batch(definition, rule, indexes, case.definitions, "q")
    assert {item.table: item.parts for item in batch.inputs} == read
    assert [row[0] for row in batch.values] == indexes
    assert batch.dimensions == compiled[0].dimensions
    united = unite_parts(definition, rule, indexes, case.definitions)
    assert united is not None
    assert united.sql.count("UNION ALL") >= 2


def test_what_depends_on_the_part_is_a_column_of_the_list_of_parts() -> None:
    definitions = {
        item.name.lower(): item
        for item in parse_script(
            """CREATE STREAM S (ts TIMESTAMP ORDERED, k STRING) PARTITION LENGTH 60;
            CREATE VIEW W AS INITIALIZE W[i] AS SELECT k, now() AS n FROM S[i]
              UPDATE W[j] AS SELECT a.k, now() FROM S[j-2 .. j] a JOIN S[j/2] b ON a.k = b.k AND b.PART > 3
              PARTITION LENGTH 60"""
        )
    }
    batch = compile_batch(definitions["w"], "update", [-1, 4], definitions, "q")
    assert " ".join(batch.sql.split()) == (
        "SELECT __of.__part, __rows.* FROM batch_q AS __of, LATERAL ( SELECT a.k, timestamp_seconds(__of.__end) AS `now()` "
        "FROM ( SELECT __t.`ts`, __t.`k` FROM `S_q` AS __t JOIN ( SELECT __part AS __for, "
        "EXPLODE(SEQUENCE(__low0, __high0)) AS __read FROM batch_q ) AS __r ON __t.PART = __r.__read "
        "WHERE __r.__for = __of.__part ) AS a JOIN ( SELECT __t.`ts`, __t.`k`, __t.PART, "
        "timestamp_seconds(__t.PART * 60) AS PART_TIMESTAMP FROM `S_q` AS __t WHERE __t.PART = __of.__low1 ) AS b "
        "ON a.k = b.k AND b.PART > 3 ) AS __rows"
    )
    assert batch.values_columns == ("__part", "__end", "__low0", "__high0", "__low1", "__high1")
    assert batch.values == ((-1, 0, -3, -1, -1, -1), (4, 300, 2, 4, 2, 2))
    assert [(item.name, str(item.parts)) for item in batch.inputs] == [("S_q", "-3 .. -1, 2 .. 4")]
