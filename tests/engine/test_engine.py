"""The contract of the engine, on classic Spark and on Spark Connect. What it writes is read with DuckDB."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from airflow_provider_viewdf.definitions import Column
from airflow_provider_viewdf.engine.engine import DimensionTable, Engine, InputTable, StreamPart
from airflow_provider_viewdf.errors import (
    LoadError,
    MissingDimensionError,
    QueryRefusedError,
    StepFailedError,
    UsageError,
)
from airflow_provider_viewdf.versions import ContentDigest, RejectedRow

M = (Column("ts", "timestamp"), Column("src", "string"), Column("loss", "int"))
PAIR = (Column("k", "string"), Column("n", "bigint"))


def path_of(engine: Engine, location: str) -> Path:
    return Path(engine.files.path(location))


def read(engine: Engine, location: str, columns: str = "*") -> list[tuple[Any, ...]]:
    """The rows of written files, in order, by a reader that is not Spark."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        files = path_of(engine, location) / "**" / "*.parquet"
        rows = connection.execute(
            f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning = false)"
        ).fetchall()
    return sorted(rows, key=repr)


def write_pairs(engine: Engine, location: str, *rows: tuple[str | None, int | None]) -> None:
    path = path_of(engine, location)
    path.mkdir(parents=True)
    pq.write_table(
        pa.table({"k": pa.array([k for k, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.int64())}),
        path / "part.parquet",
    )


def pairs(name: str, *locations: tuple[int, str], has_part_column: bool = False) -> InputTable:
    return InputTable(name, PAIR, locations, has_part_column)


# analyze


def test_the_columns_of_a_statement_are_known_without_any_file(engine: Engine) -> None:
    found = engine.analyze(
        "SELECT src, count(*) AS ct, sum(loss), max(price) AS top, collect_list(struct(loss, ts)) AS l, PART "
        "FROM M_5 JOIN d ON src = name GROUP BY src, PART",
        [InputTable("M_5", M, ((5, "M/5/nowhere"),), has_part_column=True)],
        [DimensionTable("d", (Column("name", "string"), Column("price", "decimal(10,2)")), "nowhere.csv", "csv")],
    )
    assert found == (
        Column("src", "string"),
        Column("ct", "bigint"),
        Column("sum(loss)", "bigint"),
        Column("top", "decimal(10,2)"),
        Column("l", "array<struct<loss:int,ts:timestamp>>"),
        Column("PART", "bigint"),
    )


def refusal(engine: Engine, sql: str) -> QueryRefusedError:
    with pytest.raises(QueryRefusedError) as caught:
        engine.analyze(sql, [InputTable("M_5", M, ())], [])
    return caught.value


def test_an_unknown_column_is_refused_with_its_name_and_what_may_have_been_meant(engine: Engine) -> None:
    error = refusal(engine, "SELECT los FROM M_5")
    assert str(error) == (
        "A column, variable, or function parameter with name `los` cannot be resolved. "
        "Did you mean one of the following? [`loss`, `ts`, `src`]."
    )
    assert error.condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert (error.name, error.fragment) == ("los", "los")
    assert error.suggestions == ("loss", "ts", "src")


def test_an_unknown_table_is_refused_with_its_name(engine: Engine) -> None:
    error = refusal(engine, "SELECT * FROM M_6")
    assert error.name == "M_6"
    assert str(error) == (
        "The table or view `M_6` cannot be found. Verify the spelling and correctness of the schema and catalog."
    )


def test_an_unknown_function_is_refused_with_its_name(engine: Engine) -> None:
    error = refusal(engine, "SELECT medain(loss) FROM M_5")
    assert (error.name, error.fragment) == ("medain", "medain(loss)")
    assert str(error) == "Cannot resolve routine `medain`."


def test_a_type_mismatch_is_refused_with_the_fragment(engine: Engine) -> None:
    error = refusal(engine, "SELECT loss + array(1) FROM M_5")
    assert (error.condition, error.fragment) == ("DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES", "loss + array(1)")


def test_a_syntax_error_is_refused(engine: Engine) -> None:
    assert refusal(engine, "SELECT (loss FROM M_5").condition == "PARSE_SYNTAX_ERROR"


# compute


def test_rows_are_written_once_with_the_declared_names_and_types(engine: Engine) -> None:
    columns = (Column("k", "string"), Column("total", "decimal(20,2)"), Column("moment", "timestamp"))
    digest = engine.compute(
        "SELECT 'a', 1, TIMESTAMP'1969-12-31 23:59:59.999999' UNION ALL SELECT NULL, NULL, NULL",
        [],
        [],
        columns,
        "V/7/v1",
    )
    assert digest.rows == 2
    assert read(engine, "V/7/v1", "k, total, moment") == [
        ("a", Decimal("1.00"), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        (None, None, None),
    ]
    schema = pq.read_schema(next(path_of(engine, "V/7/v1").glob("*.parquet")))
    assert schema.field("moment").type == pa.timestamp("us", tz="UTC")
    assert schema.field("total").type == pa.decimal128(20, 2)
    assert not (path_of(engine, "V/7/v1") / "_SUCCESS").exists()


def test_a_statement_reads_the_parts_it_is_given(engine: Engine) -> None:
    write_pairs(engine, "T/1/v1", ("a", 1))
    write_pairs(engine, "T/2/v1", ("a", 2), ("b", None))
    write_pairs(engine, "T/2/v2", ("z", 26))
    digest = engine.compute(
        "SELECT k, sum(n) FROM T_1_2 GROUP BY k", [pairs("T_1_2", (1, "T/1/v1"), (2, "T/2/v1"))], [], PAIR, "V/2/v1"
    )
    assert digest.rows == 2
    assert read(engine, "V/2/v1") == [("a", 3), ("b", None)]


def test_the_part_column_is_the_subscript_of_each_row_s_part_also_below_zero(engine: Engine) -> None:
    write_pairs(engine, "T/-5/v1-ab", ("a", 1))
    write_pairs(engine, "T/12/v3-cd", ("b", 2))
    table = pairs("T_n5_12", (-5, "T/-5/v1-ab"), (12, "T/12/v3-cd"), has_part_column=True)
    engine.compute("SELECT k, PART FROM T_n5_12", [table], [], PAIR, "V/12/v1")
    assert read(engine, "V/12/v1") == [("a", -5), ("b", 12)]


def test_an_input_without_rows_is_an_empty_table(engine: Engine) -> None:
    digest = engine.compute(
        "SELECT 'n', count(PART) FROM T_1", [pairs("T_1", has_part_column=True)], [], PAIR, "V/1/v1"
    )
    assert digest.rows == 1
    assert read(engine, "V/1/v1") == [("n", 0)]


@pytest.mark.parametrize("sql", ["SELECT * FROM T_1", "SELECT * FROM T_1 WHERE false", "SELECT * FROM T_1 WHERE n > 9"])
def test_a_statement_without_rows_leaves_no_directory(engine: Engine, sql: str) -> None:
    write_pairs(engine, "T/1/v1", ("a", 1))
    locations = () if sql.endswith("T_1") else ((1, "T/1/v1"),)
    assert engine.compute(sql, [pairs("T_1", *locations)], [], PAIR, "V/1/v1") == ContentDigest()
    assert not engine.files.exists("V/1/v1")


def test_the_digest_of_what_is_written_is_the_digest_of_what_is_read(engine: Engine) -> None:
    columns = (*PAIR, Column("xs", "array<int>"), Column("m", "map<string,double>"), Column("s", "struct<a:int>"))
    sql = "SELECT string(id % 3), id, array(int(id)), map('x', double(id)), named_struct('a', int(id)) FROM range(9)"
    digest = engine.compute(sql, [], [], columns, "V/1/v1")
    assert digest == engine.read_digest(InputTable("V_1", columns, ((1, "V/1/v1"),)))
    again = engine.compute(f"SELECT * FROM ({sql}) ORDER BY 2 DESC", [], [], columns, "V/1/v2")
    assert again == digest


def test_rows_of_two_parts_have_the_sum_of_their_digests(engine: Engine) -> None:
    a = engine.compute("SELECT 'a', 1 UNION ALL SELECT 'a', 1", [], [], PAIR, "V/1/v1")
    b = engine.compute("SELECT 'a', 1", [], [], PAIR, "V/2/v1")
    assert engine.read_digest(pairs("V", (1, "V/1/v1"), (2, "V/2/v1"))) == a + b
    assert str(b) == "1:6e3fabd8:3fe69daa"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT k, bigint(n / (n - 1)) FROM T_1",
            (
                "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. "
                "It happened in: n / (n - 1)"
            ),
        ),
        (
            "SELECT k, k FROM T_1",
            (
                'The value \'a\' of the type "STRING" cannot be cast to "BIGINT" because it is malformed. '
                "Correct the value as per the syntax, or change its target type. "
                "Use `try_cast` to tolerate malformed input and return NULL instead."
            ),
        ),
        ("SELECT k, raise_error('no luck') FROM T_1", "no luck."),
    ],
)
def test_a_statement_that_fails_while_it_runs_leaves_nothing_behind(engine: Engine, sql: str, message: str) -> None:
    write_pairs(engine, "T/1/v1", ("a", 1))
    with pytest.raises(StepFailedError) as caught:
        engine.compute(sql, [pairs("T_1", (1, "T/1/v1"))], [], PAIR, "V/1/v1")
    assert str(caught.value) == message
    assert not engine.files.exists("V/1/v1")


