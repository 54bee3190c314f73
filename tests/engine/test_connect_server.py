from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from airflow_provider_viewdf.engine import connect_server
from airflow_provider_viewdf.engine.connect_server import ConnectServer, end_process_group, find_free_port
from airflow_provider_viewdf.engine.java import ensure_java
from airflow_provider_viewdf.errors import SparkUnavailableError, UsageError


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    # Each test of this module opens its sessions in processes of their own: a process is either classic or Connect.
    with ConnectServer(tmp_path_factory.mktemp("connect") / "logs" / "server.log", master="local[1]") as server:
        yield server


def run_python(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_sessions_are_apart_and_have_our_settings(server: ConnectServer) -> None:
    program = """
import sys
from airflow_provider_viewdf.engine.sessions import RUNTIME_SETTINGS, open_session
one = open_session(remote=sys.argv[1], conf={"spark.sql.shuffle.partitions": "7"})
two = open_session(remote=sys.argv[1])
assert one is not two
one.range(3).createOrReplaceTempView("only_here")
print(one.sql("SELECT count(*) FROM only_here").first()[0], two.catalog.tableExists("only_here"))
print(one.conf.get("spark.sql.shuffle.partitions"), two.conf.get("spark.sql.shuffle.partitions"))
for spark in (one, two):
    print({key: spark.conf.get(key) for key in RUNTIME_SETTINGS} == RUNTIME_SETTINGS)
    spark.stop()
"""
    assert run_python(program, server.url).splitlines() == ["3 False", "7 1", "True", "True"]


def test_classic_session_opens_after_a_remote_one_in_the_same_process(server: ConnectServer) -> None:
    program = """
import sys
from airflow_provider_viewdf.engine.sessions import open_session
remote = open_session(remote=sys.argv[1])
print(remote.range(4).count(), type(remote).__module__)
remote.stop()
classic = open_session("local[1]")
print(classic.range(5).count(), type(classic).__module__)
classic.stop()
"""
    assert run_python(program, server.url).splitlines() == [
        "4 pyspark.sql.connect.session",
        "5 pyspark.sql.session",
    ]


def test_a_warehouse_ends_the_session_that_it_opened_and_leaves_one_that_it_was_given(
    server: ConnectServer, tmp_path: Path
) -> None:
    program = """
import sys
from airflow_provider_viewdf import Warehouse
from airflow_provider_viewdf.engine.sessions import open_session
given = open_session(remote=sys.argv[1])
sql = "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60; CREATE VIEW V AS SELECT x FROM M"
sessions = []
for arguments in ({"remote": sys.argv[1]}, {"spark": given}):
    with Warehouse.open(sys.argv[2], **arguments) as warehouse:
        warehouse.apply(sql)
        sessions.append(warehouse._bench.open_engine().spark)
print([session.is_stopped for session in sessions], sessions[1] is given)
given.stop()
"""
    assert run_python(program, server.url, str(tmp_path / "wh")).splitlines() == ["[True, False] True"]


def test_server_listens_to_this_machine_only(server: ConnectServer) -> None:
    assert server._process is not None
    leader = psutil.Process(server._process.pid)
    listening = {
        (connection.laddr.ip, connection.laddr.port)
        for process in (leader, *leader.children(recursive=True))
        for connection in process.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert server.port in {port for _, port in listening}
    assert {address.removeprefix("::ffff:") for address, _ in listening} == {"127.0.0.1"}


def test_second_start_changes_nothing(server: ConnectServer) -> None:
    process = server._process
    assert server.start() is server
    assert server._process is process


def test_given_port_that_is_taken_is_refused(server: ConnectServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        ConnectServer(tmp_path / "log", port=server.port).start()
    assert str(raised.value) == f"Port {server.port} is taken: end what listens there, or give another port."


def test_free_port_that_someone_takes_first_is_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = iter([0, find_free_port()])
    with socket.socket() as other:
        # Bound but not listening: nobody answers there, and nobody else can have it.
        other.bind(("127.0.0.1", 0))
        monkeypatch.setattr(connect_server, "find_free_port", lambda: next(ports) or other.getsockname()[1])
        with ConnectServer(tmp_path / "log", master="local[1]") as second:
            assert second.port != other.getsockname()[1]
            assert second.is_running
    assert not second.is_running


@pytest.mark.parametrize("port", [-1, 65536])
def test_number_that_is_no_port_is_refused(port: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        ConnectServer(tmp_path / "log", port=port)
    assert str(raised.value) == f"{port} is no port: give one from 1 to 65535, or 0 for any free one."


def test_server_that_cannot_start_is_said_with_its_log(tmp_path: Path) -> None:
    ensure_java()
    log = tmp_path / "log"
    server = ConnectServer(log, master="nonsense")
    with pytest.raises(SparkUnavailableError) as raised:
        server.start()
    message = str(raised.value)
    assert message.startswith(
        f"The Spark Connect server ended with exit code 1 while starting; its log, {log}, ends with:\n"
    )
    assert "Master must either be yarn or start with spark, k8s, or local" in message.splitlines()[-1]
    assert not server.is_running


def test_server_that_takes_too_long_is_ended_and_said_with_its_log(tmp_path: Path) -> None:
    ensure_java()
    log = tmp_path / "log"
    server = ConnectServer(log, master="local[1]", start_timeout_seconds=0)
    with pytest.raises(SparkUnavailableError) as raised:
        server.start()
    assert str(raised.value).startswith(
        f"The Spark Connect server did not listen on port {server.port} within 0 seconds; its log, {log}, ends with:\n"
    )
    assert not server.is_running


def test_end_of_the_process_that_started_it_ends_the_server(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from airflow_provider_viewdf.engine.connect_server import ConnectServer
server = ConnectServer(Path(sys.argv[1]), master="local[1]").start()
print(server._process.pid, server._scratch.name)
"""
    pid, scratch = run_python(program, str(tmp_path / "log")).split()
    assert not psutil.pid_exists(int(pid))
    assert not Path(scratch).exists()


def test_group_ends_with_its_stubborn_members() -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    program = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {stubborn!r}], stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline().strip(), child.pid, flush=True)\n"
        "child.wait()\n"
    )
    leader = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    word, child = leader.stdout.readline().split()
    assert word == b"deaf"
    end_process_group(leader, patience_seconds=5)
    assert leader.returncode == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.killpg(leader.pid, 0)
    assert not psutil.pid_exists(int(child)) or psutil.Process(int(child)).status() == psutil.STATUS_ZOMBIE
