"""A real Airflow on this machine, of four processes that live exactly as long as a `with` block."""

from __future__ import annotations

import atexit
import base64
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import httpx
import psutil

from airflow_provider_viewdf.engine.connect_server import end_process_group, find_free_port
from demo.airflow_client import AirflowClient, AirflowSiteError

COMPONENTS = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}
HEALTH_KEYS = ("metadatabase", "scheduler", "dag_processor", "triggerer")
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
USER = "admin"


class AirflowSite(AirflowClient):
    """Airflow's API server, scheduler, DAG processor and triggerer, and a signed-in user of them.

        with AirflowSite(home=Path("site"), dags=Path("dags")) as site:
            site.wait_until_parsed("network")
            site.unpause("network")
            site.wait_for_backfill(site.backfill("network", start, end))

    Everything it keeps is under `home`: the SQLite metadata (unless `metadata_url` leads to a PostgreSQL), secrets,
    logs. The same home can be started again later. SQLite bears few writers, hence the low parallelism.
    """

    def __init__(
        self,
        home: Path,
        dags: Path,
        *,
        env: Mapping[str, str] | None = None,
        metadata_url: str | None = None,
        parallelism: int | None = None,
        port: int = 0,
        start_timeout_seconds: float = 180,
        on_progress: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.home = home.resolve()
        self.dags = dags.resolve()
        self.port = port or find_free_port()
        self._env = dict(env or {})
        self._metadata_url = metadata_url
        self._parallelism = parallelism or (4 if metadata_url else 2)
        self._start_timeout_seconds = start_timeout_seconds
        self._on_progress = on_progress
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._signals = ExitStack()
        self.home.mkdir(parents=True, exist_ok=True)
        self.dags.mkdir(parents=True, exist_ok=True)
        self._secrets = _load_secrets(self.home / "site-secrets.json")
        super().__init__(f"http://127.0.0.1:{self.port}", USER, self._secrets["password"])

    @property
    def is_running(self) -> bool:
        return bool(self._processes) and all(process.poll() is None for process in self._processes.values())

    def log_file(self, component: str) -> Path:
        """Where a component (api-server, scheduler, dag-processor, triggerer, or migrate) writes what it prints."""
        return self.home / "component-logs" / f"{component}.log"

    def start(self) -> Self:
        """Start all four and return when each says that it is healthy."""
        if self.is_running:
            return self
        self.log_file("migrate").parent.mkdir(exist_ok=True)
        self._signals.enter_context(leave_on_signals())
        atexit.register(self.stop)
        try:
            self._on_progress("creating Airflow's database")
            self._migrate()
            self._on_progress("starting Airflow's API server, scheduler, DAG processor and triggerer")
            for component, arguments in COMPONENTS.items():
                self._launch(component, *arguments)
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the four and everything they have started; return when nothing of it is left."""
        try:
            with _no_interruption():
                processes, self._processes = self._processes, {}
                _end_sessions(list(processes.values()))
                self._http.headers.pop("Authorization", None)
                atexit.unregister(self.stop)
        finally:
            self._signals.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def add_dag_file(self, name: str, source: str, *dag_ids: str, timeout_seconds: float = 90) -> Path:
        """Write a file into the DAGs folder, and wait until Airflow has these DAGs as the file now has them."""
        written_at = datetime.now(UTC)
        file = self.dags / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # Written beside it and renamed, so that the DAG processor never reads half a file.
        fresh = file.with_name(f".{file.name}.new")
        fresh.write_text(source)
        fresh.replace(file)
        self.wait_until_parsed(*dag_ids, file=name, since=written_at, timeout_seconds=timeout_seconds)
        return file

    def build_environment(self) -> dict[str, str]:
        """What the components are started with; with it, `python -m airflow ...` talks to this site's database."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            # Settings of another Airflow of this person; and without bytecode every process starts slower.
            if not name.startswith("AIRFLOW") and name != "PYTHONDONTWRITEBYTECODE"
        }
        binaries = str(Path(sys.executable).parent)
        path = inherited.get("PATH", "")
        inherited["PATH"] = path if binaries in path.split(os.pathsep) else f"{binaries}{os.pathsep}{path}"
        for name in ("NO_PROXY", "no_proxy"):
            inherited[name] = ",".join(filter(None, [inherited.get(name), "127.0.0.1", "localhost"]))
        return inherited | self._build_settings() | self._env

    def _build_settings(self) -> dict[str, str]:
        settings = {
            "core": {
                "dags_folder": str(self.dags),
                "plugins_folder": str(self.home / "plugins"),
                "load_examples": "False",
                "executor": "LocalExecutor",
                "parallelism": str(self._parallelism),
                "execution_api_server_url": f"{self.url}/execution/",
                "fernet_key": self._secrets["fernet_key"],
                "simple_auth_manager_users": f"{USER}:admin",
                "simple_auth_manager_passwords_file": str(self.home / "passwords.json"),
                # The fully qualified name costs a DNS query per process.
                "hostname_callable": "socket.gethostname",
                "min_serialized_dag_update_interval": "0",
            },
            "database": {"sql_alchemy_conn": self._metadata_url or f"sqlite:///{self._sqlite_file}?timeout=60"},
            "api": {
                "host": "127.0.0.1",
                "port": str(self.port),
                "base_url": self.url,
                "workers": "1",
                "secret_key": self._secrets["secret_key"],
            },
            "api_auth": {"jwt_secret": self._secrets["jwt_secret"]},
            "scheduler": {
                "scheduler_heartbeat_sec": "1",
                "job_heartbeat_sec": "2",
                "scheduler_idle_sleep_time": "0.2",
                "trigger_timeout_check_interval": "3",
            },
            "triggerer": {"job_heartbeat_sec": "2"},
            "dag_processor": {
                "refresh_interval": "1",
                "bundle_refresh_check_interval": "1",
                "parsing_processes": "1",
                # A changed file is parsed when it is seen; this is only about files that have not changed.
                "min_file_process_interval": "30",
            },
            "workers": {
                # A task's supervisor may notice its end only at the next heartbeat, and holds its slot until then.
                "min_heartbeat_interval": "1",
                "execution_api_timeout": "30",
                "missing_dag_retry_delay": "2",
                "socket_cleanup_timeout": "10",
            },
            "logging": {"base_log_folder": str(self.home / "logs"), "colored_console_log": "False"},
            "usage_data_collection": {"enabled": "False"},
        }
        variables = {"AIRFLOW_HOME": str(self.home)}
        for section, options in settings.items():
            for option, value in options.items():
                variables[f"AIRFLOW__{section.upper()}__{option.upper()}"] = value
        return variables

    @property
    def _sqlite_file(self) -> Path:
        return self.home / "airflow.db"

    def _migrate(self) -> None:
        passwords = self.home / "passwords.json"
        _write_private(passwords, json.dumps({USER: self.password}) + "\n")
        if not self._metadata_url:
            # Readers no longer wait for the writer; a property of the file, so once is enough.
            with closing(sqlite3.connect(self._sqlite_file)) as database:
                database.execute("PRAGMA journal_mode=WAL")
        process = self._launch("migrate", "db", "migrate")
        try:
            code = process.wait(self._start_timeout_seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_process_group(self._processes.pop("migrate"))
        if code != 0:
            how = "did not finish" if code is None else f"failed with exit code {code}"
            raise AirflowSiteError(f"`airflow db migrate` {how}.{self._quote_logs(['migrate'])}")

    def _launch(self, component: str, *arguments: str) -> subprocess.Popen[bytes]:
        # A signal between the start of a process and the note of it would leave the process behind.
        with _no_interruption(), self.log_file(component).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "airflow", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.build_environment(),
                cwd=self.home,
                start_new_session=True,
            )
            self._processes[component] = process
        return process

    def _wait_until_healthy(self) -> None:
        for _ in self._poll("Airflow to become healthy", self._start_timeout_seconds):
            self.check_alive()
            try:
                health = self._http.get("/api/v2/monitor/health", timeout=10).json()
            except (httpx.HTTPError, ValueError):
                continue
            if all((health.get(key) or {}).get("status") == "healthy" for key in HEALTH_KEYS):
                return

    def check_alive(self) -> None:
        if not self._processes:
            raise AirflowSiteError("This Airflow is not running: start it first.")
        for component, process in self._processes.items():
            if process.poll() is not None:
                raise AirflowSiteError(
                    f"Airflow's {component} ended with exit code {process.returncode}.{self._quote_logs([component])}"
                )

    def describe_trouble(self) -> str:
        return self._quote_logs(list(COMPONENTS))

    def _quote_logs(self, components: Sequence[str], lines: int = 15) -> str:
        quoted = []
        for component in components:
            log = self.log_file(component)
            text = log.read_text(errors="replace").splitlines() if log.exists() else []
            quoted.append(f"\nThe log of {component}, {log}, ends with:\n" + "\n".join(text[-lines:]))
        return "".join(quoted)