def test_a_statement_that_spark_refuses_leaves_nothing_behind(engine: Engine) -> None:
    with pytest.raises(QueryRefusedError):
        engine.compute("SELECT nope FROM T_1", [pairs("T_1")], [], PAIR, "V/1/v1")
    assert not engine.files.exists("V")


def test_a_place_that_is_taken_is_left_as_it_is(engine: Engine) -> None:
    write_pairs(engine, "V/1/v1", ("a", 1))
    with pytest.raises(UsageError) as caught:
        engine.compute("SELECT 'b', 2", [], [], PAIR, "V/1/v1")
    assert str(caught.value) == "There is something at V/1/v1 already; a version is written to a new place."
    assert read(engine, "V/1/v1") == [("a", 1)]


def test_part_files_that_are_gone_are_named(engine: Engine) -> None:
    with pytest.raises(StepFailedError) as caught:
        engine.compute("SELECT * FROM T_1", [pairs("T_1", (1, "T/1/v1"))], [], PAIR, "V/1/v1")
    assert str(caught.value) == (
        "T/1/v1, which holds rows of T[1], is not there. This finds and repairs damaged parts: viewdf repair"
    )


def test_a_view_of_the_session_s_owner_is_neither_replaced_nor_dropped(engine: Engine, spark: SparkSession) -> None:
    spark.range(3).createTempView("T_1")
    try:
        with pytest.raises(StepFailedError) as caught:
            engine.compute("SELECT * FROM T_1", [pairs("T_1")], [], PAIR, "V/1/v1")
        assert str(caught.value) == (
            "The Spark session already has a temporary view with the name T_1: drop it, or use another session."
        )
        assert spark.table("T_1").count() == 3
    finally:
        spark.catalog.dropTempView("T_1")


