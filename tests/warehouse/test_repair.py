"""Damaged files: what a refresh and a question say of them, and how their rows come back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warehouse.network import LOSSES, NETWORK, measurement, minute

from airflow_provider_viewdf.errors import DamagedPartError, MissingPartError, StepFailedError, UsageError
from airflow_provider_viewdf.versions import PartVersion
from airflow_provider_viewdf.warehouse import Warehouse

PART = 23668444  # 2015-01-01 10:04
COLUMNS = "src, dest, ct, sum_loss"


@pytest.fixture
def network(warehouse: Warehouse) -> Warehouse:
    warehouse.apply(NETWORK)
    for number, loss in LOSSES.items():
        warehouse.load("M", [measurement(number, loss)], batch_id=f"batch {number}")
    warehouse.refresh()
    return warehouse


def current(warehouse: Warehouse, table: str, number: int = 4) -> PartVersion:
    return warehouse.version_history(table, minute(number))[-1]


def files_of(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> list[Path]:
    return sorted((tmp_path / "wh" / current(warehouse, table, number).location).glob("*.parquet"))


def remove_file(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> None:
    for path in files_of(warehouse, tmp_path, table, number):
        path.unlink()


def remove_directory(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> None:
    shutil.rmtree(tmp_path / "wh" / current(warehouse, table, number).location)


def truncate(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> None:
    (path,) = files_of(warehouse, tmp_path, table, number)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    forget_checksum(path)


def change_schema(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> None:
    (path,) = files_of(warehouse, tmp_path, table, number)
    pq.write_table(pa.table({"src": ["a"], "dest": ["b"], "ct": ["four"], "sum_loss": [71]}), path)
    forget_checksum(path)


def drop_rows(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> None:
    (path,) = files_of(warehouse, tmp_path, table, number)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    forget_checksum(path)


def change_a_value(warehouse: Warehouse, tmp_path: Path, table: str, number: int = 4) -> None:
    (path,) = files_of(warehouse, tmp_path, table, number)
    rows = pq.read_table(path)
    pq.write_table(rows.set_column(0, rows.schema.field(0), pa.array(["x"] * len(rows))), path)
    forget_checksum(path)


def forget_checksum(path: Path) -> None:
    """Hadoop keeps one beside each local file, and would find any damage by it; object stores have none."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


