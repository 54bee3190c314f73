"""The database restarts, Spark dies, the disk is full, a feed delivers half a file, the clock jumps."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres import PostgresServer, start_postgres
from sqlalchemy import event
from warehouse.network import LOSSES, NETWORK, measurement, minute

from airflow_provider_viewdf.catalog import database
from airflow_provider_viewdf.errors import CatalogUnavailableError, LoadError, ViewDFError
from airflow_provider_viewdf.warehouse import Warehouse


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL of this module's own, since it is ended and started again."""
    started = start_postgres()
    yield started
    started.stop()


@pytest.fixture
def network(server: PostgresServer, tmp_path: Path, spark: Any) -> Iterator[Warehouse]:
    url = server.create_database()
    with Warehouse.open(tmp_path / "wh", catalog_url=url, spark=spark) as opened:
        opened.apply(NETWORK)
        opened.load("M", [measurement(number, loss) for number, loss in LOSSES.items()], batch_id="first")
        yield opened
    server.drop_database(url)


def count_directories(tmp_path: Path, table: str) -> int:
    return len([path for path in (tmp_path / "wh" / table).glob("*/*") if path.is_dir()])


def test_a_refresh_goes_on_when_the_database_was_restarted_between_two_steps(
    network: Warehouse, server: PostgresServer
) -> None:
    restarts = []

    def restart(*_: object) -> None:
        if len(restarts) < 2:
            restarts.append(1)
            server.crash()
            server.start_again()

    report = network.refresh(on_progress=restart)
    assert len(restarts) == 2
    assert len(report.steps) == 14
    assert network.verify().is_ok


