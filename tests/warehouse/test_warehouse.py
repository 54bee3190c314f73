from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from network import NETWORK, measurement, minute

from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440  # 10:00
STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;"


def test_a_missing_minute_blocks_what_needs_it_and_is_named(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    warehouse.load("M", [measurement(0, 12)])
    warehouse.load("M", [measurement(2, 12)])
    report = warehouse.refresh(["Helper"])
    assert [step.index for step in report.steps] == [FIRST]
    assert [(item.view, str(item.parts), item.reason) for item in report.blocked] == [
        ("Helper", f"{FIRST + 1} .. {FIRST + 2}", f"waits for M[{FIRST + 1}] (2015-01-01T10:01)")
    ]
    warehouse.declare_empty("M", minute(1), "the probe was down")
    assert [step.index for step in warehouse.refresh(["Helper"]).steps] == [FIRST + 1, FIRST + 2]
    assert [part.why for part in warehouse.status("M")[0].declared_empty] == ["the probe was down"]


def test_parts_before_the_first_are_skipped_with_the_reason(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM + "CREATE VIEW W AS INITIALIZE W[i] AS SELECT sum(loss) AS s FROM M[i-2 .. i]"
        " UPDATE W[j] AS SELECT sum(loss) AS s FROM M[j-2 .. j] PARTITION LENGTH 60"
    )
    warehouse.load("M", [measurement(number, 1) for number in range(4)])
    report = warehouse.refresh()
    assert [step.index for step in report.steps] == [FIRST + 2, FIRST + 3]
    assert [(str(item.parts), item.reason) for item in report.skipped] == [
        (
            f"{FIRST} .. {FIRST + 1}",
            f"before the view's first part, W[{FIRST + 2}] (2015-01-01T10:02): INITIALIZE reads M[i - 2 .. i], and M "
            f"begins with M[{FIRST}] (2015-01-01T10:00)",
        )
    ]


def test_a_part_asked_for_too_early_is_computed_once_its_history_is_there(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM + "CREATE VIEW W AS INITIALIZE W[i] AS SELECT sum(loss) AS s FROM M[i-2 .. i]"
        " UPDATE W[j] AS SELECT sum(loss) AS s FROM M[j-2 .. j] PARTITION LENGTH 60"
    )
    asked = {number: {"W": PartSet.between(FIRST + number, FIRST + number)} for number in range(4)}
    for number in (3, 1, 2, 0):
        warehouse.load("M", [measurement(number, 1)])
        warehouse.refresh(parts=asked[number], also_stale=True)
    assert warehouse.existing_parts("W") == PartSet.between(FIRST + 2, FIRST + 3)


def test_starting_latest_begins_with_the_newest_part_there_is(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM)
    warehouse.load("M", [measurement(number, 1) for number in range(4)])
    warehouse.apply("CREATE VIEW W AS SELECT loss FROM M STARTING LATEST")
    warehouse.refresh()
    warehouse.load("M", [measurement(4, 1)])
    warehouse.refresh()
    assert warehouse.existing_parts("W") == PartSet.between(FIRST + 3, FIRST + 4)


def test_a_dataframe_a_dimension_and_an_hour_over_minutes(warehouse: Warehouse, tmp_path: Path, spark: Any) -> None:
    (tmp_path / "cities.csv").write_text("src,city\na,Waterloo\n")
    warehouse.apply(
        STREAM
        + f"CREATE TABLE city (src STRING, city STRING) LOCATION '{tmp_path}/cities.csv' FORMAT csv;"
        + "CREATE VIEW H AS SELECT c.city, count(*) AS ct, max(m.PART) AS newest FROM M m JOIN city c ON m.src = c.src "
        "GROUP BY c.city PARTITION LENGTH '1 hour'"
    )
    frame = spark.sql("SELECT TIMESTAMP '2015-01-01 10:15:00Z' AS ts, 'a' AS src, 'b' AS dest, 3 AS loss")
    warehouse.load("M", frame, covers=(minute(0), minute(60)))
    warehouse.refresh()
    assert [tuple(row) for row in warehouse.query("SELECT * FROM H").collect()] == [("Waterloo", 1, FIRST + 15)]


def test_gc_removes_replaced_versions_and_left_overs_only(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.apply(NETWORK)
    warehouse.load("M", [measurement(0, 12)], batch_id="a")
    warehouse.refresh()
    warehouse.load("M", [measurement(0, 13)], batch_id="a")
    warehouse.refresh()
    orphan = tmp_path / "wh" / "Helper" / str(FIRST) / "v9-crashed"
    orphan.mkdir()
    assert warehouse.gc().versions == 0
    report = warehouse.gc(timedelta(seconds=-60))
    assert (report.versions, report.orphans) == (2, 1)
    assert not orphan.exists()
    assert [row.sum_loss for row in warehouse.query("SELECT sum_loss FROM Helper").collect()] == [13]
    assert warehouse.verify().is_ok


def test_verify_says_where_stored_rows_differ(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.apply(STREAM + "CREATE VIEW V AS SELECT src, loss FROM M")
    warehouse.load("M", [measurement(0, 12), measurement(1, 7)])
    warehouse.refresh()
    folders = [next((tmp_path / "wh" / "V" / str(index)).iterdir()) for index in (FIRST, FIRST + 1)]
    for file in folders[1].iterdir():
        file.unlink()
    for file in folders[0].iterdir():
        (folders[1] / file.name).write_bytes(file.read_bytes())
    report = warehouse.verify("V")
    assert [(item.view, item.index, item.only_stored, item.only_recomputed) for item in report.differences] == [
        ("V", FIRST + 1, ('{"src":"a","loss":12}',), ('{"src":"a","loss":7}',))
    ]


def test_the_catalog_may_be_a_postgresql(tmp_path: Path, spark: Any, postgres_url: str) -> None:
    with Warehouse.open(tmp_path / "wh", catalog_url=postgres_url, spark=spark) as warehouse:
        warehouse.apply(NETWORK)
        warehouse.load("M", [measurement(0, 12), measurement(1, 13)])
        assert len(warehouse.refresh().published) == 4
        assert [row.sum_loss for row in warehouse.query("SELECT sum_loss FROM Helper ORDER BY ct").collect()] == [
            12,
            25,
        ]
    assert not (tmp_path / "wh" / "catalog.sqlite").exists()
