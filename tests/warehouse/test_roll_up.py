"""Rolled up, parts lie in few files, and nothing else is different."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from network import minute

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.versions import PartVersion
from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440  # 10:00
AT_ONCE = timedelta(seconds=-60)
SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k STRING, x INT) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT k, x, ts FROM S WHERE x >= 0;
CREATE VIEW Sum AS INITIALIZE Sum[i] AS SELECT k, CAST(sum(x) AS BIGINT) AS total, min(PART) AS oldest FROM S[i-1 .. i] GROUP BY k
  UPDATE Sum[j] AS SELECT k, CAST(sum(x) AS BIGINT), min(PART) FROM S[j-1 .. j] GROUP BY k PARTITION LENGTH 60;
"""


def rows(numbers: range) -> list[dict[str, Any]]:
    return [{"ts": minute(m, second), "k": "ab"[second % 2], "x": m + second} for m in numbers for second in range(3)]


def fill(warehouse: Warehouse, minutes: int = 12) -> None:
    warehouse.apply(SCRIPT)
    warehouse.load("S", rows(range(minutes)), batch_id="a", covers=(minute(0), minute(minutes + 1)))
    warehouse.refresh()


def versions(warehouse: Warehouse, table: str) -> list[tuple[Any, ...]]:
    """Everything that the catalog says of a table but where its rows lie."""

    def describe(item: PartVersion) -> tuple[Any, ...]:
        return (item.index, item.version, item.digest, item.inputs, item.inputs_digest, item.rule, item.created_at)

    return [describe(item) for item in warehouse.changed_since("2000-01-01", table)]


def answers(warehouse: Warehouse) -> dict[str, list[str]]:
    queries = {
        "all": "SELECT *, PART AS p, PART_TIMESTAMP AS at FROM S",
        "one": f"SELECT * FROM S[{FIRST + 7}]",
        "range": f"SELECT *, PART AS p FROM V[{FIRST + 3} .. {FIRST + 11}]",
        "filtered": "SELECT * FROM Sum WHERE PART_TIMESTAMP = '2015-01-01 10:06'",
        "empty": f"SELECT * FROM S[{FIRST + 12}]",
    }
    return {name: sorted(map(str, warehouse.query(sql).collect())) for name, sql in queries.items()}


def roll_up(warehouse: Warehouse, *tables: str) -> list[tuple[str, str]]:
    report = warehouse.roll_up(tables or None, span="5 minutes", older_than="3 minutes")
    assert report.left == ()
    return [(item.table, str(item.parts)) for item in report.rolled]


def test_versions_digests_and_answers_stay_and_files_become_few(warehouse: Warehouse) -> None:
    fill(warehouse)
    before, said = answers(warehouse), {name: versions(warehouse, name) for name in ("S", "V", "Sum")}
    assert roll_up(warehouse, "S", "V") == [
        (name, f"{FIRST + low} .. {FIRST + low + 4}") for name in ("S", "V") for low in (0, 5)
    ]
    assert answers(warehouse) == before
    assert {name: versions(warehouse, name) for name in ("S", "V", "Sum")} == said
    span = f"S[{FIRST} .. {FIRST + 9}]"
    assert len(warehouse.query(f"SELECT * FROM {span}").inputFiles()) == 2
    assert len(warehouse.query(f"SELECT * FROM V[{FIRST + 3}]").inputFiles()) == 1
    assert roll_up(warehouse, "S", "V") == []
    assert warehouse.refresh().steps == ()


def test_views_and_loads_go_on_over_rolled_up_parts(warehouse: Warehouse) -> None:
    fill(warehouse)
    roll_up(warehouse)
    # A batch takes the place of what it brought before, also in parts that were rolled up since; others keep theirs.
    warehouse.load("S", [{"ts": minute(4, 30), "k": "a", "x": 100}], batch_id="late")
    warehouse.load("S", [*rows(range(4)), *rows(range(5, 12))], batch_id="a", covers=(minute(0), minute(13)))
    report = warehouse.refresh()
    assert {step.index - FIRST for step in report.steps if step.view == "Sum"} == {4, 5}
    assert [tuple(row) for row in warehouse.query(f"SELECT k, x FROM S[{FIRST + 4}]").collect()] == [("a", 100)]
    assert [row.x for row in warehouse.query(f"SELECT x FROM V[{FIRST + 4}]").collect()] == [100]
    # The changed part left its file set, and joins the next one.
    assert roll_up(warehouse, "S") == [("S", f"{FIRST} .. {FIRST + 4}")]
    assert warehouse.verify("Sum").is_ok