def break_at_commit(network: Warehouse, server: PostgresServer, times: int, *, after: bool = False) -> list[int]:
    """Have the server end the connection of whoever writes parts, at the commit; or only lose the answer to it."""
    engine = network._bench.catalog._database.engine
    broken: list[int] = []
    wrote: set[int] = set()

    @event.listens_for(engine, "before_cursor_execute")
    def watch(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if "INSERT INTO part_versions" in statement:
            wrote.add(cursor.connection.info.backend_pid)

    @event.listens_for(engine, "commit")
    def end(connection: Any) -> None:
        driver = connection.connection.driver_connection
        process = driver.info.backend_pid
        if len(broken) < times and process in wrote:
            broken.append(process)
            if after:
                driver.commit()
            with psycopg.connect(server.url.render_as_string(hide_password=False), autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", [process])

    return broken


@pytest.mark.parametrize("after", [False, True], ids=["commit lost", "answer lost"])
def test_a_refresh_goes_on_when_a_connection_breaks_while_it_publishes(
    network: Warehouse, server: PostgresServer, tmp_path: Path, after: bool
) -> None:
    broken = break_at_commit(network, server, 2, after=after)
    network.refresh()
    assert len(broken) == 2
    assert network.repair().damaged == ()
    assert network.verify().is_ok


@pytest.mark.parametrize("after", [False, True], ids=["commit lost", "answer lost"])
def test_a_load_goes_on_when_its_connection_breaks_while_it_publishes(
    network: Warehouse, server: PostgresServer, after: bool
) -> None:
    broken = break_at_commit(network, server, 1, after=after)
    network.load("M", [measurement(5, 99)], batch_id="second")
    assert len(broken) == 1
    assert network.repair().damaged == ()
    rows = network.query("SELECT loss FROM M WHERE PART_TIMESTAMP = '2015-01-01 10:05' ORDER BY loss").collect()
    assert [row[0] for row in rows] == [16, 99]


def test_a_database_that_stays_away_is_named_in_one_sentence_and_nothing_is_lost(
    network: Warehouse, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "RECONNECT_SECONDS", 0.5)
    network.refresh("Helper")
    server.crash()
    try:
        with pytest.raises(CatalogUnavailableError) as found:
            network.load("M", [measurement(6, 50)], batch_id="second")
    finally:
        server.start_again()
    url = network._bench.catalog.url
    assert str(found.value).startswith(f"The catalog at {url} went away: ")
    assert str(found.value).endswith(". Nothing is lost; try again when it is back.")
    network.load("M", [measurement(6, 50)], batch_id="second")
    network.refresh()
    assert network.verify().is_ok


MEASUREMENTS = "ts,src,dest,loss\n" + "".join(
    f"{minute(number):%Y-%m-%dT%H:%M:%SZ},a,b,{loss}\n" for number, loss in LOSSES.items()
)
HALVES = {
    "a line of a CSV file": ("half.csv", MEASUREMENTS.encode()[:-4], ", line 8: 3 fields instead of 4"),
    "a compressed file": (
        "half.csv.gz",
        gzip.compress(MEASUREMENTS.encode())[:-12],
        " cannot be read: Compressed file ended before the end-of-stream marker was reached.",
    ),
    "a file without its checksum": (
        "half.jsonl.gz",
        gzip.compress(b'{"ts": "2015-01-01T10:00:00Z", "src": "a", "dest": "b", "loss": 1}\n')[:-4],
        " cannot be read: Compressed file ended before the end-of-stream marker was reached.",
    ),
    "a line of JSON": (
        "half.jsonl",
        b'{"ts": "2015-01-01T10:00:00Z", "src": "a", "dest": "b", "loss": 1}\n{"ts": "2015-01-01T10:0',
        ", line 2: ",
    ),
    "a Parquet file": ("half.parquet", b"PAR1 and nothing more", " is not a Parquet file: "),
}


@pytest.mark.parametrize("half", HALVES)
def test_half_a_file_is_refused_with_its_name_and_nothing_is_loaded(tmp_path: Path, half: str) -> None:
    name, content, problem = HALVES[half]
    (tmp_path / name).write_bytes(content)
    # A stream needs no Spark to be defined, nor do rows that are refused.
    with Warehouse.open(tmp_path / "wh") as warehouse:
        warehouse.apply(NETWORK.split(";")[0])
        with pytest.raises(LoadError) as found:
            warehouse.load("M", str(tmp_path / name), batch_id="half")
        assert f"{tmp_path}/{name}{problem}" in str(found.value)
        assert "\n" not in str(found.value)
        (status,) = warehouse.status("M")
        assert not status.parts


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_named_and_nothing_is_lost(small_disk: Path, tmp_path: Path, spark: Any) -> None:
    with Warehouse.open(small_disk / "wh", catalog_url=f"sqlite:///{tmp_path}/catalog.db", spark=spark) as warehouse:
        warehouse.apply(NETWORK)
        warehouse.load("M", [measurement(number, loss) for number, loss in LOSSES.items()], batch_id="first")
        warehouse.refresh()
        used = os.statvfs(small_disk)
        filler = small_disk / "filler"
        filler.write_bytes(os.urandom(used.f_bavail * used.f_frsize - 2 * used.f_frsize))
        before = warehouse.version_history("M", minute(5))
        rows = [{**measurement(5, number), "src": os.urandom(16).hex()} for number in range(5_000)]
        with pytest.raises(ViewDFError) as found:
            warehouse.load("M", rows, batch_id="too much")
        assert "No space left on device" in str(found.value)
        assert warehouse.version_history("M", minute(5)) == before
        filler.unlink()
        assert warehouse.repair().damaged == ()
        warehouse.load("M", [measurement(5, 99)], batch_id="second")
        filler.write_bytes(os.urandom(_free(small_disk)))
        with pytest.raises(ViewDFError) as failed:
            warehouse.refresh()
        assert "No space left on device" in str(failed.value)
        filler.unlink()
        warehouse.refresh()
        assert warehouse.verify().is_ok


def _free(disk: Path) -> int:
    room = os.statvfs(disk)
    return room.f_bavail * room.f_frsize


def test_a_spark_connect_server_that_dies_is_named_and_a_new_one_goes_on(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from airflow_provider_viewdf.engine import sessions
from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.errors import SparkUnavailableError
from airflow_provider_viewdf.warehouse import Warehouse
from warehouse.network import LOSSES, NETWORK, measurement

sessions.MOST_RETRIES = 2
place = Path(sys.argv[1])
first = ConnectServer(place / "first.log", master="local[1]").start()
with Warehouse.open(place / "wh", remote=first.url) as warehouse:
    warehouse.apply(NETWORK)
    warehouse.load("M", [measurement(number, loss) for number, loss in LOSSES.items()])
    def kill(step, done, total):
        if done == 2:
            os.killpg(first._process.pid, signal.SIGKILL)
    try:
        warehouse.refresh(on_progress=kill)
    except SparkUnavailableError as error:
        print(error)
first.stop()
second = ConnectServer(place / "second.log", master="local[1]").start()
with Warehouse.open(place / "wh", remote=second.url) as warehouse:
    print(len(warehouse.refresh().steps), warehouse.verify().is_ok, len(warehouse.repair().damaged))
second.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["tests", os.getcwd()])},
    )
    assert done.stdout.splitlines() == [
        "Spark does not answer any more. What it was at work on was not published, and nothing is lost; "
        "start it again, and then this.",
        "12 True 0",
    ], done.stderr[-3000:]
