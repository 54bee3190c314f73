"""Looking at the files of an external stream: what is registered, when, and as which version. Without Spark.

On a file system, on fsspec's memory, on one that answers as S3 does, and on a real S3-compatible server where there is one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry
from warehouse.lake import FIRST, Lake, hour, row

from airflow_provider_viewdf.errors import ChangedDefinitionError, ExternalFilesError, UsageError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import LookResult
from airflow_provider_viewdf.versions import PartFile, PartVersion
from airflow_provider_viewdf.warehouse import Warehouse


class ObjectStore(MemoryFileSystem):
    """fsspec's memory file system with what an S3 listing has: an etag of the content, no time of a directory."""

    protocol = "s3"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return MemoryFileSystem._strip_protocol(str(path).removeprefix("s3:"))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        entries = super().ls(path, detail=True, **kwargs)
        for entry in entries:
            entry.pop("created", None)
            if entry["type"] == "file":
                content = self.store[entry["name"]].getvalue()
                entry["ETag"] = f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'
        return entries if detail else [entry["name"] for entry in entries]


@pytest.fixture
def object_store() -> Iterator[None]:
    fsspec.register_implementation("s3", ObjectStore, clobber=True)
    yield
    ObjectStore.store.clear()
    _registry.pop("s3")


@pytest.fixture(params=["file", "memory", "s3a", "server"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "file":
        yield Lake(str(tmp_path / "lake"))
        return
    if request.param == "server":
        yield Lake(f"s3a://{request.getfixturevalue('s3_environment').create_bucket()}/events")
        return
    request.getfixturevalue("object_store")
    made = Lake(f"{request.param.removesuffix('a') if request.param == 's3a' else 'memory'}://lake/events")
    made.url = f"{request.param}://lake/events"  # what Spark's people write
    yield made
    MemoryFileSystem.store.clear()


@pytest.fixture
def wh(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "wh") as opened:
        yield opened


def parts(*numbers: int) -> PartSet:
    return PartSet.of_indexes(FIRST - 10 + number for number in numbers)


def seen(result: LookResult) -> tuple[PartSet, PartSet, PartSet]:
    return result.registered, result.changed, result.missing


def current(wh: Warehouse, number: int) -> PartVersion:
    return wh.version_history("E", hour(number))[-1]


NOTHING = PartSet()


def test_a_look_registers_the_parts_that_have_files(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    lake.write(12, [row(12, "a", 1)])
    lake.write(12, [row(12, "b", 1)], "deep/er/b")

    result = wh.look("e", hour(9), hour(14))

    assert (result.table, result.looked, result.files) == ("E", parts(9, 10, 11, 12, 13), 3)
    assert seen(result) == (parts(10, 12), NOTHING, parts(9, 11, 13))
    version = current(wh, 12)
    assert (version.version, version.location) == (1, f"{_shown(lake)}/dt=2015-01-01/h=12")
    assert [(item.name, item.size) for item in version.files] == [("a.csv", 31), ("deep/er/b.csv", 31)]
    assert all(item.mark for item in version.files)
    assert wh.existing_parts("E") == parts(10, 12)


def _shown(lake: Lake) -> str:
    return lake.url if "://" in lake.url else f"file://{lake.url}"


def test_a_second_look_changes_nothing(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    wh.look("E", hour(10))

    result = wh.look("E", hour(10))

    assert seen(result) == (NOTHING, NOTHING, NOTHING)
    assert len(wh.version_history("E", hour(10))) == 1


def test_files_that_are_added_replaced_or_removed_make_a_new_version(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    wh.look("E", hour(10))

    lake.write(10, [row(10, "b", 2)], "late")
    assert seen(wh.look("E", hour(10))) == (NOTHING, parts(10), NOTHING)
    file = lake.write(10, [row(10, "a", 7)])  # of the same size
    if os.path.exists(file):
        os.utime(file, (0, 1_500_000_000))
    assert seen(wh.look("E", hour(10))) == (NOTHING, parts(10), NOTHING)
    lake.delete(10, "late.csv")
    assert seen(wh.look("E", hour(10))) == (NOTHING, parts(10), NOTHING)

    history = wh.version_history("E", hour(10))
    assert [[item.name for item in version.files] for version in history] == [
        ["a.csv"],
        ["a.csv", "late.csv"],
        ["a.csv", "late.csv"],
        ["a.csv"],
    ]
    assert len({version.digest for version in history}) == 4


def test_a_file_rewritten_with_the_same_content_is_the_same_where_there_are_etags(
    wh: Warehouse, object_store: None
) -> None:
    lake = Lake("s3://lake/events")
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    wh.look("E", hour(10))
    lake.write(10, [row(10, "a", 1)])

    assert seen(wh.look("E", hour(10))) == (NOTHING, NOTHING, NOTHING)


def test_hidden_files_are_no_data(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    for name in ("_SUCCESS", ".a.csv.crc", "_temporary/0/a.csv", ".spark/a.csv", "a.csv._COPYING_"):
        lake.write_text(10, name, "x")

    assert seen(wh.look("E", hour(10))) == (NOTHING, NOTHING, parts(10))
    lake.write(10, [row(10, "a", 1)])
    wh.look("E", hour(10))
    assert [item.name for item in current(wh, 10).files] == ["a.csv"]


def test_complete_when_a_file_is_there(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define("COMPLETE WHEN 'done.txt'"))
    lake.write(10, [row(10, "a", 1)])
    assert seen(wh.look("E", hour(10), hour(12))) == (NOTHING, NOTHING, parts(10, 11))

    lake.write_text(10, "done.txt")
    lake.write_text(11, "done.txt")
    assert seen(wh.look("E", hour(10), hour(12))) == (parts(10, 11), NOTHING, NOTHING)

    assert [item.name for item in current(wh, 10).files] == ["a.csv"]
    assert (current(wh, 11).files, current(wh, 11).location, current(wh, 11).rows) == ((), "", 0)


def test_complete_after_a_time(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define("COMPLETE AFTER '10 minutes'"))
    lake.write(10, [row(10, "a", 1)])
    almost, just = hour(11) + timedelta(minutes=9, seconds=59), hour(11) + timedelta(minutes=10)

    assert seen(wh.look("E", hour(10), now=almost)) == (NOTHING, NOTHING, parts(10))
    assert seen(wh.look("E", hour(10), hour(13), now=just)) == (parts(10), NOTHING, parts(11, 12))
    # Without a directory it is empty, once its time has come.
    assert seen(wh.look("E", hour(10), hour(13), now=just + timedelta(hours=1))) == (parts(11), NOTHING, parts(12))
    assert (current(wh, 11).files, current(wh, 11).location) == ((), "")
    lake.write(11, [row(11, "a", 1)])
    assert seen(wh.look("E", hour(11), now=just + timedelta(hours=1))) == (NOTHING, parts(11), NOTHING)


def test_a_look_back_finds_late_files_and_nothing_waits_for_the_rest(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    for number in (9, 10, 11):
        lake.write(number, [row(number, "a", 1)])
    wh.look("E", hour(9), hour(11))
    lake.write(9, [row(9, "late", 1)], "late")

    result = wh.look("E", hour(11), lookback=3)

    assert result.looked == parts(8, 9, 10, 11)
    assert seen(result) == (parts(11), parts(9), parts(8))


def test_time_alone_makes_no_empty_parts_before_the_first_one(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define("COMPLETE AFTER '0 minutes'"))
    lake.write(10, [row(10, "a", 1)])
    now = hour(23)

    assert seen(wh.look("E", hour(10), lookback=5, now=now)) == (parts(10), NOTHING, parts(5, 6, 7, 8, 9))
    # After it they do count: the stream had begun.
    assert seen(wh.look("E", hour(13), lookback=2, now=now))[0] == parts(11, 12, 13)
    # And so do those that are asked for.
    assert seen(wh.look("E", hour(8), now=now))[0] == parts(8)


def test_a_part_whose_files_are_all_gone_keeps_its_version_and_is_missing(wh: Warehouse, lake: Lake) -> None:
    for clauses, name in (("", "E"), ("COMPLETE AFTER '0 minutes'", "F")):
        wh.apply(lake.define(clauses, name))
    lake.write(10, [row(10, "a", 1)])
    for name in ("E", "F"):
        wh.look(name, hour(10))
    lake.delete(10, "a.csv")

    for name in ("E", "F"):
        result = wh.look(name, hour(10))
        assert (seen(result), result.gone) == ((NOTHING, NOTHING, parts(10)), parts(10))
        assert len(wh.version_history(name, hour(10))) == 1


def test_a_part_whose_files_are_gone_can_be_declared_empty(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    for number in (10, 11):
        lake.write(number, [row(number, "a", 1)])
    wh.look("E", hour(10), hour(12))
    lake.delete(10, "a.csv")

    result = wh.declare_empty("E", hour(10), "deleted after a year", until=hour(12))

    assert result.changed == parts(10)
    assert (current(wh, 10).files, current(wh, 10).version) == ((), 2)
    assert [item.name for item in current(wh, 11).files] == ["a.csv"]  # what has files keeps them
    assert seen(wh.look("E", hour(10), hour(12))) == (NOTHING, NOTHING, NOTHING)


def test_a_marker_without_files_says_that_they_are_gone_on_purpose(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define("COMPLETE WHEN '_SUCCESS'"))
    lake.write(10, [row(10, "a", 1)])
    lake.write_text(10, "_SUCCESS")
    wh.look("E", hour(10))
    lake.delete(10, "a.csv")
    lake.delete(10, "_SUCCESS")
    assert wh.look("E", hour(10)).gone == parts(10)  # it is being rewritten, perhaps

    lake.write_text(10, "_SUCCESS")
    assert seen(wh.look("E", hour(10))) == (NOTHING, parts(10), NOTHING)
    assert current(wh, 10).files == ()


def test_a_part_declared_empty_is_there_until_files_come(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    wh.declare_empty("E", hour(10), "the feed was down")

    assert seen(wh.look("E", hour(10))) == (NOTHING, NOTHING, NOTHING)
    (status,) = wh.status("E")
    assert [(item.index, item.why) for item in status.declared_empty] == [(FIRST, "the feed was down")]
    lake.write(10, [row(10, "a", 1)])
    assert seen(wh.look("E", hour(10))) == (NOTHING, parts(10), NOTHING)


def test_status_counts_files_and_bytes(wh: Warehouse, lake: Lake) -> None:
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    lake.write(12, [row(12, "a", 1)])
    wh.look("E", hour(10), hour(13))

    (status,) = wh.status("E")

    assert (status.location, status.files, status.bytes, status.rows) == (lake.location, 2, 62, 0)
    assert (status.parts, status.missing) == (parts(10, 12), parts(11))


def test_an_older_list_does_not_undo_a_newer_one(
    tmp_path: Path, wh: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody registers a late file after another has listed the files, and before that one publishes."""
    from airflow_provider_viewdf.engine.external_files import ExternalFiles, FoundPart

    lake = Lake(str(tmp_path / "lake"))
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    find = ExternalFiles.find
    looks: list[int] = []

    def find_slowly(self: ExternalFiles, index: int, now: datetime) -> FoundPart:
        found = find(self, index, now)
        looks.append(index)
        if len(looks) == 1:
            lake.write(10, [row(10, "late", 1)], "late")
            with Warehouse.open(tmp_path / "wh") as other:
                other.look("E", hour(10))
        return found

    monkeypatch.setattr(ExternalFiles, "find", find_slowly)
    wh.look("E", hour(10))

    assert [item.name for item in current(wh, 10).files] == ["a.csv", "late.csv"]
    assert len(wh.version_history("E", hour(10))) == 1
    assert len(looks) == 3


def test_when_parts_are_complete_may_be_changed_but_not_where_they_lie(wh: Warehouse, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    wh.look("E", hour(10))

    wh.apply(lake.define("COMPLETE WHEN '_SUCCESS'"))
    assert wh.definitions()[0].complete_when == "_SUCCESS"
    assert wh.look("E", hour(10)).gone == parts(10)
    with pytest.raises(ChangedDefinitionError):
        wh.apply(Lake(str(tmp_path / "other")).define("COMPLETE WHEN '_SUCCESS'"))
    assert wh.definitions()[0].location == lake.location


def test_rows_cannot_be_loaded_into_an_external_stream(wh: Warehouse, tmp_path: Path) -> None:
    wh.apply(Lake("lake").define())

    with pytest.raises(UsageError) as error:
        wh.load("E", [{"ts": "2015-01-01 10:00:00", "k": "a", "v": 1}])

    assert str(error.value) == (
        "E is external: its rows are in the files at lake/dt={yyyy-MM-dd}/h={HH}, so none can be loaded; "
        "put files there, and register them: viewdf look E."
    )
    assert not wh.existing_parts("E")


def test_gc_forgets_replaced_versions_and_deletes_none_of_their_files(wh: Warehouse, tmp_path: Path) -> None:
    # Inside the warehouse, and with directories that look like those of versions: lake/2015/0101.
    place = tmp_path / "wh" / "lake" / "2015" / "0101"
    wh.apply(
        "CREATE STREAM E (ts TIMESTAMP ORDERED, k STRING, v INT) PARTITION LENGTH '1 day' "
        "LOCATION 'lake/{yyyy}/{MMdd}' FORMAT csv"
    )
    place.mkdir(parents=True)
    (place / "a.csv").write_text("ts,k,v\n")
    wh.look("E", "2015-01-01")
    (place / "b.csv").write_text("ts,k,v\n")
    wh.look("E", "2015-01-01")
    unregistered = place.parent / "0102" / "c.csv"
    unregistered.parent.mkdir()
    unregistered.write_text("ts,k,v\n")
    orphan = tmp_path / "wh" / "V" / "16436" / "v1-0123456789ab"
    orphan.mkdir(parents=True)

    report = wh.gc(timedelta(0))

    assert (report.versions, report.orphans, report.paths) == (1, 1, ("V/16436/v1-0123456789ab",))
    assert sorted(item.name for item in place.iterdir()) == ["a.csv", "b.csv"]
    assert unregistered.exists()
    assert [version.version for version in wh.version_history("E", "2015-01-01")] == [2]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            {"at": "2015-01-01T10:00", "table": "M"},
            "M has no files of others to look at; only a stream with a LOCATION is external.",
        ),
        ({}, "No part of E is registered yet; say from when on to look for its files."),
        (
            {"start": "2015-01-02", "end": "2015-01-01"},
            "There is nothing to look at from 2015-01-02T00:00:00 to 2015-01-01T00:00:00; give a time and a later one.",
        ),
        ({"at": "2015-01-01", "lookback": -1}, "lookback is a number of parts, not -1."),
        ({"start": "2015-01-01", "parts": PartSet()}, "Give one of parts, at, or start and end."),
        (
            {"start": "1800-01-01", "end": "2015-01-01"},
            "These are 1884648 parts of E, more than a million; look at fewer at a time.",
        ),
    ],
)
def test_a_look_that_makes_no_sense_is_refused(wh: Warehouse, call: dict[str, Any], sentence: str) -> None:
    wh.apply(Lake("lake").define() + ";CREATE STREAM M (ts TIMESTAMP ORDERED) PARTITION LENGTH 60")

    with pytest.raises(UsageError) as error:
        wh.look(**{"table": "E", **call})

    assert str(error.value) == sentence


def test_a_file_where_a_directory_is_expected_is_named(wh: Warehouse, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    wh.apply(lake.define())
    lake.write_text(10, "x")
    os.rename(f"{lake.directory(10)}/x", f"{lake.directory(11)}")
    Path(lake.directory(11)).write_text("x")

    with pytest.raises(ExternalFilesError) as error:
        wh.look("E", hour(11))

    assert str(error.value) == (
        f"file://{lake.directory(11)} is a file; the LOCATION of E names the directory of a part's files."
    )


def test_a_protocol_that_nothing_reaches_is_named(wh: Warehouse) -> None:
    wh.apply(Lake("memory://x").define().replace("memory://x", "nosuch://lake"))

    with pytest.raises(ExternalFilesError) as error:
        wh.look("E", hour(10))

    assert str(error.value) == "The files of E cannot be reached: Protocol not known: nosuch."


def test_a_parquet_file_that_lacks_a_column_is_named_and_nothing_is_registered(wh: Warehouse, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    lake = Lake(str(tmp_path / "lake"), "parquet")
    wh.apply(lake.define())
    lake.write(9, [row(9, "a", 1)])
    file = lake.write(10, [row(10, "a", 1)])
    pyarrow.parquet.write_table(pyarrow.table({"TS": [1], "k": ["a"], "value": [1]}), file)

    with pytest.raises(ExternalFilesError) as error:
        wh.look("E", hour(9), hour(11))
    assert str(error.value) == f"file://{file} does not fit E: it has no column v; nothing was registered."
    Path(file).write_text("no parquet")
    with pytest.raises(ExternalFilesError) as error:
        wh.look("E", hour(9), hour(11))
    assert str(error.value) == f"file://{file} is not a Parquet file, as E declares; nothing was registered."
    assert not wh.existing_parts("E")


def test_what_the_catalog_keeps_of_a_file_survives_strange_names(wh: Warehouse, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    wh.apply(lake.define())
    names = ["a b+c%20.csv", "ü😀.csv", 'it\'s "x"[1]{2}*.csv']
    for name in names:
        lake.write_text(10, name, "ts,k,v\n")
    wh.look("E", hour(10))

    files = current(wh, 10).files
    assert sorted(item.name for item in files) == sorted(names)
    assert all(isinstance(item, PartFile) and item.size == 7 for item in files)
    assert seen(wh.look("E", hour(10))) == (NOTHING, NOTHING, NOTHING)


def test_looking_imports_no_spark(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"), "parquet")
    lake.write(10, [row(10, "a", 1)])
    program = (
        "import sys\n"
        "from airflow_provider_viewdf.warehouse import Warehouse\n"
        f"with Warehouse.open({str(tmp_path / 'wh')!r}) as wh:\n"
        f"    wh.apply({lake.define()!r})\n"
        "    print(len(wh.look('E', '2015-01-01T10:00').registered))\n"
        "print('pyspark' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["1", "False"]
