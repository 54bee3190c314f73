from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest

from airflow_provider_viewdf.engine.part_files import FoundDirectory, PartFiles, resolve_root
from airflow_provider_viewdf.errors import UsageError


@pytest.fixture(params=["path", "file URL", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> PartFiles:
    warehouse = {
        "path": str(tmp_path / "wh"),
        "file URL": f"file://{tmp_path}/wh/",
        "memory": f"memory://{uuid4().hex}/wh",
    }
    return PartFiles(warehouse[request.param])


def write(files: PartFiles, location: str) -> None:
    files.make_dirs(location.rpartition("/")[0])
    files.filesystem.pipe_file(files.path(location), b"rows")


def test_a_moved_directory_is_at_its_new_place_with_all_its_files(files: PartFiles) -> None:
    write(files, ".staging/a/__part=-5/x.parquet")
    write(files, ".staging/a/__part=-5/.x.parquet.crc")
    files.move(".staging/a/__part=-5", "M/-5/v1-ab")
    assert files.exists("M/-5/v1-ab/x.parquet")
    assert files.exists("M/-5/v1-ab/.x.parquet.crc")
    assert not files.exists(".staging/a/__part=-5")


def test_a_deleted_directory_takes_hidden_files_with_it(files: PartFiles) -> None:
    for name in ("x.parquet", ".x.parquet.crc", "_SUCCESS", "._SUCCESS.crc"):
        write(files, f"M/7/v1/{name}")
    write(files, "M/7/v2/y.parquet")
    files.delete("M/7/v1")
    assert not files.exists("M/7/v1")
    assert files.exists("M/7/v2/y.parquet")


def test_deleting_what_is_not_there_is_no_error(files: PartFiles) -> None:
    files.delete("M/7/v1")


def test_version_directories_are_found_and_nothing_else(files: PartFiles) -> None:
    for location in (
        "M/7/v1/x",
        "M/-5/v2-ab/x",
        "_V/0/v1/x",
        ".staging/b1/__part=3/x",
        "notes/readme/old/x",
        "M/stray",
    ):
        write(files, location)
    assert sorted(found.location for found in files.list_version_directories()) == ["M/-5/v2-ab", "M/7/v1", "_V/0/v1"]
    assert [found.location for found in files.list_staging_directories()] == [".staging/b1"]


def test_a_warehouse_that_does_not_exist_yet_has_no_directories(files: PartFiles) -> None:
    assert list(files.list_version_directories()) == []
    assert list(files.list_staging_directories()) == []


def test_a_found_directory_is_as_new_as_the_newest_file_in_it(tmp_path: Path) -> None:
    files = PartFiles(str(tmp_path))
    write(files, "M/7/v1/x")
    written = datetime.now(UTC).replace(microsecond=0) - timedelta(days=3)
    for path, days in ((tmp_path / "M/7/v1/x", 0), (tmp_path / "M/7/v1", -1)):
        time = (written + timedelta(days=days)).timestamp()
        os.utime(path, (time, time))
    assert list(files.list_version_directories()) == [FoundDirectory("M/7/v1", written)]


def test_directories_above_a_deleted_version_go_if_they_are_empty(files: PartFiles) -> None:
    write(files, "M/7/v1/x")
    write(files, "M/8/v1/x")
    files.delete("M/7/v1")
    files.delete_empty_directories("M/7/v1")
    assert not files.exists("M/7")
    assert files.exists("M/8/v1/x")


@pytest.mark.parametrize("location", ["../x", "M/../../x", "/etc", "", "M//x", "M/./x", "M\\..\\x", ".."])
def test_a_location_outside_the_warehouse_is_refused(files: PartFiles, location: str) -> None:
    for use in (files.url, files.path, files.delete, files.exists, files.make_dirs):
        with pytest.raises(UsageError) as caught:
            use(location)
        assert str(caught.value) == (
            f"{location!r} does not lie inside the warehouse; give a relative path without '..'."
        )
    with pytest.raises(UsageError):
        files.move("M/7/v1", location)


def test_a_relative_warehouse_is_made_absolute_for_a_spark_with_another_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert PartFiles("wh").url("M/7/v1") == f"file://{tmp_path}/wh/M/7/v1"


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/data/wh/", "file:///data/wh"),
        ("file:/data/wh", "file:///data/wh"),
        ("file:///data/wh", "file:///data/wh"),
        ("/data/a b%20c", "file:///data/a b%20c"),
        ("s3a://bucket/wh/", "s3a://bucket/wh"),
        ("hdfs://name:8020/wh", "hdfs://name:8020/wh"),
    ],
)
def test_spark_is_told_the_protocol_of_the_warehouse(given: str, root: str) -> None:
    assert resolve_root(given) == root


def test_spark_s_name_for_a_file_system_becomes_fsspec_s(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def url_to_fs(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
        asked.append(url)
        return fsspec.filesystem("memory"), "/bucket/wh"

    monkeypatch.setattr(fsspec.core, "url_to_fs", url_to_fs)
    assert PartFiles("s3a://bucket/wh").url("M/7/v1") == "s3a://bucket/wh/M/7/v1"
    assert asked == ["s3://bucket/wh"]


def test_the_place_of_a_dimension_is_below_the_warehouse_unless_it_says_otherwise(tmp_path: Path) -> None:
    files = PartFiles(str(tmp_path))
    assert files.resolve("dim/d.csv") == f"file://{tmp_path}/dim/d.csv"
    assert files.resolve("./dim/d.csv") == f"file://{tmp_path}/dim/d.csv"
    assert files.resolve("/data/d.csv") == "file:///data/d.csv"
    assert files.resolve("s3a://bucket/d.csv") == "s3a://bucket/d.csv"
    with pytest.raises(UsageError):
        files.resolve("../d.csv")


def test_a_link_that_leads_out_of_the_warehouse_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "5" / "v1-of-somebody"
    outside.mkdir(parents=True)
    (tmp_path / "wh" / "T" / "5" / "v1-own").mkdir(parents=True)
    (tmp_path / "wh" / "Link").symlink_to(tmp_path / "outside")
    (tmp_path / "wh" / "T" / "6").symlink_to(tmp_path / "outside" / "5")
    (tmp_path / "wh" / ".staging").symlink_to(tmp_path / "outside")
    files = PartFiles(str(tmp_path / "wh"))
    assert [found.location for found in files.list_version_directories()] == ["T/5/v1-own"]


def test_room_for_a_version_has_the_mode_of_the_warehouse_whatever_the_umask(tmp_path: Path) -> None:
    root = tmp_path / "wh"
    root.mkdir()
    root.chmod(0o2775)
    before = os.umask(0o077)
    try:
        files = PartFiles(str(root))
        files.make_room("V/5/v1")
        files.make_room("V/6/v1")
    finally:
        os.umask(before)
    made = [path for path in root.rglob("*") if path.is_dir()]
    assert {path.relative_to(root).as_posix() for path in made if "_temporary" not in path.parts} == {
        "V",
        "V/5",
        "V/5/v1",
        "V/6",
        "V/6/v1",
    }
    assert {path.stat().st_mode & 0o7777 for path in made} == {0o2775}


def test_room_is_made_neither_outside_the_warehouse_nor_where_there_are_no_directories(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        PartFiles(str(tmp_path / "wh")).make_room("../V")
    PartFiles(str(tmp_path / "not there")).make_room("V/5/v1")
    assert list(tmp_path.iterdir()) == []
    memory = PartFiles("memory://wh")
    memory.make_room("V/5/v1")
    assert not memory.exists("V")
