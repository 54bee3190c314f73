"""Views over external streams, on both Sparks: each format is read as declared, late files heal, bad files are named."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from warehouse.lake import FIRST, Lake, hour, row

from airflow_provider_viewdf.errors import StepFailedError
from airflow_provider_viewdf.warehouse import Warehouse

VIEWS = """
CREATE VIEW Total AS
  INITIALIZE Total[i] AS SELECT k, CAST(v AS BIGINT) AS total FROM E[i]
  UPDATE Total[j] AS
    SELECT k, SUM(total) FROM (SELECT k, v AS total FROM E[j] UNION ALL SELECT k, total FROM Total[j-1]) GROUP BY k
  PARTITION LENGTH '1 hour';
CREATE VIEW Recent AS
  INITIALIZE Recent[i] AS SELECT PART AS part_of, PART_TIMESTAMP AS began, COUNT(*) AS n FROM E[i-1 .. i] GROUP BY ALL
  UPDATE Recent[j] AS SELECT PART AS part_of, PART_TIMESTAMP AS began, COUNT(*) AS n FROM E[j-1 .. j] GROUP BY ALL
  PARTITION LENGTH '1 hour';
"""


@pytest.fixture(params=["csv", "json", "parquet"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    # A name with what is special in URLs, in patterns and in Spark's own layouts.
    return Lake(str(tmp_path / "the lake+%20" / "p=[1]"), request.param)


def ask(warehouse: Warehouse, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(item) for item in warehouse.query(sql).collect()]


def test_views_read_the_files_of_each_format_and_heal_after_late_ones(warehouse: Warehouse, lake: Lake) -> None:
    warehouse.apply(lake.define() + ";" + VIEWS)
    for number in (10, 11, 12):
        lake.write(number, [row(number, "a", number), row(number, "b", 1)], "one file")
    warehouse.look("E", hour(10), hour(13))
    warehouse.refresh()

    assert ask(warehouse, "SELECT PART, PART_TIMESTAMP = date_trunc('HOUR', ts), k, v FROM E ORDER BY 1, 3") == [
        (FIRST + number - 10, True, key, value) for number in (10, 11, 12) for key, value in (("a", number), ("b", 1))
    ]
    assert ask(warehouse, f"SELECT k, v FROM E WHERE PART = {FIRST + 1} ORDER BY k") == [("a", 11), ("b", 1)]
    assert ask(warehouse, f"SELECT k, total FROM Total[{FIRST + 2}] ORDER BY k") == [("a", 33), ("b", 3)]
    assert ask(warehouse, f"SELECT part_of, n FROM Recent[{FIRST + 2}] ORDER BY 1") == [(FIRST + 1, 2), (FIRST + 2, 2)]

    lake.write(11, [row(11, "a", 100)], "late")
    found = warehouse.look("E", hour(12), lookback=24)
    assert [str(item) for item in (found.registered, found.changed)] == ["", str(FIRST + 1)]
    (stale,) = [item.stale for item in warehouse.status("Total")]
    assert str(stale) == f"{FIRST + 1}"
    report = warehouse.refresh()

    assert [(item.view, item.index - FIRST, item.outcome) for item in report.steps if item.view == "Total"] == [
        ("Total", 1, "published"),
        ("Total", 2, "published"),
    ]
    assert report.steps[0].reason == f"new files in E[{FIRST + 1}]"
    assert ask(warehouse, f"SELECT k, total FROM Total[{FIRST + 2}] ORDER BY k") == [("a", 133), ("b", 3)]
    assert warehouse.verify().is_ok


def test_a_row_belongs_to_the_part_that_it_is_filed_under(warehouse: Warehouse, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    warehouse.apply(lake.define())
    lake.write(11, [row(9, "a", 1)])
    warehouse.look("E", hour(11))

    assert ask(warehouse, "SELECT PART, hour(ts) FROM E") == [(FIRST + 1, 9)]


def test_an_empty_part_is_read_as_no_rows(warehouse: Warehouse, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    warehouse.apply(lake.define("COMPLETE WHEN '_SUCCESS'") + ";" + VIEWS)
    lake.write(10, [row(10, "a", 1)])
    for number in (10, 11):
        lake.write_text(number, "_SUCCESS")
    warehouse.look("E", hour(10), hour(12))
    warehouse.refresh("Total")

    assert ask(warehouse, f"SELECT k, total FROM Total[{FIRST + 1}]") == [("a", 1)]
    assert ask(warehouse, f"SELECT COUNT(*) FROM E[{FIRST + 1}]") == [(0,)]


BAD = {
    "csv": [
        ("ts,k,v\n2015-01-01 10:00:00,a,many\n", "Malformed records are detected in record parsing: [a,null]."),
        ("ts,k,w\n2015-01-01 10:00:00,a,1\n", "CSV header does not conform to the schema."),
        ("ts,k\n2015-01-01 10:00:00,a\n", "CSV header does not conform to the schema."),
    ],
    "json": [
        ('{"ts": "2015-01-01 10:00:00", "k": "a", "v": "many"}', "Malformed records are detected in record parsing"),
        ("no json", "Malformed records are detected in record parsing"),
    ],
}


@pytest.mark.parametrize("format", BAD)
def test_a_file_that_does_not_fit_is_named(warehouse: Warehouse, tmp_path: Path, format: str) -> None:
    lake = Lake(str(tmp_path / "lake"), format)
    warehouse.apply(lake.define() + ";" + VIEWS)
    lake.write(10, [row(10, "a", 1)])
    for text, cause in BAD[format]:
        lake.write_text(10, f"bad.{format}", text)
        warehouse.look("E", hour(10))

        with pytest.raises(StepFailedError) as error:
            warehouse.refresh("Total")

        assert str(error.value).startswith(
            f"Total[{FIRST}] (2015-01-01T10:00) could not be computed by INITIALIZE: Encountered error while reading file "
            f"file://{lake.directory(10)}/bad.{format}. {cause}"
        )
        assert "\n" not in str(error.value)
    assert not warehouse.existing_parts("Total")

    lake.delete(10, f"bad.{format}")
    warehouse.look("E", hour(10))
    warehouse.refresh("Total")
    assert ask(warehouse, "SELECT k, total FROM Total") == [("a", 1)]


def test_a_parquet_column_of_another_type_is_named(warehouse: Warehouse, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    lake = Lake(str(tmp_path / "lake"), "parquet")
    warehouse.apply(lake.define() + ";" + VIEWS)
    file = lake.write(10, [row(10, "a", 1)])
    pyarrow.parquet.write_table(pyarrow.table({"ts": [hour(10)], "k": ["a"], "v": ["many"]}), file)
    warehouse.look("E", hour(10))

    with pytest.raises(StepFailedError) as error:
        warehouse.refresh("Total")

    assert (
        f"Encountered error while reading file file://{file}. Data type mismatches when reading Parquet column"
        in str(error.value)
    )


def test_a_file_that_is_gone_is_named_with_what_to_do(warehouse: Warehouse, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    warehouse.apply(lake.define() + ";" + VIEWS)
    lake.write(10, [row(10, "a", 1)])
    lake.write(10, [row(10, "b", 2)], "b")
    warehouse.look("E", hour(10))
    lake.delete(10, "b.csv")

    with pytest.raises(StepFailedError) as error:
        warehouse.refresh("Total")
    assert str(error.value) == (
        f"Total[{FIRST}] (2015-01-01T10:00) could not be computed by INITIALIZE: E has the file "
        f"file:{lake.directory(10)}/b.csv, which is not there any more: put it back, or register what is there now: "
        "viewdf look E."
    )
    warehouse.look("E", hour(10))
    warehouse.refresh("Total")
    assert ask(warehouse, "SELECT k, total FROM Total") == [("a", 1)]


def test_options_and_a_place_inside_of_the_warehouse(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.apply(
        "CREATE STREAM E (ts TIMESTAMP ORDERED, k STRING, v INT) PARTITION LENGTH '90 minutes' "
        "LOCATION 'in/{yyyyMMdd HH}' FORMAT csv OPTIONS (sep ';', header 'false');"
        "CREATE VIEW V AS SELECT PART AS p, SUM(v) AS s FROM E GROUP BY PART"
    )
    # Parts of 90 minutes begin at 9:00, 10:30, 12:00 and so on: the hour in which they do tells them apart.
    for number, value in ((9, 1), (10, 2), (12, 3)):
        place = tmp_path / "wh" / "in" / f"20150101 {number:02}"
        place.mkdir(parents=True)
        (place / "x").write_text(f"2015-01-01 10:30:00;a;{value}\n")
    warehouse.look("E", hour(9), hour(13))
    warehouse.refresh()

    first = hour(9).timestamp() // 5400
    assert ask(warehouse, "SELECT p, s, PART FROM V ORDER BY p") == [(first + n, n + 1, first + n) for n in range(3)]
    warehouse.gc(timedelta(0))
    assert len(list((tmp_path / "wh" / "in").rglob("x"))) == 3
