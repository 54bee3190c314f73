"""LATE ROWS: what becomes of rows that come after their part was closed, and that nothing of it is silent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_viewdf.actions import lateness
from airflow_provider_viewdf.errors import TooManyLateRowsError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import LateCount
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH '1 hour'"
FIRST = 394464  # 2015-01-01 00:00


def day(number: float) -> datetime:
    return datetime(2015, 1, 1, tzinfo=UTC) + timedelta(days=number)


def row(at: float, x: int) -> dict[str, Any]:
    return {"ts": day(at), "x": x}


def values(warehouse: Warehouse) -> list[int]:
    return sorted(item.x for item in warehouse.query("SELECT x FROM M").collect())


def quarantined(warehouse: Warehouse) -> list[tuple[str, str, str]]:
    found = warehouse.query("SELECT batch_id, reason, row FROM M_quarantine ORDER BY batch_id, row").collect()
    return [tuple(item) for item in found]


def test_late_rows_are_set_aside_counted_and_named(warehouse: Warehouse) -> None:
    warehouse.apply(f"{STREAM} LATE ROWS QUARANTINE AFTER '2 days'; CREATE VIEW V AS SELECT x FROM M")
    warehouse.load("M", [row(0, 1), row(5, 2)], covers=(day(0), day(6)), batch_id="first")
    warehouse.refresh()
    late = [row(5.5, 3), row(4.5, 4), row(1.25, 5)]
    result = warehouse.load("M", late, batch_id="late")
    assert (result.rows, result.late) == (2, LateCount(taken=2, quarantined=1))
    assert [(item.line, item.row) for item in result.rejected] == [(0, '{"ts":"2015-01-02T06:00:00.000000Z","x":5}')]
    assert quarantined(warehouse) == [
        (
            "late",
            f"late by more than 2 days: M[{FIRST + 30}] (2015-01-02T06:00) is closed by "
            "LATE ROWS QUARANTINE AFTER '2 days'",
            '{"ts":"2015-01-02T06:00:00.000000Z","x":5}',
        )
    ]
    assert values(warehouse) == [1, 2, 3, 4]
    assert warehouse.status("V")[0].stale == PartSet.of_indexes([FIRST + 108, FIRST + 132])
    status = warehouse.status("M")[0]
    assert (status.late, status.rejected_rows) == (LateCount(taken=2, quarantined=1), 1)
    assert status.late_rows == "LATE ROWS QUARANTINE AFTER '2 days'"

    again = warehouse.load("M", late, batch_id="late")
    assert (again.changed, again.late) == (PartSet(), LateCount(taken=2, quarantined=1))
    assert len(quarantined(warehouse)) == 1


def test_ignored_rows_are_counted_per_batch_and_the_count_follows_the_batch(warehouse: Warehouse) -> None:
    warehouse.apply(f"{STREAM} IGNORE AFTER '2 days'")
    warehouse.load("M", [row(5, 2)], batch_id="first")
    result = warehouse.load("M", [row(1, 3), row(1, 4), row(5.5, 5)], batch_id="b")
    assert (result.rows, result.late, result.rejected) == (1, LateCount(ignored=2), ())
    assert result.covers == PartSet.of_indexes([FIRST + 132])
    assert warehouse.status("M")[0].late == LateCount(ignored=2)
    corrected = warehouse.load("M", [row(1, 3), row(5.5, 6)], batch_id="b")
    assert corrected.late == LateCount(ignored=1)
    assert warehouse.status("M")[0].late == LateCount(ignored=1)
    assert values(warehouse) == [2, 6]
    nothing_else = warehouse.load("M", [row(0, 9)], batch_id="c")
    assert (nothing_else.rows, nothing_else.covers, nothing_else.late) == (0, PartSet(), LateCount(ignored=1))
    assert warehouse.status("M")[0].late == LateCount(ignored=2)


def test_default_takes_late_rows_and_counts_them(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM)
    warehouse.load("M", [row(20, 1)], batch_id="first")
    result = warehouse.load("M", [row(0, 2), row(20, 3)], batch_id="b")
    assert (result.rows, result.late) == (2, LateCount(taken=1))
    assert warehouse.status("M")[0].late == LateCount(taken=1)


def test_history_loaded_with_what_it_covers_and_a_cleared_run_are_not_late(warehouse: Warehouse) -> None:
    warehouse.apply(f"{STREAM} LATE ROWS IGNORE AFTER '1 hour'")
    for number in (10, 0, 5):
        covers = (day(number), day(number + 1))
        result = warehouse.load("M", [row(number, number), row(number + 0.5, number)], f"run/{number}", covers)
        assert (result.rows, result.late) == (2, LateCount())
    cleared = warehouse.load("M", [row(0.25, 7)], "run/0", (day(0), day(1)))
    assert (cleared.rows, cleared.late) == (1, LateCount())
    assert values(warehouse) == [5, 5, 7, 10, 10]


def test_same_batch_without_covers_stays_though_it_looks_late_by_now(warehouse: Warehouse) -> None:
    warehouse.apply(f"{STREAM} LATE ROWS QUARANTINE AFTER '1 day'")
    first = [row(0, 1), row(9, 2)]
    assert warehouse.load("M", first, batch_id="history").late == LateCount()
    warehouse.load("M", [row(30, 3)], batch_id="today")
    again = warehouse.load("M", first, batch_id="history")
    assert (again.rows, again.changed, again.late.quarantined) == (2, PartSet(), 0)
    assert warehouse.status("M")[0].late == LateCount()
    corrected = warehouse.load("M", [row(0, 11), row(9, 2), row(-1, 4)], batch_id="history")
    assert (corrected.rows, corrected.late) == (3, LateCount())
    late = [row(20, 5), row(30, 6)]
    assert warehouse.load("M", late, batch_id="late").late == LateCount(quarantined=1)
    # What it was late against is gone, but it is as late as it was.
    warehouse.load("M", [row(9, 3)], batch_id="today")
    again = warehouse.load("M", late, batch_id="late")
    assert (again.changed, again.late) == (PartSet(), LateCount(quarantined=1))
    assert values(warehouse) == [2, 3, 4, 6, 11]


def test_policy_can_change_while_there_are_data_and_a_batch_set_aside_be_loaded_again(warehouse: Warehouse) -> None:
    warehouse.apply(f"{STREAM} LATE ROWS QUARANTINE AFTER '1 day'")
    warehouse.load("M", [row(9, 1)], batch_id="first")
    late = [row(2, 2)]
    assert warehouse.load("M", late, batch_id="late").late == LateCount(quarantined=1)
    warehouse.apply(f"{STREAM} LATE ROWS REFRESH")
    assert warehouse.status("M")[0].late_rows == "LATE ROWS REFRESH"
    assert warehouse.load("M", late, batch_id="late").late == LateCount(taken=1)
    assert (values(warehouse), quarantined(warehouse)) == ([1, 2], [])
    warehouse.apply(f"{STREAM} LATE ROWS IGNORE AFTER '1 day'")
    assert warehouse.load("M", late, batch_id="late").late.ignored == 0
    assert values(warehouse) == [1, 2]


def test_late_rows_of_a_file_and_of_a_dataframe_are_set_aside_beside_those_that_do_not_fit(
    warehouse: Warehouse, tmp_path: Path, spark: Any
) -> None:
    warehouse.apply(f"{STREAM} LATE ROWS QUARANTINE AFTER '1 day'")
    warehouse.load("M", [row(9, 1)], batch_id="first")
    file = tmp_path / "in.csv"
    file.write_text("ts,x\n2015-01-02 00:00:00,2\n2015-01-10 00:00:00,what\n2015-01-10 00:00:00,3\n")
    result = warehouse.load("M", str(file), batch_id="file", on_error="quarantine")
    assert (result.rows, len(result.rejected), result.late) == (1, 2, LateCount(quarantined=1))
    frame = spark.sql("SELECT TIMESTAMP '2015-01-03 00:00:00Z' AS ts, 4 AS x")
    assert warehouse.load("M", frame, batch_id="frame").late == LateCount(quarantined=1)
    assert values(warehouse) == [1, 3]
    assert str(warehouse.load("M", frame, batch_id="frame").rejected[0]).startswith(
        "DataFrame: late by more than 1 day:"
    )


def test_more_late_rows_than_the_quarantine_should_hold_are_refused(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lateness, "MOST_QUARANTINED", 2)
    warehouse.apply(f"{STREAM} LATE ROWS QUARANTINE AFTER '1 day'")
    warehouse.load("M", [row(9, 1)], batch_id="first")
    with pytest.raises(TooManyLateRowsError) as caught:
        warehouse.load("M", [row(0, 1), row(0.5, 2), row(1, 3)], batch_id="history")
    assert str(caught.value) == (
        f"3 rows for M[{FIRST} .. {FIRST + 24}] (2015-01-01T00:00 .. 2015-01-02T00:00) are late by more than 1 day, too "
        "many to be set aside. If this is a load of history, say what it covers (covers=..., viewdf load --from --to). "
        "Nothing was loaded."
    )
    assert values(warehouse) == [1]
    result = warehouse.load("M", [row(0, 1), row(0.5, 2), row(1, 3)], "history", (day(0), day(2)))
    assert (result.rows, result.late) == (3, LateCount())
