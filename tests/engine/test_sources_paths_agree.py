"""The fast path through Arrow and the exact path give the same rows, or the fast path gives up."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import Column, Definition
from airflow_provider_viewdf.engine.sources import csv_rows, json_rows
from airflow_provider_viewdf.engine.sources.columns import convert_texts
from airflow_provider_viewdf.engine.sources.layouts import Layout
from airflow_provider_viewdf.engine.sources.spark_types import name_type, parse_type
from airflow_provider_viewdf.engine.sources.staging import part_indexes
from airflow_provider_viewdf.engine.sources.texts import Misfit
from airflow_provider_viewdf.engine.sources.values import text_reader
from airflow_provider_viewdf.parts import EPOCH, Partitioning

TYPES = [
    "boolean",
    "tinyint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(6,2)",
    "decimal(3,3)",
    "decimal(38,20)",
    "string",
    "date",
]


def layout_of(*types: str) -> Layout:
    columns = (Column("ts", "timestamp"), *(Column(f"c{number}", type_) for number, type_ in enumerate(types)))
    return Layout.of(Definition("M", "stream", "", "", 60, columns, ordered="ts"))


# Texts that look like values of some type, and everything near them.
numbers = st.from_regex(r"[+-]?[0-9]{0,4}(\.[0-9]{0,4})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
integers = st.integers(-(2**64), 2**64).map(str)
times = st.from_regex(
    r"\s?([0-9]{4})[-/](0[0-9]|1[0-3]|[1-9])[-/]([0-2][0-9]|3[0-2]|[1-9])"
    r"([T ]([01][0-9]|2[0-5]|[0-9]):[0-6][0-9](:[0-6][0-9]([.,][0-9]{1,9})?)?)?"
    r"\s?(Z|z|UTC|[+-][0-3][0-9]:?[0-6][0-9])?",
    fullmatch=True,
)
words = st.sampled_from(
    ["", "true", "False", "TRUE", "yes", "1", "0", "nan", "NaN", "inf", "-Infinity", "0x1F", "1_0", " 5", "5 ", "null"]
)
lines = st.text(st.sampled_from('ab,"\n\r \tß\x00٣/-:'), max_size=6)
any_text = st.one_of(numbers, integers, times, words, lines, st.text(max_size=5), st.floats().map(repr))


@settings(max_examples=400, deadline=None)
@given(
    texts=st.lists(st.one_of(any_text, st.none()), min_size=1, max_size=4),
    type_=st.sampled_from([*TYPES, "timestamp", "binary", "array<int>"]),
)
def test_column_at_once_has_the_values_of_its_texts_one_by_one(texts: list[str | None], type_: str) -> None:
    arrow_type = parse_type(type_)
    try:
        column = convert_texts(pa.array(texts, pa.string()), arrow_type)
    except UnicodeEncodeError:
        return
    if column is not None:
        read = text_reader(arrow_type)
        expected = pa.array([None if text is None else read(text) for text in texts], arrow_type)
        assert describe(column) == describe(expected)


@settings(max_examples=300, deadline=None)
@given(moments=st.lists(st.tuples(st.datetimes(datetime(1000, 1, 2), datetime(2999, 12, 30)), st.integers(0, 5))))
def test_common_forms_of_times_take_the_fast_path(moments: list[tuple[datetime, int]]) -> None:
    forms: list[Callable[[datetime], str]] = [
        lambda time: time.strftime("%Y-%m-%d %H:%M:%S.%f"),
        lambda time: time.isoformat(timespec="microseconds") + "Z",
        lambda time: time.isoformat(timespec="microseconds") + "+00:00",
        lambda time: (time + timedelta(hours=5, minutes=30)).isoformat(timespec="microseconds") + "+05:30",
        lambda time: (time - timedelta(hours=8)).isoformat(timespec="microseconds") + "-0800",
        lambda time: time.strftime("%Y/%m/%d %H:%M:%S.%f"),
    ]
    column = convert_texts(
        pa.array([forms[form](time) for time, form in moments], pa.string()), parse_type("timestamp")
    )
    assert column is not None
    assert column.to_pylist() == [time.replace(tzinfo=UTC) for time, _ in moments]


fields = st.one_of(
    any_text,
    any_text.map(lambda text: '"' + text.replace('"', '""') + '"'),
    st.just('""'),
    st.just("2015-01-01T00:00"),
)


@settings(max_examples=500, deadline=None)
@given(
    rows=st.lists(st.lists(fields, min_size=1, max_size=3), min_size=1, max_size=4),
    types=st.lists(st.sampled_from(["string", "int", "double"]), max_size=2),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_block_through_arrow_is_the_block_row_by_row(
    rows: list[list[str]], types: list[str], line_end: str
) -> None:
    layout = layout_of(*types)
    text = "".join(",".join(["2015-01-01T00:00", *row[: len(types)]]) + line_end for row in rows)
    check_csv(text.encode(errors="surrogatepass"), layout)


@settings(max_examples=500, deadline=None)
@given(block=st.text(st.sampled_from('a1,"\n\r'), min_size=1, max_size=20))
def test_csv_block_of_any_characters_is_read_alike(block: str) -> None:
    columns = (Column("a", "string"), Column("b", "string"))
    layout = Layout.of(Definition("M", "stream", "", "", 60, (*columns, Column("ts", "timestamp")), ordered="ts"))
    text = "".join(f"{line},2015-01-01T00:00\n" for line in block.split("\n"))
    check_csv(text.encode(), layout)


def check_csv(block: bytes, layout: Layout) -> None:
    positions = list(range(len(layout.columns)))
    fast = csv_rows.read_block_fast(block, positions, layout)
    if fast is not None:
        exact = csv_rows.read_block_exactly(2, block, positions, "in.csv", layout)
        assert exact.rejected == ()
        assert describe_rows(fast) == describe_rows(exact.rows)
        locate = csv_rows._Locator(2, block)
        assert [locate(row) for row in range(fast.num_rows)] == [exact.locate(row) for row in range(fast.num_rows)]


json_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(),
    any_text,
    st.just("2015-01-01T00:00"),
    st.lists(st.integers(), max_size=1),
)
raw_numbers = st.sampled_from(
    [
        "-0",
        "-0.0",
        "1e2",
        "1E400",
        "01",
        "1.",
        "0.10",
        "12345678901234567890",
        "9999999999999999999999999999",
        "Inf",
        "1.500",
    ]
)


@settings(max_examples=500, deadline=None)
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from(["c0", "C0", "c1", "x"]), st.one_of(json_values.map(json.dumps), raw_numbers)),
        min_size=1,
        max_size=3,
    ),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from([*TYPES, "timestamp"])),
    separator=st.sampled_from(["\n", "\r\n", "\n\n", "", " \n"]),
)
def test_json_block_through_arrow_is_the_block_row_by_row(
    rows: list[dict[str, str]], types: tuple[str, str], separator: str
) -> None:
    layout = layout_of(*types)
    lines = [
        "{" + ", ".join(['"ts": "2015-01-01T00:00Z"', *(f'"{key}":{raw}' for key, raw in row.items())]) + "}"
        for row in rows
    ]
    block = (separator.join(lines) + "\n").encode()
    fast = json_rows.read_block_fast(block, layout)
    if fast is not None:
        exact = json_rows.read_block_exactly(1, block, "in.jsonl", layout)
        assert exact.rejected == ()
        assert describe_rows(fast) == describe_rows(exact.rows)


@pytest.mark.parametrize("path", ["csv", "json"])
def test_ordinary_rows_take_the_fast_path(path: str) -> None:
    layout = layout_of(*TYPES)
    texts = ["true", "-1", "2", "3", "0.5", "1e-3", "12.50", "0.125", "7", "a", "2015-01-31"]
    if path == "csv":
        block = ("2015-01-01T00:00Z," + ",".join(texts) + "\n").encode()
        rows = csv_rows.read_block_fast(block, list(range(len(layout.columns))), layout)
    else:
        pairs = [f'"c{number}":{text}' for number, text in enumerate(texts[:9])]
        block = ('{"ts":"2015-01-01T00:00Z",' + ",".join(pairs) + ',"c9":"a","c10":"2015-01-31"}\n').encode()
        rows = json_rows.read_block_fast(block, layout)
    assert rows is not None
    assert rows.num_rows == 1


@settings(deadline=None)
@given(value=st.decimals(allow_nan=False, allow_infinity=False), whole=st.integers(0, 20), places=st.integers(0, 18))
def test_decimal_fits_exactly_when_rounding_to_its_scale_changes_nothing(
    value: Decimal, whole: int, places: int
) -> None:
    type_ = parse_type(f"decimal({max(1, whole + places)},{places})")
    with localcontext() as context:
        context.prec = 2000
        context.Emax, context.Emin = 10**6, -(10**6)
        scaled = value * 10**places if abs(value.adjusted()) < 500 else None
        fits = value == 0 or (scaled is not None and scaled == int(scaled) and abs(scaled) < 10**type_.precision)
    try:
        read = text_reader(type_)(str(value))
    except Misfit:
        assert not fits
    else:
        assert fits
        assert pa.array([read], type_).to_pylist() == [value]


@given(micros=st.lists(st.integers(-(10**16), 10**16)), length=st.integers(1, 10**7))
def test_parts_of_a_column_are_the_parts_of_its_times(micros: list[int], length: int) -> None:
    expected = [Partitioning(length).index_at(EPOCH + timedelta(microseconds=value)) for value in micros]
    assert part_indexes(pa.array(micros, pa.int64()), length).to_pylist() == expected


simple_types = st.sampled_from(["int", "string", "decimal(10,2)", "timestamp", "double"])
spark_types = st.recursive(
    simple_types,
    lambda inner: st.one_of(
        inner.map("array<{}>".format),
        st.tuples(simple_types, inner).map(lambda pair: f"map<{pair[0]},{pair[1]}>"),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: "struct<" + ",".join(f"F{number}:{type_}" for number, type_ in enumerate(types)) + ">"
        ),
    ),
    max_leaves=6,
)


@given(type_=spark_types)
def test_type_has_the_name_it_was_parsed_from(type_: str) -> None:
    assert name_type(parse_type(type_)) == type_


def describe_rows(rows: pa.RecordBatch) -> list[Any]:
    return [describe(column) for column in rows.columns]


def describe(column: pa.Array) -> Any:
    """Type and values, with a NaN equal to itself and -0.0 unequal to 0.0."""
    values = column.to_pylist()
    return column.type, [
        (repr(value), math.copysign(1, value)) if isinstance(value, float) and value == value else repr(value)
        for value in values
    ]
