"""The digest of rows, on classic Spark and on Spark Connect."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_viewdf.engine.digests import hash_row, name_type, read_digest, sum_hashes
from airflow_provider_viewdf.versions import ContentDigest


def digest(rows: DataFrame) -> ContentDigest:
    hashes = rows.selectExpr(f"{hash_row(rows.schema)} AS h")
    return read_digest(hashes.selectExpr(*sum_hashes("h")).collect()[0].asDict())


def digest_of(spark: SparkSession, *selects: str) -> ContentDigest:
    return digest(spark.sql(" UNION ALL ".join(f"SELECT {select}" for select in selects)))


# The same rows have this digest on either Spark, and have to keep it: catalogs remember it.
REMEMBERED = {
    "1": "1:671c4132:a7074877",
    "CAST(NULL AS INT)": "1:becba5d3:ee1049da",
    "CAST(12.34 AS DECIMAL(10,2)), CAST(12.34 AS DECIMAL(30,2))": "1:48b347bb:55c1312f",
    "TIMESTAMP'1969-12-31 23:59:59.999999', DATE'0001-01-01', 'text', X'00FF', true, 1.5D": "1:c47cb758:43049d26",
    "array(1, NULL), named_struct('a', 1, 'b', array('x')), map('k', 1, 'l', NULL)": "1:cc591204:3a2eba01",
}


@pytest.mark.parametrize("select", REMEMBERED)
def test_a_digest_is_what_it_always_was(spark: SparkSession, select: str) -> None:
    assert str(digest_of(spark, select)) == REMEMBERED[select]


def test_no_rows_have_the_digest_that_adds_nothing(spark: SparkSession) -> None:
    assert digest(spark.sql("SELECT 1 WHERE false")) == ContentDigest()


def test_the_digest_of_a_union_is_the_sum_of_the_digests(spark: SparkSession) -> None:
    a, b = digest_of(spark, "1, 'x'", "2, 'y'"), digest_of(spark, "2, 'y'", "3, NULL")
    assert digest_of(spark, "1, 'x'", "2, 'y'", "2, 'y'", "3, NULL") == a + b


def test_order_and_partitioning_do_not_matter(spark: SparkSession) -> None:
    rows = spark.range(1000).selectExpr("id", "CAST(id % 7 AS STRING) AS t", "id / 3 AS d")
    expected = digest(rows)
    assert digest(rows.orderBy("t", "d")) == expected
    assert digest(rows.repartition(5, "t")) == expected


def test_column_names_do_not_matter(spark: SparkSession) -> None:
    assert digest_of(spark, "1 AS a, 2 AS b") == digest_of(spark, "1 AS x, 2 AS y")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["1"], ["1", "1"]),
        (["1", "1"], ["2", "2"]),
        (["1, 2"], ["2, 1"]),
        (["1"], ["1L"]),
        (["CAST(NULL AS INT), 5"], ["5, CAST(NULL AS INT)"]),
        (["CAST(NULL AS STRING)"], ["''"]),
        (["'a', 'bc'"], ["'ab', 'c'"]),
        (["array(1, 2), array(3)"], ["array(1), array(2, 3)"]),
        (["array(1, NULL)"], ["array(NULL, 1)"]),
        (["array(CAST(NULL AS INT))"], ["CAST(array() AS ARRAY<INT>)"]),
        (["CAST(NULL AS ARRAY<INT>)"], ["CAST(array() AS ARRAY<INT>)"]),
        (["array(array(1), array(2, 3))"], ["array(array(1, 2), array(3))"]),
        (["named_struct('a', CAST(NULL AS INT), 'b', 1)"], ["named_struct('a', 1, 'b', CAST(NULL AS INT))"]),
        (["named_struct('a', CAST(NULL AS INT))"], ["CAST(NULL AS STRUCT<a: INT>)"]),
        (["map('a', 1, 'b', 2)"], ["map('a', 2, 'b', 1)"]),
        (["map('a', CAST(NULL AS INT))"], ["CAST(map() AS MAP<STRING, INT>)"]),
        (["TIMESTAMP'1969-12-31 23:59:59.999999'"], ["TIMESTAMP'1969-12-31 23:59:59.999998'"]),
    ],
)
def test_different_rows_have_different_digests(spark: SparkSession, one: list[str], other: list[str]) -> None:
    assert digest_of(spark, *one) != digest_of(spark, *other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0.0D", "-0.0D"),
        ("CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE) - CAST('Infinity' AS DOUBLE)"),
        ("array(0.0D)", "array(-0.0D)"),
        ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)"),
        ("array(map('a', 1, 'b', 2))", "array(map('b', 2, 'a', 1))"),
    ],
)
def test_equal_rows_have_equal_digests(spark: SparkSession, one: str, other: str) -> None:
    assert digest_of(spark, one) == digest_of(spark, other)


@pytest.mark.parametrize(
    "type",
    [
        "int",
        "decimal(10,2)",
        "timestamp",
        "array<struct<a:int,b:string>>",
        "map<string,array<bigint>>",
        "struct<`a b`:int,`c``d`:string>",
    ],
)
def test_a_type_is_named_as_spark_reads_it_back(spark: SparkSession, type: str) -> None:
    assert name_type(spark.sql(f"SELECT CAST(NULL AS {type})").schema.fields[0].dataType) == type
