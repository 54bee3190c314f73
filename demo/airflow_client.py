"""What a person does in Airflow's UI, over Airflow's REST API: pause, trigger, backfill, clear, watch, read logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

import httpx

POLL_SECONDS = 0.5
PAGE_SIZE = 100


class AirflowSiteError(Exception):
    """Airflow did not do what it was asked to; the message says what, and ends with the log that tells why."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a DAG."""

    dag_id: str
    run_id: str
    state: str
    run_type: str
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None

    @property
    def is_finished(self) -> bool:
        return self.state in ("success", "failed")


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One task of one run."""

    task_id: str
    run_id: str
    state: str | None
    try_number: int
    map_index: int
    start_date: datetime | None
    end_date: datetime | None
    rendered_fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill that Airflow has accepted, and the logical dates it runs."""

    dag_id: str
    backfill_id: int
    logical_dates: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A DAG file that Airflow could not read."""

    file: str
    stack_trace: str


OnProgress = Callable[[Sequence[Run]], None]


class AirflowClient:
    """A signed-in user of one Airflow."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url = url
        self.user = user
        self.password = password
        # The site is on this machine: a proxy from the environment could not reach it.
        self._http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    # Hooks for who owns the processes: a wait must not outlast a process that has died.

    def check_alive(self) -> None:
        """Raise if the site cannot answer any more."""

    def describe_trouble(self) -> str:
        """What the site's own logs say, to be put under an error."""
        return ""

    # DAGs

    def wait_until_parsed(
        self, *dag_ids: str, file: str | None = None, since: datetime | None = None, timeout_seconds: float = 90
    ) -> None:
        """Wait until Airflow knows the DAGs; with `since`, as their file was after that time.

        Name the `file` that holds them, and an error in it is raised at once instead of at the end of the wait.
        """
        for _ in self._poll(f"{_list_names(dag_ids)} to be parsed", timeout_seconds):
            if all(self._is_parsed(dag_id, since) for dag_id in dag_ids):
                return
            for failure in self.import_errors():
                if file is not None and failure.file == file:
                    raise AirflowSiteError(f"Airflow cannot read {file}:\n{failure.stack_trace.rstrip()}")

    def _is_parsed(self, dag_id: str, since: datetime | None) -> bool:
        answer = self._send("GET", f"/dags/{quote(dag_id, safe='')}", accept=(404,))
        if answer.status_code == 404:
            return False
        parsed_at = _read_time(answer.json()["last_parsed_time"])
        return since is None or (parsed_at is not None and parsed_at > since)

    def import_errors(self) -> list[ImportFailure]:
        return [
            ImportFailure(entry["filename"], entry["stack_trace"])
            for entry in self._list("/importErrors", "import_errors")
        ]

    def pause(self, dag_id: str) -> None:
        self._set_paused(dag_id, True)

    def unpause(self, dag_id: str) -> None:
        """Let Airflow run the DAG. Without it neither a backfill nor a trigger does anything."""
        self._set_paused(dag_id, False)

    def _set_paused(self, dag_id: str, is_paused: bool) -> None:
        self._send("PATCH", f"/dags/{quote(dag_id, safe='')}", json={"is_paused": is_paused})

    # Runs

    def trigger(
        self,
        dag_id: str,
        *,
        logical_date: datetime | None = None,
        data_interval: tuple[datetime, datetime] | None = None,
        conf: dict[str, Any] | None = None,
    ) -> Run:
        """Start one run by hand. With only a logical date, a data-interval timetable takes the interval before it."""
        body: dict[str, Any] = {"logical_date": _write_time(logical_date), "conf": conf or {}}
        if data_interval is not None:
            body["data_interval_start"], body["data_interval_end"] = (_write_time(time) for time in data_interval)
        return _read_run(self._send("POST", f"/dags/{quote(dag_id, safe='')}/dagRuns", json=body).json())

    def runs(self, dag_id: str) -> list[Run]:
        """Every run of the DAG, by logical date."""
        path = f"/dags/{quote(dag_id, safe='')}/dagRuns"
        return [_read_run(entry) for entry in self._list(path, "dag_runs", order_by="logical_date")]

    def task_instances(self, dag_id: str, run_id: str) -> list[TaskInstance]:
        path = f"{_run_path(dag_id, run_id)}/taskInstances"
        return [_read_task_instance(entry) for entry in self._list(path, "task_instances")]

    def wait_for_runs(
        self,
        dag_id: str,
        *,
        run_ids: Iterable[str] | None = None,
        logical_dates: Iterable[datetime] | None = None,
        timeout_seconds: float = 300,
        allow_failed: bool = False,
        on_progress: OnProgress | None = None,
    ) -> list[Run]:
        """Wait until these runs (all of the DAG, unless told) have ended; a failed one is an error, with its log.

        `on_progress` gets the runs as they are, whenever one of them has changed.
        """
        wanted_ids = None if run_ids is None else set(run_ids)
        wanted_dates = None if logical_dates is None else set(logical_dates)
        expected = len(wanted_ids if wanted_ids is not None else wanted_dates if wanted_dates is not None else "1")
        shown: list[Run] | None = None
        for _ in self._poll(f"the runs of {dag_id} to end", timeout_seconds, lambda: self._describe_runs(dag_id)):
            runs = [
                run
                for run in self.runs(dag_id)
                if (wanted_ids is None or run.run_id in wanted_ids)
                and (wanted_dates is None or run.logical_date in wanted_dates)
            ]
            if on_progress is not None and runs != shown:
                on_progress(runs)
                shown = runs
            if len(runs) >= expected and all(run.is_finished for run in runs):
                failed = [run for run in runs if run.state == "failed"]
                if failed and not allow_failed:
                    raise AirflowSiteError(self._describe_failure(failed[0]))
                return runs
        raise AssertionError("unreachable")

    # Backfill and clear

    def backfill(
        self,
        dag_id: str,
        from_date: datetime,
        to_date: datetime,
        *,
        max_active_runs: int = 4,
        reprocess: Literal["none", "failed", "completed"] = "none",
        timeout_seconds: float = 120,
    ) -> Backfill:
        """Ask for the runs of every logical date from `from_date` to `to_date`, both included.

        Airflow takes one backfill of a DAG at a time and notices only every half minute that one is over; until then
        this waits.
        """
        body = {
            "dag_id": dag_id,
            "from_date": _write_time(from_date),
            "to_date": _write_time(to_date),
            "max_active_runs": max_active_runs,
            "reprocess_behavior": reprocess,
        }
        for _ in self._poll(f"an earlier backfill of {dag_id} to be over", timeout_seconds):
            planned = self._send("POST", "/backfills/dry_run", json=body, accept=(409,))
            if planned.status_code == 409:
                continue
            answer = self._create_backfill(dag_id, body)
            if answer.status_code not in (409, 503):
                dates = tuple(_require_time(entry["logical_date"]) for entry in planned.json()["backfills"])
                return Backfill(dag_id, answer.json()["id"], dates)
        raise AssertionError("unreachable")

    def _create_backfill(self, dag_id: str, body: dict[str, Any]) -> httpx.Response:
        """Ask for a backfill while the DAG is paused: on SQLite the making of its runs can fail half-way (503), which
        leaves a backfill without runs, and a scheduler that has seen these runs already dies."""
        is_paused = bool(self._send("GET", f"/dags/{quote(dag_id, safe='')}").json()["is_paused"])
        self._set_paused(dag_id, True)
        try:
            answer = self._send("POST", "/backfills", json=body, accept=(409, 503))
            if answer.status_code == 503:
                self._cancel_backfills(dag_id)
            return answer
        finally:
            self._set_paused(dag_id, is_paused)

    def _cancel_backfills(self, dag_id: str) -> None:
        for entry in self._list("/backfills", "backfills", dag_id=dag_id):
            if entry["completed_at"] is None:
                self._send("PUT", f"/backfills/{entry['id']}/cancel", accept=(409, 503))

    def wait_for_backfill(
        self,
        backfill: Backfill,
        *,
        timeout_seconds: float = 300,
        allow_failed: bool = False,
        on_progress: OnProgress | None = None,
    ) -> list[Run]:
        """Wait until its runs have ended (Airflow itself calls the backfill complete up to half a minute later)."""
        return self.wait_for_runs(
            backfill.dag_id,
            logical_dates=backfill.logical_dates,
            timeout_seconds=timeout_seconds,
            allow_failed=allow_failed,
            on_progress=on_progress,
        )

    def clear(
        self,
        dag_id: str,
        run_id: str,
        task_ids: Sequence[str] | None = None,
        *,
        downstream: bool = False,
        future: bool = False,
    ) -> list[tuple[str, str]]:
        """Clear tasks of a run (all, unless told) so that they run again; the (run id, task id) that were cleared.

        `downstream`: also what follows in the same run; `future`: also the same tasks in later runs.
        """
        body: dict[str, Any] = {
            "dry_run": False,
            "only_failed": False,
            "reset_dag_runs": True,
            "dag_run_id": run_id,
            "include_downstream": downstream,
            "include_future": future,
        }
        if task_ids is not None:
            body["task_ids"] = list(task_ids)
        answer = self._send("POST", f"/dags/{quote(dag_id, safe='')}/clearTaskInstances", json=body).json()
        return sorted((entry["dag_run_id"], entry["task_id"]) for entry in answer["task_instances"])

    # One task instance

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{quote(task_id, safe='')}/xcomEntries/{quote(key, safe='')}"
        return self._send("GET", path, params={"deserialize": True, "stringify": False}).json()["value"]

    def rendered_fields(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """What the Rendered Templates tab shows."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{quote(task_id, safe='')}"
        return _read_task_instance(self._send("GET", path).json()).rendered_fields

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int | None = None) -> str:
        """The text of a task's log, of its latest try unless told."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{quote(task_id, safe='')}"
        if try_number is None:
            try_number = self._send("GET", path).json()["try_number"]
        answer = self._send("GET", f"{path}/logs/{try_number}", params={"full_content": True}).json()
        return "\n".join(_read_log_line(entry) for entry in answer["content"])

    # Talking to the API

    def _sign_in(self) -> None:
        answer = self._http.post("/auth/token", json={"username": self.user, "password": self.password})
        if answer.is_error:
            raise AirflowSiteError(f"Airflow at {self.url} does not let {self.user} in: {answer.text.strip()}")
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def _send(self, method: str, path: str, *, accept: tuple[int, ...] = (), **arguments: Any) -> httpx.Response:
        self.check_alive()
        try:
            if "Authorization" not in self._http.headers:
                self._sign_in()
            answer = self._http.request(method, f"/api/v2{path}", **arguments)
        except httpx.TransportError as error:
            self.check_alive()
            raise AirflowSiteError(
                f"Airflow at {self.url} did not answer {method} {path}: {error!r}.{self.describe_trouble()}"
            ) from error
        if answer.is_error and answer.status_code not in accept:
            trouble = self.describe_trouble() if answer.is_server_error else ""
            raise AirflowSiteError(
                f"Airflow answered {method} {path} with {answer.status_code}: {answer.text.strip()}{trouble}"
            )
        return answer

    def _list(self, path: str, key: str, **parameters: Any) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        while True:
            page = self._send("GET", path, params={"limit": PAGE_SIZE, "offset": len(entries), **parameters}).json()
            entries += page[key]
            if len(page[key]) < PAGE_SIZE:
                return entries

    def _poll(self, purpose: str, timeout_seconds: float, describe: Callable[[], str] = lambda: "") -> Iterator[None]:
        deadline = time.monotonic() + timeout_seconds
        while True:
            yield
            if time.monotonic() > deadline:
                raise AirflowSiteError(
                    f"Waited {timeout_seconds:.0f} seconds for {purpose}.{describe()}{self.describe_trouble()}"
                )
            time.sleep(POLL_SECONDS)

    def _describe_runs(self, dag_id: str) -> str:
        lines = []
        for run in self.runs(dag_id):
            if not run.is_finished:
                tasks = ", ".join(f"{task.task_id} {task.state}" for task in self.task_instances(dag_id, run.run_id))
                lines.append(f"\n  {run.run_id} is {run.state} ({tasks or 'no task yet'})")
        return "".join(lines)

    def _describe_failure(self, run: Run) -> str:
        tasks = [task for task in self.task_instances(run.dag_id, run.run_id) if task.state == "failed"]
        names = _list_names([task.task_id for task in tasks]) if tasks else "no task"
        message = f"Run {run.run_id} of {run.dag_id} failed ({names})."
        for task in tasks[:1]:
            log = self.log(run.dag_id, run.run_id, task.task_id, task.try_number)
            message += f" The log of {task.task_id} ends with:\n" + "\n".join(log.splitlines()[-30:])
        return message


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/dags/{quote(dag_id, safe='')}/dagRuns/{quote(run_id, safe='')}"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names)


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def _require_time(text: str | None) -> datetime:
    time = _read_time(text)
    if time is None:
        raise AirflowSiteError("This backfill has runs without a logical date, and cannot be followed.")
    return time


def _write_time(time: datetime | None) -> str | None:
    if time is not None and time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: give an aware datetime.")
    return None if time is None else time.astimezone(UTC).isoformat()


def _read_run(entry: dict[str, Any]) -> Run:
    return Run(
        dag_id=entry["dag_id"],
        run_id=entry["dag_run_id"],
        state=entry["state"],
        run_type=entry["run_type"],
        logical_date=_read_time(entry["logical_date"]),
        data_interval_start=_read_time(entry["data_interval_start"]),
        data_interval_end=_read_time(entry["data_interval_end"]),
    )


def _read_task_instance(entry: dict[str, Any]) -> TaskInstance:
    return TaskInstance(
        task_id=entry["task_id"],
        run_id=entry["dag_run_id"],
        state=entry["state"],
        try_number=entry["try_number"],
        map_index=entry["map_index"],
        start_date=_read_time(entry["start_date"]),
        end_date=_read_time(entry["end_date"]),
        rendered_fields=entry.get("rendered_fields") or {},
    )


def _read_log_line(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    details = "".join(f"\n{part}" for part in _describe_exceptions(entry.get("error_detail") or []))
    reason = f" {entry['reason']}" if entry.get("reason") else ""  # why a task was skipped
    return f"{entry.get('event', '')}{reason}{details}"


def _describe_exceptions(details: Sequence[dict[str, Any]]) -> Iterator[str]:
    for detail in details:
        for frame in detail.get("frames", []):
            yield f"  {frame['filename']}:{frame['lineno']} in {frame['name']}"
        yield f"{detail.get('exc_type')}: {detail.get('exc_value')}"