def test_an_older_answer_keeps_its_files_until_the_grace_period_is_over(warehouse: Warehouse, tmp_path: Path) -> None:
    fill(warehouse)
    older = warehouse.query("SELECT count(*) AS ct FROM S")
    roll_up(warehouse)
    assert warehouse.gc().paths == ()
    assert older.collect()[0].ct == 36
    removed = warehouse.gc(AT_ONCE).paths
    assert f"S/{FIRST + 3}" in {path.rpartition("/")[0] for path in removed}
    assert not (tmp_path / "wh" / "S" / str(FIRST + 3)).exists()
    assert len(list((tmp_path / "wh" / "S" / "rolled").iterdir())) == 2
    assert warehouse.query("SELECT count(*) AS ct FROM S").collect()[0].ct == 36


def test_a_shared_file_set_is_removed_with_the_last_part_in_it(warehouse: Warehouse, tmp_path: Path) -> None:
    fill(warehouse, 6)
    report = warehouse.roll_up("S", span="5 minutes", older_than="0 minutes")
    assert [str(item.parts) for item in report.rolled] == [f"{FIRST} .. {FIRST + 4}"]
    folder = tmp_path / "wh" / "S" / "rolled"
    first = next(folder.iterdir()).name
    warehouse.load("S", [{"ts": minute(m, 40), "k": "a", "x": 1} for m in range(4)], batch_id="late")
    warehouse.gc(AT_ONCE)
    assert [path.name for path in folder.iterdir()] == [first]
    warehouse.load("S", [{"ts": minute(4, 40), "k": "a", "x": 1}], batch_id="later")
    warehouse.gc(AT_ONCE)
    assert not folder.exists()
    assert warehouse.query("SELECT count(*) AS ct FROM S").collect()[0].ct == 23


def test_what_a_crashed_roll_up_wrote_is_removed(warehouse: Warehouse, tmp_path: Path) -> None:
    fill(warehouse, 3)
    orphan = tmp_path / "wh" / "S" / "rolled" / f"{FIRST}_{FIRST + 2}-crashed"
    orphan.mkdir(parents=True)
    (orphan / "part.parquet").write_bytes(b"half")
    assert warehouse.gc().orphans == 0
    assert warehouse.gc(AT_ONCE).orphans == 1
    assert not orphan.exists()


def test_a_part_whose_rows_are_not_what_was_written_is_left_and_said(warehouse: Warehouse, tmp_path: Path) -> None:
    fill(warehouse, 6)
    folder, other = (next((tmp_path / "wh" / "V" / str(FIRST + m)).iterdir()) for m in (2, 3))
    for file in folder.iterdir():
        file.unlink()
    for file in other.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    report = warehouse.roll_up("V", span="5 minutes", older_than="0 minutes")
    assert [item.left_because for item in report.left] == [
        f"the rows of V[{FIRST + 2}] (2015-01-01T10:02) are not those that were written"
    ]
    assert report.rolled == ()
    assert not (tmp_path / "wh" / "V" / "rolled").exists()


def test_lengths_that_make_no_sense_are_refused(warehouse: Warehouse) -> None:
    with pytest.raises(UsageError) as raised:
        warehouse.roll_up(span="0 days")
    assert str(raised.value) == "span is the time whose parts are put together, such as '1 day'; it cannot be nothing."
    with pytest.raises(UsageError) as raised:
        warehouse.roll_up(older_than=timedelta(seconds=-1))
    assert str(raised.value) == (
        "older_than is a length of time in whole seconds, such as '1 day', not -1 day, 23:59:59."
    )