def test_a_warehouse_whose_path_looks_like_a_pattern_works(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark, str(tmp_path / "a=1" / "w [1]{x}*% ü"))
    engine.compute("SELECT 'a', 1", [], [], PAIR, "T/1/v1")
    engine.compute(
        "SELECT k, PART + 1 FROM T_1", [pairs("T_1", (1, "T/1/v1"), has_part_column=True)], [], PAIR, "V/1/v1"
    )
    assert [row.asDict() for row in engine.query("SELECT * FROM q", [pairs("q", (1, "V/1/v1"))], []).collect()] == [
        {"k": "a", "n": 2}
    ]
    engine.release()


def test_two_threads_can_compute_with_the_same_names_at_once(engine: Engine, spark: SparkSession) -> None:
    write_pairs(engine, "T/1/v1", ("a", 1))
    write_pairs(engine, "T/2/v1", ("b", 2))
    failures: list[Exception] = []

    def compute(index: int, engine: Engine) -> None:
        try:
            engine.compute("SELECT * FROM T", [pairs("T", (index, f"T/{index}/v1"))], [], PAIR, f"V/{index}/v1")
        except Exception as error:
            failures.append(error)

    engines = [engine, Engine(spark, engine.files.root)]
    threads = [threading.Thread(target=compute, args=(number + 1, item)) for number, item in enumerate(engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (read(engine, "V/1/v1"), read(engine, "V/2/v1")) == ([("a", 1)], [("b", 2)])


# dimensions

D = (Column("name", "string"), Column("price", "int"))


def compute_from_dimension(engine: Engine, dimension: DimensionTable) -> list[tuple[Any, ...]]:
    location = f"V/{len(list(path_of(engine, 'V').glob('*')))}/v1"
    engine.compute("SELECT name, price FROM d", [], [dimension], PAIR, location)
    return read(engine, location)


def write_text(engine: Engine, location: str, text: str) -> None:
    path = path_of(engine, location)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_dimension_is_read_as_it_is_now(engine: Engine, spark: SparkSession) -> None:
    dimension = DimensionTable("d", D, "dim/d.csv", "csv")
    write_text(engine, "dim/d.csv", "name,price\na,1\n")
    cached = engine.query("SELECT * FROM d_q", [], [DimensionTable("d_q", D, "dim/d.csv", "csv")]).cache()
    cached.count()
    assert compute_from_dimension(engine, dimension) == [("a", 1)]
    write_text(engine, "dim/d.csv", "name,price\nb,2\n")
    assert compute_from_dimension(engine, dimension) == [("b", 2)]
    cached.unpersist()


def test_dimensions_can_be_csv_without_header_json_or_parquet_and_anywhere(engine: Engine, tmp_path: Path) -> None:
    write_text(engine, "dim/d.csv", "a;1\n")
    (tmp_path / "d.json").write_text('{"price": 2, "name": "b"}\n')
    pq.write_table(pa.table({"name": ["c"], "price": pa.array([3], pa.int32())}), tmp_path / "d.parquet")
    options = (("HEADER", "false"), ("sep", ";"))
    assert compute_from_dimension(engine, DimensionTable("d", D, "dim/d.csv", "csv", options)) == [("a", 1)]
    assert compute_from_dimension(engine, DimensionTable("d", D, str(tmp_path / "d.json"), "json")) == [("b", 2)]
    url = f"file://{tmp_path}/d.parquet"
    assert compute_from_dimension(engine, DimensionTable("d", D, url, "parquet")) == [("c", 3)]


def test_a_missing_dimension_is_named_with_the_place_where_it_should_be(engine: Engine) -> None:
    for run in (
        lambda: compute_from_dimension(engine, DimensionTable("d", D, "dim/d.csv", "csv")),
        lambda: engine.query("SELECT * FROM d", [], [DimensionTable("d", D, "dim/d.csv", "csv")]),
    ):
        with pytest.raises(MissingDimensionError) as caught:
            run()
        assert str(caught.value) == (
            f"The dimension table d has no files at {engine.files.root}/dim/d.csv: "
            "put them there, or correct its LOCATION."
        )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("name,price\na,1\nb,cheap\n", "Malformed records are detected in record parsing: [b,null]."),
        ("price,name\n1,a\n", "CSV header does not conform to the schema."),
    ],
)
def test_a_csv_dimension_that_does_not_fit_its_columns_fails(engine: Engine, text: str, cause: str) -> None:
    write_text(engine, "dim/d.csv", text)
    with pytest.raises(StepFailedError) as caught:
        compute_from_dimension(engine, DimensionTable("d", D, "dim/d.csv", "csv"))
    assert str(caught.value).startswith(f"Encountered error while reading file {engine.files.root}/dim/d.csv. {cause}")


