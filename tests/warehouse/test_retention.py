"""RETAIN: older parts are archived. They are known, not missing; and nothing that is kept changes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from network import minute

from airflow_provider_viewdf.errors import ArchivedPartError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440  # 10:00
AT_ONCE = timedelta(seconds=-60)
STREAM = "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60 RETAIN '5 minutes';\n"
CHAIN = """CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT CAST(sum(x) AS BIGINT) AS total FROM S[i]
  UPDATE Chain[j] AS SELECT CAST((SELECT sum(x) FROM S[j]) + (SELECT max(total) FROM Chain[j-1]) AS BIGINT) AS total
  PARTITION LENGTH 60;\n"""
PLAIN = "CREATE VIEW V AS SELECT x FROM S RETAIN '3 minutes';\n"


def between(low: int, high: int) -> PartSet:
    return PartSet.between(FIRST + low, FIRST + high)


def fill(warehouse: Warehouse, script: str, minutes: range = range(10)) -> None:
    warehouse.apply(script)
    warehouse.load("S", [{"ts": minute(m), "x": m} for m in minutes], batch_id=f"from {minutes.start}")
    warehouse.refresh()


def test_parts_older_than_the_newest_minus_retain_are_archived(warehouse: Warehouse, tmp_path: Path) -> None:
    fill(warehouse, STREAM + PLAIN + CHAIN)
    report = warehouse.retire()
    assert [(item.table, item.parts, item.held_because) for item in report.tables] == [
        ("S", between(0, 4), ""),
        ("V", between(0, 6), ""),
    ]
    assert warehouse.retire().tables == ()
    stream, view, chain = warehouse.status()
    assert (stream.parts, stream.archived, stream.missing, stream.stale) == (
        between(5, 9),
        between(0, 4),
        PartSet(),
        PartSet(),
    )
    assert (stream.rows, view.rows) == (5, 3)
    assert (view.parts, view.archived, view.missing) == (between(7, 9), between(0, 6), PartSet())
    assert (chain.parts, chain.archived) == (between(0, 9), PartSet())
    # Nothing is to be done because of it, and the files go with the next clean-up but one grace period.
    assert warehouse.refresh().steps == ()
    assert warehouse.gc().paths == ()
    warehouse.gc(AT_ONCE)
    assert sorted(path.name for path in (tmp_path / "wh" / "S").iterdir()) == [str(FIRST + m) for m in range(5, 10)]
    assert [row.total for row in warehouse.query(f"SELECT total FROM Chain[{FIRST + 2}]").collect()] == [3]


def test_views_go_on_by_the_same_rules_after_their_past_is_archived(warehouse: Warehouse) -> None:
    fill(warehouse, STREAM + CHAIN + PLAIN)
    warehouse.retire()
    warehouse.gc(AT_ONCE)
    warehouse.load("S", [{"ts": minute(10), "x": 10}])
    report = warehouse.refresh()
    assert [(step.view, step.index - FIRST, step.rule) for step in report.steps] == [
        ("Chain", 10, "update"),
        ("V", 10, "update"),
    ]
    assert (report.blocked, report.skipped) == ((), ())
    assert [row.total for row in warehouse.query(f"SELECT total FROM Chain[{FIRST + 10}]").collect()] == [55]
    assert warehouse.existing_parts("S") == between(0, 10)
    assert warehouse.archived_parts("S") == between(0, 4)


def test_late_rows_for_archived_parts_are_refused(warehouse: Warehouse) -> None:
    fill(warehouse, STREAM)
    warehouse.retire()
    with pytest.raises(ArchivedPartError) as raised:
        warehouse.load("S", [{"ts": minute(2), "x": 1}, {"ts": minute(8), "x": 1}], batch_id="late")
    assert str(raised.value) == (
        f"The batch changes S[{FIRST + 2}] (2015-01-01T10:02), archived: S keeps its parts for 5 minutes (RETAIN). "
        "Nothing was loaded; take the rows of that time out of the batch."
    )
    assert warehouse.query("SELECT count(*) AS ct FROM S").collect()[0].ct == 5
    # The same batch again changes nothing in them, and is no error.
    assert not warehouse.load("S", [{"ts": minute(m), "x": m} for m in range(10)], batch_id="from 0").changed


def test_an_archived_part_is_said_to_be_archived_where_it_is_asked_for(warehouse: Warehouse) -> None:
    fill(warehouse, STREAM + PLAIN)
    warehouse.retire()
    with pytest.raises(ArchivedPartError) as raised:
        warehouse.query(f"SELECT * FROM S[{FIRST + 1}]")
    assert str(raised.value) == (
        f"The query reads S[{FIRST + 1}] (2015-01-01T10:01), archived: the rows are no longer kept. Leave it out."
    )
    report = warehouse.refresh("V", minute(0), minute(10))
    assert report.steps == ()
    assert [(item.view, item.parts, item.reason) for item in report.skipped] == [
        ("V", between(0, 6), "archived: V keeps its parts for 3 minutes (RETAIN)")
    ]
    assert warehouse.snapshot().stale_parts("v") == PartSet()
    assert "archived: V keeps its parts for 3 minutes (RETAIN)" in warehouse.explain("V", minute(1))


def test_what_would_read_archived_parts_is_blocked_and_what_there_is_stays(warehouse: Warehouse) -> None:
    fill(warehouse, STREAM + "CREATE VIEW W AS SELECT x FROM S;")
    warehouse.retire()
    warehouse.apply("CREATE VIEW W AS SELECT x + 1 AS x FROM S", changed="restate")
    report = warehouse.refresh()
    assert [step.index - FIRST for step in report.steps] == [5, 6, 7, 8, 9]
    assert [(item.view, item.parts, item.reason, item.missing) for item in report.blocked] == [
        ("W", between(0, 4), "reads archived parts of S: S keeps its parts for 5 minutes (RETAIN)", ())
    ]
    assert [row.x for row in warehouse.query(f"SELECT x FROM W[{FIRST + 1}]").collect()] == [1]
    assert [row.x for row in warehouse.query(f"SELECT x FROM W[{FIRST + 6}]").collect()] == [7]
    assert warehouse.verify("W").left_out == (("W", between(0, 4)),)


def test_what_was_made_from_archived_parts_is_said_to_be_not_compared(warehouse: Warehouse) -> None:
    fill(warehouse, STREAM + "CREATE VIEW W AS SELECT x FROM S;")
    warehouse.retire()
    report = warehouse.verify("W")
    assert report.is_ok
    assert [(item.view, item.parts, item.reason) for item in report.unchecked] == [
        ("W", between(0, 4), "reads archived parts of S: S keeps its parts for 5 minutes (RETAIN)")
    ]
    assert report.checked == (("W", between(5, 9)),)


def test_what_a_view_is_yet_to_read_is_kept(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM + "CREATE VIEW V AS SELECT x FROM S;")
    warehouse.load("S", [{"ts": minute(m), "x": m} for m in range(10)])
    report = warehouse.retire()
    assert [(item.table, item.parts, item.held_because) for item in report.tables] == [
        ("S", PartSet(), f"V[{FIRST}] (2015-01-01T10:00) is yet to read S[{FIRST}] (2015-01-01T10:00)")
    ]
    warehouse.refresh(end=minute(3))
    assert [item.parts for item in warehouse.retire().tables] == [between(0, 2)]
    warehouse.refresh()
    assert [item.parts for item in warehouse.retire().tables] == [between(3, 4)]


def test_a_window_longer_than_retain_keeps_what_its_next_part_reads(warehouse: Warehouse) -> None:
    fill(
        warehouse,
        STREAM + "CREATE VIEW W AS INITIALIZE W[i] AS SELECT sum(x) AS s FROM S[i-7 .. i]"
        " UPDATE W[j] AS SELECT sum(x) AS s FROM S[j-7 .. j] PARTITION LENGTH 60;",
    )
    report = warehouse.retire()
    assert [(item.parts, item.held_because) for item in report.tables] == [
        (
            between(0, 2),
            f"W[{FIRST + 10}] (2015-01-01T10:10) is yet to read S[{FIRST + 3}] (2015-01-01T10:03)",
        )
    ]
    warehouse.gc(AT_ONCE)
    warehouse.load("S", [{"ts": minute(10), "x": 10}])
    assert [step.index - FIRST for step in warehouse.refresh().steps] == [10]


def test_retain_can_be_changed_without_restating_anything(warehouse: Warehouse) -> None:
    fill(warehouse, STREAM + "CREATE VIEW V AS SELECT x FROM S;")
    longer = STREAM.replace("5 minutes", "7 minutes")
    warehouse.apply(longer + "CREATE VIEW V AS SELECT x FROM S RETAIN '1 day';")
    assert warehouse.refresh().steps == ()
    assert [(item.table, item.parts) for item in warehouse.retire().tables] == [("S", between(0, 2))]
    # What is archived stays so, however long parts are to be kept from now on.
    warehouse.apply(STREAM.replace("5 minutes", "1 day"))
    assert warehouse.retire().tables == ()
    assert warehouse.archived_parts("S") == between(0, 2)


def test_rolled_up_parts_are_archived_one_by_one(warehouse: Warehouse, tmp_path: Path) -> None:
    fill(warehouse, STREAM, range(20))
    warehouse.roll_up("S", span="10 minutes", older_than="0 minutes")
    warehouse.gc(AT_ONCE)
    warehouse.apply(STREAM.replace("5 minutes", "12 minutes"))
    assert [item.parts for item in warehouse.retire().tables] == [between(0, 7)]
    warehouse.gc(AT_ONCE)
    folder = tmp_path / "wh" / "S" / "rolled"
    assert len(list(folder.iterdir())) == 2
    assert sorted(row.x for row in warehouse.query("SELECT x FROM S").collect()) == list(range(8, 20))
    warehouse.load("S", [{"ts": minute(m), "x": m} for m in range(20, 25)])
    warehouse.retire()
    warehouse.gc(AT_ONCE)
    assert len(list(folder.iterdir())) == 1


def test_a_query_over_everything_reads_what_is_kept_and_says_so(warehouse: Warehouse, caplog: Any) -> None:
    fill(warehouse, STREAM)
    warehouse.retire()
    assert sorted(row.x for row in warehouse.query("SELECT x FROM S").collect()) == [5, 6, 7, 8, 9]
    assert f"S[{FIRST} .. {FIRST + 4}] (2015-01-01T10:00 .. 2015-01-01T10:04) are archived and are not read." in (
        caplog.text
    )


def test_late_rows_reach_a_window_whose_source_and_helpers_are_kept_for_some_time_only(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM.replace("'5 minutes'", "'20 minutes'")
        + "CREATE VIEW V AS SELECT sum(x) AS total FROM S [WINDOW 3 minutes] WITH (strategy = 'delta') RETAIN '2 minutes'"
    )
    warehouse.load("S", [{"ts": minute(m), "x": 1} for m in range(40)])
    warehouse.refresh()
    warehouse.retire()
    assert warehouse.archived_parts("V") == between(2, 37)
    warehouse.gc(timedelta(0))
    # Later than RETAIN of V allows, and long after what S has archived: the state before it is still there.
    warehouse.load("S", [{"ts": minute(25), "x": 10}], batch_id="late")
    report = warehouse.refresh()
    assert report.blocked == ()
    warehouse.load("S", [{"ts": minute(38), "x": 100}], batch_id="later")
    warehouse.load("S", [{"ts": minute(40), "x": 1}], batch_id="next")
    assert warehouse.refresh().blocked == ()
    assert [row.total for row in warehouse.query("SELECT total FROM V ORDER BY PART").collect()] == [103, 103, 103]
    assert warehouse.status("V")[0].archived == between(2, 37)