DAMAGES = {
    "a file is missing": (remove_file, "has no files"),
    "the directory is missing": (remove_directory, "has no files"),
    "a file is cut off": (truncate, "cannot be read ("),
    "a file has other columns": (change_schema, "has string where ct is int"),
    "a file has fewer rows": (drop_rows, "has 0 rows of it, and 1 were written"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_of_a_view_is_computed_again_and_nothing_else_is(
    network: Warehouse, tmp_path: Path, damage: str
) -> None:
    do_damage, problem = DAMAGES[damage]
    before = {table: current(network, table) for table in ("Helper", "View2")}
    do_damage(network, tmp_path, "Helper")
    found = network.repair(dry_run=True)
    assert [(item.table, item.index, item.outcome) for item in found.damaged] == [("Helper", PART, "found")]
    assert problem in found.damaged[0].problem
    assert not found.is_ok

    report = network.repair()
    assert [(item.table, item.index, item.outcome) for item in report.damaged] == [("Helper", PART, "restored")]
    assert report.is_ok
    after = {table: current(network, table) for table in ("Helper", "View2")}
    assert after["Helper"].version == before["Helper"].version
    assert after["Helper"].location != before["Helper"].location
    assert after["View2"] == before["View2"]
    assert network.refresh().steps == ()
    assert network.repair().damaged == ()
    assert network.verify().is_ok
    rows = network.query(f"SELECT {COLUMNS} FROM Helper WHERE PART = {PART}").collect()
    assert [tuple(row) for row in rows] == [("a", "b", 4, 71)]


def test_other_rows_are_found_by_a_deep_check_only(network: Warehouse, tmp_path: Path) -> None:
    change_a_value(network, tmp_path, "Helper")
    assert network.repair().damaged == ()
    report = network.repair("Helper", deep=True)
    location = report.damaged[0].problem.partition(" ")[0]
    assert [(item.problem, item.outcome) for item in report.damaged] == [
        (f"{location} has other rows than were written", "restored")
    ]
    assert network.verify().is_ok


def test_several_damaged_parts_of_a_chain_are_restored_in_order(network: Warehouse, tmp_path: Path) -> None:
    for number in (2, 3, 4):
        remove_file(network, tmp_path, "Helper", number)
    remove_file(network, tmp_path, "View2", 5)
    report = network.repair()
    assert [(item.table, item.outcome) for item in report.damaged] == [("Helper", "restored")] * 3 + [
        ("View2", "restored")
    ]
    assert network.verify().is_ok


@pytest.mark.parametrize("damage", ["a file is missing", "the directory is missing", "a file is cut off"])
def test_a_refresh_that_meets_a_damaged_file_names_it_and_the_repair(
    network: Warehouse, tmp_path: Path, damage: str
) -> None:
    DAMAGES[damage][0](network, tmp_path, "Helper")
    before = current(network, "Helper", 5)
    network.load("M", [measurement(5, 99)], batch_id="late")
    with pytest.raises(StepFailedError) as found:
        network.refresh()
    location = current(network, "Helper").location
    message = str(found.value)
    assert message.startswith(f"Helper[{PART + 1}] (2015-01-01T10:05) could not be computed by UPDATE: {location}")
    assert f", which holds rows of Helper[{PART}], " in message
    assert message.endswith(". This finds and repairs damaged parts: viewdf repair")
    assert current(network, "Helper", 5) == before
    network.repair()
    network.refresh()
    assert network.verify().is_ok


def test_a_question_that_meets_a_missing_part_names_it_and_the_repair(network: Warehouse, tmp_path: Path) -> None:
    remove_directory(network, tmp_path, "View2")
    location = current(network, "View2").location
    with pytest.raises(DamagedPartError) as found:
        network.query("SELECT * FROM View2").collect()
    assert str(found.value) == (
        f"{location}, which holds rows of View2[{PART}], is not there. "
        "This finds and repairs damaged parts: viewdf repair"
    )


def test_lost_rows_of_a_stream_come_back_with_the_batch_that_brought_them(network: Warehouse, tmp_path: Path) -> None:
    before = current(network, "M")
    truncate(network, tmp_path, "M")
    report = network.repair()
    (item,) = report.damaged
    assert (item.table, item.index, item.outcome, item.remedy) == ("M", PART, "load again", "batch batch 4 (1 row)")
    assert not report.is_ok

    lost = "M[23668444] (2015-01-01T10:04) lost rows when files were damaged. What brought them has to be loaded again; this lists it: viewdf repair M"
    with pytest.raises(DamagedPartError) as found:
        network.query("SELECT * FROM M")
    assert str(found.value) == lost
    network.load("M", [measurement(3, 98)], batch_id="late")
    with pytest.raises(StepFailedError) as failed:
        network.refresh()
    assert str(failed.value).endswith(f"could not be computed by UPDATE: {lost}")

    result = network.load("M", [measurement(4, LOSSES[4])], batch_id="batch 4")
    assert (list(result.restored), list(result.changed)) == ([PART], [])
    after = current(network, "M")
    assert (after.version, after.digest) == (before.version, before.digest)
    assert network.repair().damaged == ()
    network.refresh()
    assert network.verify().is_ok


def test_a_part_that_several_batches_brought_is_whole_when_all_are_loaded_again(
    network: Warehouse, tmp_path: Path
) -> None:
    network.load("M", [measurement(4, 1)], batch_id="second")
    network.load("M", [measurement(4, 2)], batch_id="third")
    network.refresh()
    before = current(network, "M")
    remove_directory(network, tmp_path, "M")
    (item,) = network.repair().damaged
    assert item.remedy == "batch batch 4 (1 row), batch second (1 row), batch third (1 row)"

    assert not network.load("M", [measurement(4, 2)], batch_id="third").restored
    (item,) = network.repair().damaged
    assert (item.problem, item.remedy) == ("its rows are lost", "batch batch 4 (1 row), batch second (1 row)")
    network.gc()
    # A batch that comes meanwhile, and one that is corrected: neither makes the part whole.
    network.load("M", [measurement(4, 3)], batch_id="fourth")
    assert not network.load("M", [measurement(4, 7)], batch_id="second").restored
    with pytest.raises(DamagedPartError):
        network.query("SELECT * FROM M")
    assert list(network.load("M", [measurement(4, LOSSES[4])], batch_id="batch 4").restored) == [PART]
    losses = network.query(f"SELECT loss FROM M WHERE PART = {PART} ORDER BY loss").collect()
    assert [row[0] for row in losses] == [2, 3, 7, 20]
    assert current(network, "M").version > before.version
    network.refresh()
    assert network.verify().is_ok


def test_a_damaged_part_that_an_earlier_definition_made_is_made_by_the_present_one(
    network: Warehouse, tmp_path: Path
) -> None:
    network.apply(NETWORK.replace("ct >= 4", "ct >= 5"), changed="forward")
    remove_directory(network, tmp_path, "View2", 4)
    before = current(network, "View2", 5)
    (item,) = network.repair().damaged
    assert (item.table, item.index, item.outcome) == ("View2", PART, "recomputed")
    assert item.remedy == "by the present definition; the earlier one that had made it is gone"
    assert current(network, "View2").rows == 0
    assert current(network, "View2", 5) == before
    assert network.repair(dry_run=True).damaged == ()


def test_gc_and_roll_up_leave_lost_parts_alone(network: Warehouse, tmp_path: Path) -> None:
    remove_directory(network, tmp_path, "M")
    network.repair()
    network.roll_up("M", span="2 minutes", older_than="0 seconds")
    network.gc()
    assert list(network.load("M", [measurement(4, LOSSES[4])], batch_id="batch 4").restored) == [PART]
    assert network.query("SELECT * FROM M").count() == len(LOSSES)


def test_parts_in_a_damaged_shared_file_are_all_restored(network: Warehouse, tmp_path: Path) -> None:
    network.roll_up("Helper", span="2 minutes", older_than="0 seconds")
    directory = tmp_path / "wh" / current(network, "Helper").location.partition("#")[0]
    (path,) = directory.glob("*.parquet")
    path.write_bytes(b"PAR1 rubbish PAR1")
    forget_checksum(path)
    report = network.repair()
    assert [(item.index, item.outcome) for item in report.damaged] == [(PART, "restored"), (PART + 1, "restored")]
    assert network.verify().is_ok


def test_a_view_over_lost_rows_is_left_and_says_why(network: Warehouse, tmp_path: Path) -> None:
    truncate(network, tmp_path, "M")
    truncate(network, tmp_path, "Helper")
    report = network.repair()
    assert [(item.table, item.outcome) for item in report.damaged] == [("M", "load again"), ("Helper", "left")]
    assert "lost rows when files were damaged" in report.damaged[1].remedy
    with pytest.raises(MissingPartError) as found:
        network.query("SELECT * FROM Helper")
    assert str(found.value) == (
        "The query reads Helper[23668444] (2015-01-01T10:04), whose files were damaged. Compute it again: viewdf refresh Helper"
    )
    network.load("M", [measurement(4, LOSSES[4])], batch_id="batch 4")
    network.refresh()
    assert network.repair().damaged == ()
    assert network.verify().is_ok


def test_a_warehouse_that_is_not_there_is_not_taken_for_damaged(network: Warehouse, tmp_path: Path) -> None:
    catalog = tmp_path / "elsewhere.db"
    shutil.copy(tmp_path / "wh" / "catalog.sqlite", catalog)
    with Warehouse.open(tmp_path / "not mounted", catalog_url=f"sqlite:///{catalog}") as other:
        shutil.rmtree(tmp_path / "not mounted", ignore_errors=True)
        with pytest.raises(UsageError) as found:
            other.repair()
    assert str(found.value) == (
        f"There is nothing at file://{tmp_path}/not mounted: is the disk or the share there? Nothing was taken for damaged."
    )


def test_changed_files_of_an_external_stream_are_registered_and_missing_ones_named(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    day = tmp_path / "lake" / "2015-01-01"
    for hour in ("10", "11"):
        (day / hour).mkdir(parents=True)
        (day / hour / "a.json").write_text(json.dumps({"ts": f"2015-01-01T{hour}:30:00Z", "v": 1}))
    warehouse.apply(
        "CREATE STREAM E (ts TIMESTAMP ORDERED, v INT) PARTITION LENGTH '1 hour' "
        f"LOCATION '{tmp_path}/lake/{{yyyy-MM-dd}}/{{HH}}' FORMAT json"
    )
    warehouse.look("E", start="2015-01-01 10:00", end="2015-01-01 12:00")
    report = warehouse.repair()
    assert (report.checked, report.damaged) == (2, ())
    (day / "10" / "a.json").write_text(json.dumps({"ts": "2015-01-01T10:30:00Z", "v": 1000}))
    (day / "11" / "a.json").unlink()
    report = warehouse.repair()
    assert [item.outcome for item in report.damaged] == ["registered", "left"]
    assert report.damaged[1].remedy == (
        "put the files back, or say that it is right: viewdf declare-empty E --at 2015-01-01T11:00"
    )