# query


def test_the_answer_to_a_query_can_be_used_again_and_again_after_other_work(engine: Engine) -> None:
    write_pairs(engine, "T/1/v1", ("a", 1), ("b", 2))
    answer = engine.query("SELECT k, PART FROM q1 WHERE n > 1", [pairs("q1", (1, "T/1/v1"), has_part_column=True)], [])
    engine.compute("SELECT * FROM T_1", [pairs("T_1", (1, "T/1/v1"))], [], PAIR, "V/1/v1")
    other = engine.query("SELECT * FROM q2", [pairs("q2")], [])
    assert [tuple(row) for row in answer.collect()] == [("b", 1)]
    assert answer.where("k = 'b'").count() == 1
    assert other.collect() == []


def test_a_query_that_spark_refuses_leaves_no_view(engine: Engine, spark: SparkSession) -> None:
    with pytest.raises(QueryRefusedError) as caught:
        engine.query("SELECT kk FROM q1", [pairs("q1")], [])
    assert caught.value.name == "kk"
    assert spark.catalog.listTables() == []


# differences


def test_rows_that_only_one_side_has_are_told_with_their_number(engine: Engine) -> None:
    write_pairs(engine, "V/1/v1", ("a", 1), ("a", 1), ("b", None), ("c", 3))
    write_pairs(engine, "V/1/v2", ("a", 1), ("b", 2), ("c", 3), ("d", 4), ("d", 4))
    one, other = pairs("one", (1, "V/1/v1")), pairs("other", (1, "V/1/v2"))
    a, b, b2, d = '{"k":"a","n":1}', '{"k":"b","n":null}', '{"k":"b","n":2}', '{"k":"d","n":4}'
    assert engine.differences(one, other, PAIR) == ([a, b], [b2, d, d])
    assert engine.differences(one, other, PAIR, limit=1) == ([a], [b2])
    assert engine.differences(one, one, PAIR) == ([], [])
    assert engine.differences(one, pairs("none"), PAIR, limit=9)[0] == [a, a, b, '{"k":"c","n":3}']


