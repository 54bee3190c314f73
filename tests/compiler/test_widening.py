"""Which types go into which without loss."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.compiler import can_widen


@pytest.mark.parametrize(
    ("from_type", "to_type"),
    [
        ("int", "int"),
        ("tinyint", "smallint"),
        ("byte", "short"),
        ("int", "bigint"),
        ("INTEGER", "LONG"),
        ("int", "double"),
        ("smallint", "float"),
        ("float", "double"),
        ("int", "decimal(10,0)"),
        ("int", "decimal(12,2)"),
        ("bigint", "decimal(19,0)"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("decimal(10,2)", "decimal(10, 2)"),
        ("date", "timestamp"),
        ("void", "string"),
        ("void", "array<int>"),
        ("array<int>", "array<bigint>"),
        ("map<string,int>", "map<string,double>"),
        ("struct<a:int,b:array<float>>", "struct<c:bigint,d:array<double>>"),
        ("struct<`a:b`:int>", "struct<x:bigint>"),
        ("array<void>", "array<struct<a:int>>"),
        ("map<string,struct<a:decimal(10,2),b:int>>", "map<string,struct<a:decimal(11,2),b:bigint>>"),
    ],
)
def test_a_type_widens(from_type: str, to_type: str) -> None:
    assert can_widen(from_type, to_type)


@pytest.mark.parametrize(
    ("from_type", "to_type"),
    [
        ("bigint", "int"),
        ("bigint", "double"),
        ("int", "float"),
        ("double", "float"),
        ("double", "decimal(38,10)"),
        ("int", "decimal(10,2)"),
        ("bigint", "decimal(18,0)"),
        ("decimal(10,2)", "decimal(10,1)"),
        ("decimal(10,2)", "decimal(10,4)"),
        ("decimal(10,0)", "int"),
        ("decimal(5,2)", "double"),
        ("timestamp", "date"),
        ("timestamp_ntz", "timestamp"),
        ("int", "string"),
        ("string", "int"),
        ("boolean", "int"),
        ("int", "void"),
        ("array<bigint>", "array<int>"),
        ("array<int>", "map<int,int>"),
        ("array<int>", "int"),
        ("struct<a:int>", "struct<a:int,b:int>"),
        ("struct<a:int,b:string>", "struct<b:string,a:int>"),
    ],
)
def test_a_type_does_not_widen(from_type: str, to_type: str) -> None:
    assert not can_widen(from_type, to_type)
