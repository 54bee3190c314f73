"""External streams on a real S3-compatible server: etags, pages of a listing, markers of directories, and how it is reached.

What every store has in common is tested in test_looking.py, on this server too.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from object_stores import S3Server
from warehouse.lake import FIRST, Lake, hour, row

from airflow_provider_viewdf.errors import ExternalFilesError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

Put = Callable[..., None]
HOUR_10 = "events/dt=2015-01-01/h=10"


@pytest.fixture
def wh(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "wh") as opened:
        yield opened


@pytest.fixture
def bucket(s3_environment: S3Server) -> str:
    return s3_environment.create_bucket()


@pytest.fixture
def put(bucket: str) -> Put:
    """Puts an object by a client that has nothing to do with fsspec."""
    import boto3

    client = boto3.client("s3")
    return lambda key, content=b"": client.put_object(Bucket=bucket, Key=key, Body=content)


@pytest.fixture
def lake(bucket: str) -> Lake:
    return Lake(f"s3a://{bucket}/events")


def test_the_mark_of_a_file_is_its_etag_and_a_replaced_object_makes_a_new_version(
    wh: Warehouse, lake: Lake, bucket: str, put: Put
) -> None:
    wh.apply(lake.define())
    contents = [f"ts,k,v\n2015-01-01 10:05:00,a,{value}\n".encode() for value in (1, 7)]
    for content in contents:
        put(f"{HOUR_10}/a.csv", content)
        wh.look("E", hour(10))
    put(f"{HOUR_10}/a.csv", contents[-1])  # the same once more
    assert not wh.look("E", hour(10)).changed

    history = wh.version_history("E", hour(10))
    assert [[(item.name, item.size, item.mark) for item in version.files] for version in history] == [
        [("a.csv", 31, hashlib.md5(content, usedforsecurity=False).hexdigest())] for content in contents
    ]
    assert {version.location for version in history} == {f"s3a://{bucket}/{HOUR_10}"}


def test_a_part_of_more_files_than_a_page_of_a_listing_has(wh: Warehouse, lake: Lake, put: Put) -> None:
    wh.apply(lake.define())
    for number in range(1001):
        put(f"{HOUR_10}/{number:04}.csv", b"ts,k,v\n")

    assert wh.look("E", hour(10)).files == 1001
    put(f"{HOUR_10}/1000.csv", b"ts,k,v\n\n")  # on the second page
    assert wh.look("E", hour(10)).changed == PartSet.of_indexes([FIRST])


def test_empty_objects_that_stand_for_directories_are_no_files(wh: Warehouse, lake: Lake, put: Put) -> None:
    wh.apply(lake.define())
    for key in (f"{HOUR_10}/", f"{HOUR_10}/deep/", "events/", "events/dt=2015-01-01/"):
        put(key)
    assert wh.look("E", hour(10)).missing == PartSet.of_indexes([FIRST])

    put(f"{HOUR_10}/deep/a.csv", b"ts,k,v\n")
    wh.look("E", hour(10))
    (version,) = wh.version_history("E", hour(10))
    assert [item.name for item in version.files] == ["deep/a.csv"]


def test_the_columns_of_parquet_files_are_read_from_the_server(wh: Warehouse, bucket: str, put: Put) -> None:
    lake = Lake(f"s3a://{bucket}/events", "parquet")
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    assert wh.look("E", hour(10)).registered == PartSet.of_indexes([FIRST])

    put(f"{HOUR_10}/b.parquet", b"no parquet")
    with pytest.raises(ExternalFilesError) as error:
        wh.look("E", hour(10))
    assert str(error.value) == (
        f"s3a://{bucket}/{HOUR_10}/b.parquet is not a Parquet file, as E declares; nothing was registered."
    )


def test_a_server_that_does_not_answer_is_an_error_and_no_missing_part(
    wh: Warehouse, s3_environment: S3Server, lake: Lake
) -> None:
    wh.apply(lake.define())
    lake.write(10, [row(10, "a", 1)])
    done = _look_elsewhere({**s3_environment.credentials, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, wh)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        f"The files of E at {lake.url}/dt=2015-01-01/h=10 cannot be listed: "
    )
    assert "http://127.0.0.1:9/" in done.stderr


@pytest.mark.parametrize("way", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "FSSPEC_S3", "AWS_CONFIG_FILE"])
def test_the_server_is_found_by_the_ordinary_settings(
    wh: Warehouse, s3_environment: S3Server, lake: Lake, tmp_path: Path, way: str
) -> None:
    wh.apply(lake.define("COMPLETE WHEN '_SUCCESS'"))
    lake.write(10, [row(10, "a", 1)])
    lake.write_text(10, "_SUCCESS")
    config = tmp_path / "aws"
    config.write_text(
        "[default]\naws_access_key_id = somebody\naws_secret_access_key = secret\n"
        f"region = us-east-1\nendpoint_url = {s3_environment.url}\n"
    )
    options = {"endpoint_url": s3_environment.url, "key": "somebody", "secret": "secret"}
    ways = {
        "AWS_ENDPOINT_URL": {**s3_environment.credentials, "AWS_ENDPOINT_URL": s3_environment.url},
        "AWS_ENDPOINT_URL_S3": {**s3_environment.credentials, "AWS_ENDPOINT_URL_S3": s3_environment.url},
        "FSSPEC_S3": {"FSSPEC_S3": json.dumps(options)},
        "AWS_CONFIG_FILE": {"AWS_CONFIG_FILE": str(config)},
    }

    done = _look_elsewhere(ways[way], wh)

    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, ["E: registered: 2015-01-01T10:00"])
    assert wh.existing_parts("E") == PartSet.of_indexes([FIRST])


def _look_elsewhere(settings: Mapping[str, str], wh: Warehouse) -> subprocess.CompletedProcess[str]:
    """`viewdf look` in a process that has these settings only: s3fs keeps those that it found first."""
    inherited: dict[str, Any] = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    command = [
        "look",
        "E",
        "--from",
        "2015-01-01T10:00",
        "--to",
        "2015-01-01T11:00",
        "--warehouse",
        wh._bench.files.root,
    ]
    return subprocess.run(
        [sys.executable, "-c", "from airflow_provider_viewdf.cli import main; main()", *command],
        env={**inherited, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
