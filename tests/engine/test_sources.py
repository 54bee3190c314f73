"""Loading CSV, JSON, Parquet and dicts: what is staged, and what is said of rows that do not fit."""

from __future__ import annotations

import gzip
import hashlib
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_viewdf.definitions import Column, Definition
from airflow_provider_viewdf.engine.sources import StagedRows, describe_source, digest_source, stage_rows
from airflow_provider_viewdf.engine.sources import blocks as blocks_module
from airflow_provider_viewdf.errors import LoadError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import RejectedRow


def table(length_seconds: int = 60, **columns: str) -> Definition:
    columns = columns or {"ts": "timestamp", "host": "string", "loss": "int"}
    return Definition(
        "M",
        "stream",
        "",
        "",
        length_seconds,
        tuple(Column(name, type_) for name, type_ in columns.items()),
        ordered="ts",
    )


class Stage:
    """Stages a source into a fresh directory and reads back what was written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, source: Any, definition: Definition | None = None) -> tuple[StagedRows, list[dict[str, Any]]]:
        staged = stage_rows(source, definition or table(), str(self.directory), fsspec.filesystem("file"))
        rows = pq.read_table(self.directory).to_pylist() if self.directory.exists() else []
        assert len(rows) == staged.rows
        return staged, rows


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "staged")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that relative paths can be given."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def reasons(staged: StagedRows) -> list[tuple[int, str]]:
    return [(row.line, row.reason) for row in staged.rejected]


# ---------------------------------------------------------------- what is staged


def test_rows_are_staged_with_their_types_and_parts(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text("ts,host,loss\n2015-01-01T00:01:59.5Z,a,5\n2015-01-01 00:00,b,\n")
    staged, rows = stage("in.csv")
    assert rows == [
        {"ts": at("2015-01-01T00:01:59.5"), "host": "a", "loss": 5, "__part": 23667841},
        {"ts": at("2015-01-01T00:00"), "host": "b", "loss": None, "__part": 23667840},
    ]
    assert staged == StagedRows(
        rows=2,
        first=(at("2015-01-01T00:00"), "in.csv, line 3"),
        last=(at("2015-01-01T00:01:59.5"), "in.csv, line 2"),
        indexes=PartSet.between(23667840, 23667841),
        rejected=(),
    )


def test_staged_columns_are_those_declared_in_that_order_and_part(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text(" LOSS , Ts,host\n5,2015-01-01T00:00,a\n")
    stage("in.csv")
    assert pq.read_schema(stage.directory / "rows.parquet").remove_metadata() == pa.schema(
        [
            ("ts", pa.timestamp("us", tz="UTC")),
            ("host", pa.string()),
            ("loss", pa.int32()),
            ("__part", pa.int64()),
        ]
    )


def test_part_is_rounded_down_before_1970(stage: Stage) -> None:
    times = ["1969-12-31T23:59:59.999999", "1969-12-31T23:59:00", "1969-12-31T23:58:59.999999", "1970-01-01"]
    _, rows = stage([{"ts": time} for time in times])
    assert [row["__part"] for row in rows] == [-1, -1, -2, 0]


def test_every_type_is_read_from_csv(here: Path, stage: Stage) -> None:
    definition = table(
        ts="timestamp",
        a="boolean",
        b="tinyint",
        c="smallint",
        d="bigint",
        e="float",
        f="double",
        g="decimal(5,2)",
        h="binary",
        i="date",
        j="array<int>",
        k="map<string,double>",
        l="struct<x:int,Y:array<string>>",
    )
    (here / "in.csv").write_text(
        "ts,a,b,c,d,e,f,g,h,i,j,k,l\n"
        '2015-01-01,TRUE,-128,+7,9223372036854775807,0.5,NaN,1.50,aGk=,2015-01-31,"[1,null]","{""x"":1}","{""y"":[""q""]}"\n'
    )
    staged, rows = stage("in.csv", definition)
    assert staged.rejected == ()
    row = rows[0]
    assert row.pop("f") != row.get("f")  # NaN is unequal to everything
    assert row == {
        "ts": at("2015-01-01"),
        "a": True,
        "b": -128,
        "c": 7,
        "d": 9223372036854775807,
        "e": 0.5,
        "g": Decimal("1.50"),
        "h": b"hi",
        "i": date(2015, 1, 31),
        "j": [1, None],
        "k": [("x", 1.0)],
        "l": {"x": None, "Y": ["q"]},
        "__part": 23667840,
    }


def test_source_without_a_good_row_writes_nothing(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text("ts,host,loss\n")
    staged, _ = stage("in.csv")
    assert staged == StagedRows(0, None, None, PartSet(), ())
    assert not stage.directory.exists()


def test_first_and_last_name_the_line_where_the_row_starts_after_quoted_newlines(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text(
        'ts,host,loss\n2015-01-01T00:05,"a\nb\r\nc",1\r\n2015-01-01T00:00,x,2\n2015-01-01T00:09,"y""z",3'
    )
    staged, rows = stage("in.csv")
    assert [row["host"] for row in rows] == ["a\nb\r\nc", "x", 'y"z']
    assert (staged.first, staged.last) == (
        (at("2015-01-01T00:00"), "in.csv, line 5"),
        (at("2015-01-01T00:09"), "in.csv, line 6"),
    )


def test_lines_are_counted_across_blocks(here: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'2015-01-01T{minute // 60:02}:{minute % 60:02},"a\n{minute}",{minute}\n' for minute in range(600)]
    (here / "in.csv").write_text("ts,host,loss\n" + "".join(lines).replace(",300\n", ",x\n"))
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 64)
    monkeypatch.setattr(
        "airflow_provider_viewdf.engine.sources.csv_rows.read_blocks",
        lambda handle, name, cut, _: blocks_module.read_blocks(handle, name, cut, 64),
    )
    staged, rows = stage("in.csv")
    assert [row["loss"] for row in rows] == [minute for minute in range(600) if minute != 300]
    assert reasons(staged) == [(602, "column loss: 'x' is not an int")]
    assert staged.last == (at("2015-01-01T09:59"), "in.csv, line 1200")


# ---------------------------------------------------------------- CSV


def test_empty_field_is_null_and_quoted_empty_field_is_an_empty_string(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text('ts,host,loss\n2015-01-01,,1\n2015-01-01,"",2\n')
    _, rows = stage("in.csv")
    assert [row["host"] for row in rows] == [None, ""]


def test_csv_rows_that_do_not_fit_are_rejected_with_line_and_reason(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_bytes(
        b"ts,host,loss\n"
        b"2015-01-01,a,abc\n"
        b"2015-01-01,a,1.5\n"
        b"2015-01-01,a, 5\n"
        b"2015-01-01,a,3000000000\n"
        b'2015-01-01,a,""\n'
        b"2015-01-01,a\n"
        b"\n"
        b"2015-01-01,a,1,2\n"
        b",a,1\n"
        b"x,a,1\n"
        b"2015-13-01,a,1\n"
        b"2015-01-01T00:00:00.1234567,a,1\n"
        b"2015-01-01,\xff,1\n"
        b'2015-01-01,"a"b,1\n'
        b"2015-01-01T00:03,good,1\n"
        b'2015-01-01,"a,1\n'
    )
    staged, rows = stage("in.csv")
    assert [row["host"] for row in rows] == ["good"]
    assert reasons(staged) == [
        (2, "column loss: 'abc' is not an int"),
        (3, "column loss: '1.5' is not an int"),
        (4, "column loss: ' 5' is not an int"),
        (5, "column loss: 3000000000 is out of the range of int"),
        (6, "column loss: '' is not an int"),
        (7, "2 fields instead of 3"),
        (9, "4 fields instead of 3"),
        (10, "column ts: no event time"),
        (11, "column ts: 'x' is not a time; write it like 2015-01-01T10:04"),
        (12, "column ts: '2015-13-01' is not a time: month must be in 1..12"),
        (13, "column ts: '2015-01-01T00:00:00.1234567' is finer than a microsecond"),
        (14, "the row is not UTF-8 text"),
        (15, "there is text after a closing quotation mark"),
        (17, "a quotation mark is never closed"),
    ]
    assert staged.rejected[0] == RejectedRow("in.csv", 2, "column loss: 'abc' is not an int", "2015-01-01,a,abc")
    assert staged.first == staged.last == (at("2015-01-01T00:03"), "in.csv, line 16")


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        ("boolean", "1", "'1' is not a boolean"),
        ("boolean", "yes", "'yes' is not a boolean"),
        ("tinyint", "128", "128 is out of the range of tinyint"),
        ("bigint", "9" * 5000, f"'{'9' * 79}... is out of the range of bigint"),
        ("int", "0x1F", "'0x1F' is not an int"),
        ("int", "1_000", "'1_000' is not an int"),
        ("int", "٣", "'٣' is not an int"),
        ("double", "1e400", "'1e400' is out of the range of double"),
        ("float", "1e39", "'1e39' is out of the range of float"),
        ("double", "1,5", "'1,5' is not a double"),
        ("decimal(4,2)", "1.234", "1.234 has more decimal places than decimal(4,2)"),
        ("decimal(4,2)", "123.4", "123.4 is out of the range of decimal(4,2)"),
        ("decimal(4,2)", "NaN", "'NaN' is not a decimal(4,2)"),
        ("date", "2015-02-30", "'2015-02-30' is not a date; write it like 2015-01-31"),
        ("date", "2015-1-1", "'2015-1-1' is not a date; write it like 2015-01-31"),
        ("binary", "a", "'a' is not Base64, the text of a binary"),
        ("array<int>", "[1", "'[1' is not JSON: Expecting ',' delimiter at character 3"),
        ("array<int>", "[1.0]", "1.0 is not an int"),
        ("map<int,int>", '{"x":1}', "'x' is not an int"),
        ("struct<a:int>", '{"b":1}', "the key 'b' is not a field of struct<a:int>"),
        ("struct<a:int>", '{"a":1,"a":2}', "an object with the key 'a' twice is not a struct<a:int>"),
    ],
)
def test_csv_text_that_is_no_value_of_its_type_is_rejected(
    here: Path, stage: Stage, type_: str, text: str, reason: str
) -> None:
    quoted = text.replace('"', '""')
    (here / "in.csv").write_text(f'ts,x\n2015-01-01,"{quoted}"\n')
    staged, _ = stage("in.csv", table(ts="timestamp", x=type_))
    assert reasons(staged) == [(2, f"column x: {reason}")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "in.csv has no header line; its first line must name the columns ts, host, loss."),
        ("\n2015-01-01,a,1\n", "in.csv has no header line; its first line must name the columns ts, host, loss."),
        ("ts,host\n2015-01-01,a\n", "in.csv, line 1: the column loss of M is missing; add it."),
        (
            "ts,host,loss,Port\n2015-01-01,a,1,2\n",
            "in.csv, line 1: 'Port' is not a column of M, whose columns are ts, host, loss.",
        ),
        ("ts,host,loss,HOST\n", "in.csv, line 1: the column host is there twice; name it once."),
    ],
)
def test_csv_header_must_name_the_columns(here: Path, stage: Stage, content: str, message: str) -> None:
    (here / "in.csv").write_text(content)
    with pytest.raises(LoadError) as caught:
        stage("in.csv")
    assert str(caught.value) == message


def test_byte_order_mark_is_no_part_of_the_header(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text("ts,host,loss\n2015-01-01,a,1\n", encoding="utf-8-sig")
    assert stage("in.csv")[0].rows == 1


def test_row_that_never_ends_is_refused_before_it_fills_the_memory(
    here: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "LONGEST_ROW_BYTES", 2**20)
    (here / "in.csv").write_text('ts,host,loss\n2015-01-01,a,1\n2015-01-02,"' + "x,\n" * 4 * 2**20)
    with pytest.raises(LoadError) as caught:
        stage("in.csv")
    assert str(caught.value) == (
        "in.csv, line 3: a row of more than 1 MB begins here; "
        "close the quotation mark that was left open, or split the row."
    )
    assert not list(stage.directory.glob("*"))


def test_row_text_of_a_rejected_row_is_cut_at_a_thousand_characters(here: Path, stage: Stage) -> None:
    (here / "in.csv").write_text(f"ts,host,loss\n2015-01-01,{'a' * 5000},x\n")
    staged, _ = stage("in.csv")
    assert staged.rejected[0].row == "2015-01-01," + "a" * 989


# ---------------------------------------------------------------- JSON


def test_json_lines_are_read_with_absent_keys_as_null(here: Path, stage: Stage) -> None:
    (here / "in.jsonl").write_text('{"TS":"2015-01-01T00:00Z","host":"a"}\n{"TS":"2015-01-01T00:01Z","loss":3}\n')
    staged, rows = stage("in.jsonl")
    assert rows == [
        {"ts": at("2015-01-01T00:00"), "host": "a", "loss": None, "__part": 23667840},
        {"ts": at("2015-01-01T00:01"), "host": None, "loss": 3, "__part": 23667841},
    ]
    assert staged.last == (at("2015-01-01T00:01"), "in.jsonl, line 2")


def test_json_lines_that_do_not_fit_are_rejected_with_line_and_reason(here: Path, stage: Stage) -> None:
    lines = [
        '{"ts":"2015-01-01","host":5}',
        '{"ts":"2015-01-01","loss":3.0}',
        '{"ts":"2015-01-01","loss":"3"}',
        '{"ts":"2015-01-01","loss":true}',
        '{"ts":"2015-01-01","port":1}',
        '{"ts":"2015-01-01","loss":1,"LOSS":2}',
        '{"ts":"2015-01-01","loss":1,"loss":2}',
        '{"host":"a"}',
        '{"ts":1420070400}',
        "",
        '{"ts":"2015-01-01"',
        '["2015-01-01"]',
        '{"ts":"2015-01-01"}{"ts":"2015-01-02"}',
        '{"ts":"2015-01-01","host":"\\ud800"}',
        '{"ts":"2015-01-01","host":"good"}',
    ]
    (here / "in.jsonl").write_text("\n".join(lines))
    staged, rows = stage("in.jsonl")
    assert [row["host"] for row in rows] == ["good"]
    assert reasons(staged) == [
        (1, "column host: 5 is not a string"),
        (2, "column loss: 3.0 is not an int"),
        (3, "column loss: '3' is not an int"),
        (4, "column loss: True is not an int"),
        (5, "the key 'port' is not a column of M"),
        (6, "the column loss is given twice"),
        (7, "an object with the key 'loss' twice is not an object of column names and values"),
        (8, "column ts: no event time"),
        (9, "column ts: 1420070400 is not a time; give an aware datetime or a text like 2015-01-01T10:04"),
        (11, "'{\"ts\":\"2015-01-01\"' is not JSON: Expecting ',' delimiter at character 19"),
        (12, "the row is not an object of column names and values"),
        (13, '\'{"ts":"2015-01-01"}{"ts":"2015-01-02"}\' is not JSON: Extra data at character 20'),
        (14, "column host: '\\ud800' is not Unicode text"),
    ]
    assert staged.rejected[1].row == lines[1]


def test_json_array_is_read_with_the_line_of_each_element(here: Path, stage: Stage) -> None:
    (here / "in.json").write_text(
        '\n[\n  {"ts": "2015-01-01", "loss": 1},\n  {"ts": "2015-01-02",\n   "loss": "x"}, {"ts": "2015-01-03"}\n]\n'
    )
    staged, rows = stage("in.json", table(length_seconds=86400))
    assert [row["loss"] for row in rows] == [1, None]
    assert staged.rejected == (
        RejectedRow("in.json", 4, "column loss: 'x' is not an int", '{"ts": "2015-01-02",\n   "loss": "x"}'),
    )
    assert (staged.first, staged.last) == (
        (at("2015-01-01"), "in.json, line 3"),
        (at("2015-01-03"), "in.json, line 5"),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"ts": "2015-01-01"},\n', "in.json, line 2: the array is not JSON: Expecting value."),
        ('[{"ts": "2015-01-01"}\n{}]', "in.json, line 2: the array is not JSON: expecting a comma or its end."),
        ("[]\nx", "in.json, line 2: there is text after the end of the array."),
        ('[{"ts": "\xff"}]', "in.json is not UTF-8 text."),
    ],
)
def test_json_array_that_is_broken_loads_nothing(here: Path, stage: Stage, content: str, message: str) -> None:
    (here / "in.json").write_text(content, encoding="latin-1")
    with pytest.raises(LoadError) as caught:
        stage("in.json")
    assert str(caught.value) == message
    assert not stage.directory.exists()


def test_empty_json_array_and_empty_file_have_no_rows(here: Path, stage: Stage) -> None:
    (here / "a.json").write_text(" [ ] ")
    (here / "b.jsonl").write_text("")
    assert stage(["a.json", "b.jsonl"])[0].rows == 0


def test_json_numbers_for_decimals_are_exact(here: Path, stage: Stage) -> None:
    (here / "in.jsonl").write_text(
        '{"ts":"2015-01-01","x":0.1}\n{"ts":"2015-01-01","x":7}\n{"ts":"2015-01-01","x":"12345678901234567.9"}\n'
        '{"ts":"2015-01-01","x":0.15}\n'
    )
    staged, rows = stage("in.jsonl", table(ts="timestamp", x="decimal(18,1)"))
    assert [row["x"] for row in rows] == [Decimal("0.1"), Decimal("7.0"), Decimal("12345678901234567.9")]
    assert reasons(staged) == [(4, "column x: 0.15 has more decimal places than decimal(18,1)")]


def test_json_number_with_too_many_digits_once_scaled_is_rejected(here: Path, stage: Stage) -> None:
    (here / "in.jsonl").write_text('{"ts":"2015-01-01","x":1}\n{"ts":"2015-01-01","x":0.25}\n')
    staged, rows = stage("in.jsonl", table(ts="timestamp", x="decimal(3,3)"))
    assert [row["x"] for row in rows] == [Decimal("0.250")]
    assert reasons(staged) == [(1, "column x: 1 is out of the range of decimal(3,3)")]


# ---------------------------------------------------------------- dicts


def test_dicts_are_read_with_python_values(stage: Stage) -> None:
    definition = table(
        ts="timestamp", a="boolean", b="double", c="decimal(4,1)", d="binary", e="date", f="map<int,string>"
    )
    time = datetime(2015, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    _, rows = stage(
        ({"ts": time, "A": True, "b": 1, "c": 0.1, "d": b"x", "e": date(2015, 1, 2), "f": {1: "y"}} for _ in range(2)),
        definition,
    )
    assert rows == 2 * [
        {
            "ts": at("2015-01-01"),
            "a": True,
            "b": 1.0,
            "c": Decimal("0.1"),
            "d": b"x",
            "e": date(2015, 1, 2),
            "f": [(1, "y")],
            "__part": 23667840,
        }
    ]


def test_dicts_that_do_not_fit_are_rejected_with_number_and_reason(stage: Stage) -> None:
    good = {"ts": "2015-01-01", "host": "a", "loss": 1}
    staged, _ = stage(
        [
            good,
            good | {"ts": datetime(2015, 1, 1)},
            good | {"ts": None},
            good | {"loss": True},
            good | {"loss": 2.0},
            good | {"loss": 2**31},
            good | {"port": 5},
            "no dict",
            good | {"ts": date(2015, 1, 1)},
        ]
    )
    assert staged.rows == 1
    assert staged.first == (at("2015-01-01"), "rows, row 1")
    assert reasons(staged) == [
        (2, "column ts: datetime.datetime(2015, 1, 1, 0, 0) has no time zone; give an aware datetime"),
        (3, "column ts: no event time"),
        (4, "column loss: True is not an int"),
        (5, "column loss: 2.0 is not an int"),
        (6, "column loss: 2147483648 is out of the range of int"),
        (7, "the key 'port' is not a column of M"),
        (8, "the row is not an object of column names and values"),
        (
            9,
            "column ts: datetime.date(2015, 1, 1) is not a time; "
            "give an aware datetime or a text like 2015-01-01T10:04",
        ),
    ]
    assert staged.rejected[0].source == "rows"
    assert json.loads(staged.rejected[0].row) == {"ts": "2015-01-01 00:00:00", "host": "a", "loss": 1}


def test_integer_is_no_boolean(stage: Stage) -> None:
    staged, _ = stage([{"ts": "2015-01-01", "x": 1}], table(ts="timestamp", x="boolean"))
    assert reasons(staged) == [(1, "column x: 1 is not a boolean")]


def test_float_that_is_not_finite_is_kept(stage: Stage) -> None:
    values = [float("inf"), "-Infinity", Decimal("Infinity")]
    _, rows = stage([{"ts": "2015-01-01", "x": value} for value in values], table(ts="timestamp", x="float"))
    assert [row["x"] for row in rows] == [float("inf"), float("-inf"), float("inf")]


# ---------------------------------------------------------------- Parquet


def test_parquet_columns_widen_and_naive_times_are_utc(here: Path, stage: Stage) -> None:
    definition = table(ts="timestamp", a="bigint", b="double", c="decimal(12,2)", d="string", e="array<bigint>")
    given = pa.table(
        {
            "E": pa.array([[1], None], pa.list_(pa.int16())),
            "TS": pa.array([datetime(2015, 1, 1), datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("ms")),
            "a": pa.array([1, 2], pa.uint32()),
            "b": pa.array([0.5, None], pa.float32()),
            "c": pa.array([7, 8], pa.int32()),
            "d": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    pq.write_table(given, here / "in.parquet")
    staged, rows = stage("in.parquet", definition)
    assert rows == [
        {"ts": at("2015-01-01"), "a": 1, "b": 0.5, "c": Decimal("7.00"), "d": "x", "e": [1], "__part": 23667840},
        {
            "ts": at("1969-12-31T23:59:59"),
            "a": 2,
            "b": None,
            "c": Decimal("8.00"),
            "d": "y",
            "e": None,
            "__part": -1,
        },
    ]
    assert staged.last == (at("2015-01-01"), "in.parquet, row 1")


def test_parquet_rows_that_do_not_fit_are_rejected_with_their_number(here: Path, stage: Stage) -> None:
    nanoseconds = [1_420_070_400_000_000_000, 1_420_070_400_000_000_001, None, 1_420_070_460_000_001_000]
    given = pa.table(
        {
            "ts": pa.array(nanoseconds, pa.timestamp("ns", tz="Europe/Berlin")),
            "host": ["a", "b", "c", "d"],
            "loss": pa.array([1, 2, 3, 4], pa.int8()),
        }
    )
    pq.write_table(given, here / "in.parquet")
    staged, rows = stage("in.parquet")
    assert [(row["ts"], row["host"]) for row in rows] == [
        (at("2015-01-01"), "a"),
        (at("2015-01-01T00:01:00.000001"), "d"),
    ]
    assert [(line, reason.split(": ")[1].split(" is ")[-1]) for line, reason in reasons(staged)] == [
        (2, "finer than a microsecond"),
        (3, "no event time"),
    ]
    assert json.loads(staged.rejected[1].row) == {"ts": None, "host": "c", "loss": 3}
    assert staged.last == (at("2015-01-01T00:01:00.000001"), "in.parquet, row 4")


def test_parquet_time_beyond_the_calendar_is_rejected(here: Path, stage: Stage) -> None:
    given = pa.table({"ts": pa.array([10**12, 253402300799, -62135596800, -62135596801], pa.timestamp("s"))})
    pq.write_table(given, here / "in.parquet")
    staged, rows = stage("in.parquet", table(ts="timestamp"))
    assert [row["ts"] for row in rows] == [at("9999-12-31T23:59:59"), at("0001-01-01")]
    assert reasons(staged) == [(line, "column ts: the time is outside the years 1 to 9999") for line in (1, 4)]


def test_parquet_nanoseconds_inside_an_array_are_rejected_alone(here: Path, stage: Stage) -> None:
    times = pa.array([[1_000], [1_001], [], None], pa.list_(pa.timestamp("ns")))
    pq.write_table(pa.table({"ts": pa.array([0, 0, 0, 0], pa.timestamp("us")), "x": times}), here / "in.parquet")
    staged, rows = stage("in.parquet", table(ts="timestamp", x="array<timestamp>"))
    assert [row["x"] for row in rows] == [[at("1970-01-01T00:00:00.000001")], [], None]
    assert [row.line for row in staged.rejected] == [2]
    assert staged.rejected[0].reason.startswith("column x: the value does not fit array<timestamp>: ")


@pytest.mark.parametrize(
    ("given", "wanted", "name"),
    [
        (pa.int64(), "int", "bigint"),
        (pa.int64(), "double", "bigint"),
        (pa.uint64(), "bigint", "uint64"),
        (pa.float64(), "float", "double"),
        (pa.int32(), "string", "int"),
        (pa.decimal128(5, 2), "decimal(5,1)", "decimal(5,2)"),
        (pa.date32(), "timestamp", "date"),
        (pa.list_(pa.int64()), "array<int>", "array<bigint>"),
        (pa.struct([("b", pa.int32())]), "struct<a:int>", "struct<b:int>"),
    ],
)
def test_parquet_type_that_would_lose_something_loads_nothing(
    here: Path, stage: Stage, given: pa.DataType, wanted: str, name: str
) -> None:
    pq.write_table(pa.table({"ts": pa.array([0], pa.timestamp("us")), "x": pa.nulls(1, given)}), here / "in.parquet")
    with pytest.raises(LoadError) as caught:
        stage("in.parquet", table(ts="timestamp", x=wanted))
    assert str(caught.value) == (
        f"in.parquet: the column x is of type {name}, which does not widen into {wanted}; cast it first."
    )


def test_parquet_without_a_declared_column_loads_nothing(here: Path, stage: Stage) -> None:
    pq.write_table(pa.table({"ts": pa.array([0], pa.timestamp("us")), "host": ["a"]}), here / "in.parquet")
    with pytest.raises(LoadError) as caught:
        stage("in.parquet")
    assert str(caught.value) == "in.parquet: the column loss of M is missing; add it."


# ---------------------------------------------------------------- files


def test_patterns_directories_lists_and_gzip_are_read(here: Path, stage: Stage) -> None:
    (here / "in").mkdir()
    (here / "in" / "a.csv").write_text("ts,host,loss\n2015-01-01,a,1\n")
    (here / "in" / "b.csv.gz").write_bytes(gzip.compress(b"ts,host,loss\n2015-01-02,b,2\n"))
    (here / "in" / "_SUCCESS").write_text("")
    (here / "more.jsonl").write_text('{"ts":"2015-01-03","host":"c"}\n')
    definition = table(length_seconds=86400)
    for source in (["in", "more.jsonl"], ["in/*.csv*", Path("more.jsonl")], [f"file://{here}/in", here / "more.jsonl"]):
        staged, rows = stage(source, definition)
        assert [row["host"] for row in rows] == ["a", "b", "c"]
    staged, _ = stage(["in/*.csv*", "more.jsonl"], definition)
    assert (staged.first, staged.last) == (
        (at("2015-01-01"), "in/a.csv, line 2"),
        (at("2015-01-03"), "more.jsonl, line 1"),
    )


def test_file_in_another_file_system_is_read(stage: Stage) -> None:
    with fsspec.open("memory://feed/in.csv", "w") as handle:
        handle.write("ts,host,loss\n2015-01-01,a,1\n")
    staged, _ = stage("memory://feed/*.csv")
    assert staged.first == (at("2015-01-01"), "memory:///feed/in.csv, line 2")


def test_file_whose_name_looks_like_a_pattern_is_read(here: Path, stage: Stage) -> None:
    (here / "in[1].csv").write_text("ts,host,loss\n2015-01-01,a,1\n")
    assert stage("in[1].csv")[0].rows == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no.csv", "no.csv does not exist."),
        ("no*.csv", "No file matches no*.csv."),
        ("empty", "The directory empty has no files to load."),
        (
            "in.txt",
            "in.txt is of no kind that can be loaded; its name must end in .csv, .jsonl, .ndjson, .json "
            "(or one of these with .gz) or .parquet.",
        ),
        ("bad.csv.gz", "bad.csv.gz cannot be read: Not a gzipped file (b'no')."),
        (
            None,
            "A source of type NoneType cannot be loaded; give a path, a list of paths or a list of dicts.",
        ),
        ({"ts": 1}, "A source of type dict cannot be loaded; give a path, a list of paths or a list of dicts."),
        (["in.csv", {"ts": 1}], "The source lists paths and, among them, {'ts': 1}; give either paths or rows."),
    ],
)
def test_source_that_names_nothing_to_read_is_refused(here: Path, stage: Stage, source: Any, message: str) -> None:
    (here / "empty").mkdir()
    (here / "in.txt").write_text("")
    (here / "bad.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(LoadError) as caught:
        stage(source)
    assert str(caught.value) == message


def test_file_that_is_no_parquet_is_refused(here: Path, stage: Stage) -> None:
    (here / "in.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(LoadError, match=r"^in\.parquet is not a Parquet file: .*\.$"):
        stage("in.parquet")


def test_error_in_a_later_file_leaves_nothing_behind(here: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_viewdf.engine.sources.staging._ROWS_PER_GROUP", 1)
    (here / "a.csv").write_text("ts,host,loss\n2015-01-01,a,1\n")
    (here / "b.csv").write_text("ts,host\n")
    with pytest.raises(LoadError):
        stage(["a.csv", "b.csv"])
    assert not list(stage.directory.glob("*"))


def test_table_whose_ordered_column_is_no_timestamp_is_refused(stage: Stage) -> None:
    with pytest.raises(LoadError) as caught:
        stage([], table(ts="bigint"))
    assert str(caught.value) == ("M has no ORDERED column of type TIMESTAMP, which says to which part a row belongs.")


# ---------------------------------------------------------------- names and digests


def test_source_is_described_by_its_paths_without_secrets() -> None:
    assert describe_source("in/*.csv") == "in/*.csv"
    assert describe_source([f"{number}.csv" for number in range(7)]) == "0.csv, 1.csv, 2.csv, 3.csv, 4.csv and 2 more"
    assert describe_source("https://me:word@host/in.csv?sig=x") == "https://host/in.csv"
    assert describe_source([{"ts": 1}]) == "1 row"
    assert describe_source([]) == "0 rows"
    assert describe_source(iter([{"ts": 1}])) == "rows"


def test_digest_of_a_file_is_that_of_its_bytes(here: Path) -> None:
    (here / "in.csv").write_bytes(b"x")
    (here / "copy.csv").write_bytes(b"x")
    assert digest_source("in.csv") == digest_source("copy.csv") == hashlib.sha256(b"x").hexdigest()
    assert digest_source(["in.csv", "copy.csv"]) != digest_source("in.csv")


def test_digest_of_dicts_does_not_depend_on_the_order_of_keys_but_on_every_value() -> None:
    digest = digest_source([{"a": 1, "b": "x"}])
    assert digest == digest_source([{"b": "x", "a": 1}])
    others = [{"a": "1", "b": "x"}, {"a": 1.0, "b": "x"}, {"a": Decimal(1), "b": "x"}, {"a": True, "b": "x"}, {"a": 1}]
    assert len({digest, *(digest_source([other]) for other in others)}) == 6
    assert digest_source([{"a": at("2015-01-01")}]) == digest_source(
        [{"a": at("2015-01-01").astimezone(timezone(timedelta(hours=2)))}]
    )


def test_rows_that_can_be_read_only_once_have_no_digest() -> None:
    with pytest.raises(LoadError) as caught:
        digest_source(iter([{"ts": 1}]))
    assert str(caught.value) == (
        "Rows that can be read only once have no digest to name the batch by; give a list, or a batch id."
    )