MEASURES = (Column("k", "string"), Column("x", "double"), Column("y", "float"))


def write_measures(engine: Engine, location: str, *rows: str) -> InputTable:
    values = ", ".join(f"({row})" for row in rows)
    engine.compute(f"SELECT * FROM VALUES {values} AS t(k, x, y)", [], [], MEASURES, location)
    return InputTable(location.replace("/", "_"), MEASURES, ((1, location),))


def test_the_last_digits_of_floating_point_numbers_are_no_difference(engine: Engine) -> None:
    rows = ["'a', 0.3D, 1F", "'a', 1D, 2F", "NULL, 1e300D, NULL", "'i', double('infinity'), float('nan')"]
    one = write_measures(engine, "V/1/v1", *rows)
    close = write_measures(engine, "V/1/v2", rows[2], rows[1], "'a', 0.1D + 0.2D, 1F", rows[3])
    assert engine.differences(one, close, MEASURES) == ([], [])
    for number, other in enumerate(
        [
            ["'a', 0.3000001D, 1F", *rows[1:]],
            ["'b', 0.3D, 1F", *rows[1:]],
            [*rows[:3], "'i', -double('infinity'), float('nan')"],
            [*rows[:3], "'i', double('infinity'), 1F"],
            [*rows, rows[0]],
            rows[1:],
        ]
    ):
        apart = write_measures(engine, f"V/1/w{number}", *other)
        assert engine.differences(one, apart, MEASURES) != ([], []), other


# streams


def stage(engine: Engine, location: str, *rows: tuple[str, int, int]) -> None:
    path = path_of(engine, location)
    path.mkdir(parents=True)
    k, n, part = (list(values) for values in zip(*rows, strict=True))
    table = pa.table({"k": k, "n": pa.array(n, pa.int64()), "__part": pa.array(part, pa.int64())})
    pq.write_table(table, path / "rows.parquet")