@contextmanager
def leave_on_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP unwind `with` blocks, as Ctrl-C does; otherwise what they started would outlive us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in ENDING_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _no_interruption() -> Iterator[None]:
    """Put off Ctrl-C and its like until the block is through: a second, impatient one must not leave processes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    signals = (signal.SIGINT, *ENDING_SIGNALS)
    previous = {number: signal.signal(number, lambda n, frame: arrived.append(n)) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        for n in arrived[:1]:
            signal.raise_signal(n)


def _end_sessions(leaders: Sequence[subprocess.Popen[bytes]]) -> None:
    """End components and their children: tasks are in groups of their own, but in the session of their component."""
    for number, patience_seconds in ((signal.SIGTERM, 6.0), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + patience_seconds
        members = list_sessions(leaders)
        for pid in members:
            _send_signal(pid, number)
        while members and time.monotonic() < deadline:
            time.sleep(0.1)
            members = list_sessions(leaders)
            if number == signal.SIGKILL:  # a dying process may still have started another
                for pid in members:
                    _send_signal(pid, number)
    for leader in leaders:
        leader.wait()


def list_sessions(leaders: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """The processes, other than zombies, of the sessions that these lead or have led."""
    sessions = {leader.pid for leader in leaders}
    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
        except (psutil.Error, ProcessLookupError, PermissionError):
            continue
    return members


def _send_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _load_secrets(file: Path) -> dict[str, str]:
    """The secrets of a home, made when it is new: what was encrypted must stay readable when it starts again."""
    if file.exists():
        found: dict[str, str] = json.loads(file.read_text())
        return found
    made = {
        "fernet_key": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "secret_key": secrets.token_urlsafe(32),
        "jwt_secret": secrets.token_urlsafe(64),
        "password": secrets.token_urlsafe(12),
    }
    _write_private(file, json.dumps(made))
    return made


def _write_private(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