def test_a_large_part_of_a_stream_lies_in_several_files_that_tasks_can_share(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_viewdf.engine.engine._ROWS_PER_FILE", 2)
    stage(engine, ".staging/b1/rows", *((str(n), n, int(n == 5)) for n in range(6)))
    parts = [StreamPart(index, f"T/{index}/v1", False, True) for index in (0, 1)]
    engine.write_stream_parts(".staging/b1/rows", "b1", PAIR, parts, ".staging/b1/out")
    out = path_of(engine, ".staging/b1/out")
    assert [len(list((out / f"__part={index}").glob("*.parquet"))) for index in (0, 1)] == [3, 1]


def test_staged_rows_are_summed_up_by_part(engine: Engine) -> None:
    stage(engine, ".staging/b1/rows", ("a", 1, -5), ("b", 2, 7), ("b", 2, 7))
    summary = engine.summarize_staging(".staging/b1/rows", PAIR)
    one, two = (
        engine.compute(sql, [], [], PAIR, f"V/1/{number}")
        for number, sql in enumerate(("SELECT 'a', 1", "SELECT 'b', 2 UNION ALL SELECT 'b', 2"))
    )
    assert summary == {-5: one, 7: two}


def test_a_batch_replaces_its_own_rows_and_keeps_those_of_others(engine: Engine) -> None:
    def move(out: str, index: int, version: str) -> str:
        engine.files.move(f"{out}/__part={index}", f"T/{index}/{version}")
        return f"T/{index}/{version}"

    stage(engine, ".staging/b1/rows", ("a", 1, -5), ("b", 2, 7), ("x", 9, 8))
    new = [StreamPart(-5, "", False, True), StreamPart(7, "", False, True)]
    engine.write_stream_parts(".staging/b1/rows", "it's \\ b1", PAIR, new, ".staging/b1/out")
    assert sorted(path.name for path in path_of(engine, ".staging/b1/out").glob("__part*")) == ["__part=-5", "__part=7"]
    first = {index: move(".staging/b1/out", index, "v1") for index in (-5, 7)}
    assert read(engine, first[7]) == [("b", 2, "it's \\ b1")]

    stage(engine, ".staging/b2/rows", ("c", 3, 7), ("c", 3, 7))
    engine.write_stream_parts(".staging/b2/rows", "b2", PAIR, [StreamPart(7, first[7], True, True)], ".staging/b2/out")
    second = move(".staging/b2/out", 7, "v2")
    assert read(engine, second) == [("b", 2, "it's \\ b1"), ("c", 3, "b2"), ("c", 3, "b2")]

    stage(engine, ".staging/b3/rows", ("d", 4, -5))
    corrected = [StreamPart(-5, first[-5], False, True), StreamPart(7, second, True, False)]
    engine.write_stream_parts(".staging/b3/rows", "it's \\ b1", PAIR, corrected, ".staging/b3/out")
    assert read(engine, move(".staging/b3/out", -5, "v2")) == [("d", 4, "it's \\ b1")]
    assert read(engine, move(".staging/b3/out", 7, "v3")) == [("c", 3, "b2"), ("c", 3, "b2")]

    stream = pairs("T_n5_7", (-5, "T/-5/v2"), (7, "T/7/v3"), has_part_column=True)
    rows = engine.query("SELECT * FROM T_n5_7 ORDER BY n DESC", [stream], []).collect()
    assert [row.asDict() for row in rows] == [
        {"k": "d", "n": 4, "PART": -5},
        {"k": "c", "n": 3, "PART": 7},
        {"k": "c", "n": 3, "PART": 7},
    ]


def test_a_part_is_normally_one_file(engine: Engine) -> None:
    stage(engine, ".staging/b1/rows", *((str(n), n, n % 3) for n in range(30)))
    parts = [StreamPart(index, "", False, True) for index in range(3)]
    engine.write_stream_parts(".staging/b1/rows", "b1", PAIR, parts, ".staging/b1/out")
    assert [len(list(path_of(engine, f".staging/b1/out/__part={index}").glob("*.parquet"))) for index in range(3)] == [
        1,
        1,
        1,
    ]


def test_many_scattered_parts_are_written_at_once(engine: Engine) -> None:
    stage(engine, ".staging/b1/rows", *(("k", n, 2 * n) for n in range(-60, 60)))
    parts = [StreamPart(2 * n, "", False, True) for n in range(-60, 59)]
    engine.write_stream_parts(".staging/b1/rows", "b1", PAIR, parts, ".staging/b1/out")
    assert read(engine, ".staging/b1/out", "count(*)") == [(119,)]


def test_a_batch_that_leaves_a_part_without_rows_writes_nothing_for_it(engine: Engine) -> None:
    engine.write_stream_parts(None, "b1", PAIR, [StreamPart(7, "T/7/v1", False, False)], ".staging/b1/out")
    assert not engine.files.exists(".staging/b1/out")


# DataFrames

EVENTS = (*M, Column("price", "decimal(10,2)"))


def test_a_dataframe_is_staged_by_name_with_exact_casts_and_parts_before_1970(
    engine: Engine, spark: SparkSession
) -> None:
    df = spark.sql(
        "SELECT 2L AS LOSS, 'b' AS src, '1.50' AS price, TIMESTAMP'1969-12-31 23:59:59' AS Ts "
        "UNION ALL SELECT NULL, NULL, NULL, TIMESTAMP'1970-01-01 00:01:00'"
    )
    staged = engine.stage_dataframe(df, EVENTS, "ts", 60, ".staging/b1/rows")
    early, late = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert (staged.rows, staged.first, staged.last, staged.rejected, staged.rejected_rows) == (2, early, late, (), 0)
    assert read(engine, ".staging/b1/rows", "ts, src, loss, price, __part") == [
        (early, "b", 2, Decimal("1.50"), -1),
        (late, None, None, None, 1),
    ]
    assert sorted(engine.summarize_staging(".staging/b1/rows", EVENTS)) == [-1, 1]


@pytest.mark.parametrize(
    ("select", "reason", "row"),
    [
        ("TIMESTAMP'2015-01-01', 'a', 'many', 1", "column loss: many does not fit int", '"loss":"many"'),
        ("TIMESTAMP'2015-01-01', 'a', 1.5D, 1", "column loss: 1.5 does not fit int", '"loss":1.5'),
        ("TIMESTAMP'2015-01-01', 'a', 3000000000L, 1", "column loss: 3000000000 does not fit int", '"loss":3000000000'),
        ("TIMESTAMP'2015-01-01', 'a', 1, '1.005'", "column price: 1.005 does not fit decimal(10,2)", '"price":"1.005"'),
        ("TIMESTAMP'2015-01-01', 'a', 1, 0.125D", "column price: 0.125 does not fit decimal(10,2)", '"price":0.125'),
        ("'yesterday', 'a', 1, 1", "column ts: yesterday does not fit timestamp", '"ts":"yesterday"'),
        ("CAST(NULL AS TIMESTAMP), 'a', 1, 1", "column ts: no event time", '"ts":null'),
    ],
)
def test_a_row_that_does_not_fit_is_rejected_with_its_reason(
    engine: Engine, spark: SparkSession, select: str, reason: str, row: str
) -> None:
    df = spark.sql(f"SELECT {select}").toDF("ts", "src", "loss", "price")
    staged = engine.stage_dataframe(df, EVENTS, "ts", 60, ".staging/b1/rows")
    assert (staged.rows, staged.rejected_rows, len(staged.rejected)) == (0, 1, 1)
    assert staged.rejected[0] == RejectedRow("DataFrame", 0, reason, staged.rejected[0].row)
    assert row in staged.rejected[0].row
    assert not engine.files.exists(".staging/b1/rows")


def test_rows_that_fit_are_staged_beside_thousands_that_do_not(engine: Engine, spark: SparkSession) -> None:
    df = spark.range(2000).selectExpr(
        "timestamp_seconds(id) AS ts", "'a' AS src", "IF(id < 3, string(id), 'x') AS loss", "1.5 AS price"
    )
    staged = engine.stage_dataframe(df, EVENTS, "ts", 60, ".staging/b1/rows")
    assert (staged.rows, staged.rejected_rows, len(staged.rejected)) == (3, 1997, 1000)
    assert read(engine, ".staging/b1/rows", "loss") == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (
            "now() AS ts, 'a' AS src",
            "DataFrame: the columns loss, price are missing; add what is missing, as NULLs if there is nothing.",
        ),
        (
            "now() AS ts, 'a' AS src, 1 AS loss, 1 AS price, 2 AS extra",
            (
                "DataFrame: the column extra is not among the columns of the table, which are ts, src, loss, price; "
                "drop what is too much."
            ),
        ),
        (
            "now() AS ts, 'a' AS src, 1 AS loss, 1 AS price, 2 AS Loss",
            "DataFrame: the column loss is there twice; name it once.",
        ),
        (
            "now() AS ts, 'a' AS src, array(1) AS loss, 1 AS price",
            "DataFrame: the column loss is array<int>, which cannot become int; cast it first.",
        ),
    ],
)
def test_a_dataframe_with_other_columns_is_refused(
    engine: Engine, spark: SparkSession, select: str, message: str
) -> None:
    with pytest.raises(LoadError) as caught:
        engine.stage_dataframe(spark.sql(f"SELECT {select}"), EVENTS, "ts", 60, ".staging/b1/rows")
    assert str(caught.value) == message
    assert not engine.files.exists(".staging")


# imports


def test_importing_the_engine_imports_no_pyspark() -> None:
    program = (
        "import sys; import airflow_provider_viewdf.engine as e; e.Engine; e.PartFiles; e.InputTable; e.open_session; "
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
