"""Which later run of a DAG owns a part, and having that run done again, from inside a task and without credentials.

Only ever later runs: a chain of reruns moves forward in time, so it cannot come back to where it began, and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from airflow_provider_viewdf.hooks.runs import find_span
from airflow_provider_viewdf.parts import Partitioning

FINISHED_RUN = ("success", "failed")
# A task that has not begun, or that will look again when it goes on, finds whatever is stale by then.
TO_COME = (
    None,
    "scheduled",
    "queued",
    "deferred",
    "restarting",
    "up_for_retry",
    "up_for_reschedule",
    "awaiting_input",
)

# So many runs may share a part (manual ones, mostly) before the search for its run is given up.
MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of a stale part: its run is rerun, it is left to its run, or it is computed here."""

    action: Literal["rerun", "leave", "here"]
    reason: str
    run_id: str = ""


class LaterRuns:
    """The later runs of a task's DAG, as far as the task's view is concerned."""

    def __init__(self, context: Mapping[str, Any], partitioning: Partitioning, offset: int) -> None:
        ti = context["ti"]
        self._dag_id: str = ti.dag_id
        self._run_id: str = ti.run_id
        self._task_id: str = ti.task_id
        self._map_index: int = -1 if getattr(ti, "map_index", None) is None else ti.map_index
        self._logical_date: datetime | None = context.get("logical_date")
        self._partitioning = partitioning
        self._offset = offset

    @property
    def lock(self) -> str:
        """What the tasks of one DAG hold while they decide: two that want the same run must not both reset it."""
        return f"reruns of {self._dag_id}"

    def judge(self, index: int) -> Verdict:
        """What is to become of a stale part. The answer about a run that is over holds until someone resets the run."""
        if self._logical_date is None:
            return Verdict("here", "this run has no logical date, so no run comes after it")
        run = self._find_owner(index)
        if run is None:
            return Verdict("here", f"no later run of {self._dag_id} is for it")
        states = self._find_states(run.run_id)
        name = self._task_id if self._map_index < 0 else f"{self._task_id}_{self._map_index}"
        if name not in states:
            return Verdict("here", f"its run {run.run_id} has no task {self._task_id}")
        state = run.state.value
        if state in FINISHED_RUN:
            return Verdict("rerun", f"its run {run.run_id} is done again", run.run_id)
        if states[name] in TO_COME:
            return Verdict("leave", f"its run {run.run_id} is {state} and has yet to compute it", run.run_id)
        return Verdict("here", f"its run {run.run_id} is {state}, but past task {self._task_id} ({states[name]})")

    def _find_owner(self, index: int) -> Any:
        """The later run whose parts include this one: a scheduled or backfilled one rather than a manual one."""
        from airflow.sdk.execution_time.comms import GetPreviousDagRun

        assert self._logical_date is not None
        before = self._partitioning.end_of(index - self._offset)
        manual = None
        for _ in range(MOST_CANDIDATES):
            found = _ask(GetPreviousDagRun(dag_id=self._dag_id, logical_date=before)).dag_run
            if found is None or found.logical_date is None or found.logical_date <= self._logical_date:
                break
            span = find_span(found.logical_date, found.data_interval_start, found.data_interval_end)
            if index in span.parts(self._partitioning, self._offset) and found.run_id != self._run_id:
                if found.run_type.value not in ("manual", "operator_triggered"):
                    return found
                manual = manual or found
            elif span.end < self._partitioning.start_of(index - self._offset):
                break
            before = found.logical_date
        return manual

    def _find_states(self, run_id: str) -> dict[str, str | None]:
        from airflow.sdk.execution_time.comms import GetTaskStates

        answer = _ask(GetTaskStates(dag_id=self._dag_id, task_ids=[self._task_id], run_ids=[run_id]))
        return dict(answer.task_states.get(run_id, {}))

    def rerun(self, verdict: Verdict) -> None:
        """Have a run that exists done again, every task of it, with its dates kept."""
        from airflow.sdk.execution_time.comms import GetDagRun, TriggerDagRun

        # A run id that does not exist would make a new run: this raises for one that has been deleted meanwhile.
        run = _ask(GetDagRun(dag_id=self._dag_id, run_id=verdict.run_id))
        _ask(
            TriggerDagRun(
                dag_id=self._dag_id, run_id=run.run_id, logical_date=run.logical_date, reset_dag_run=True, conf=run.conf
            )
        )


def _ask(message: Any) -> Any:
    from airflow.sdk.execution_time import task_runner

    return task_runner.SUPERVISOR_COMMS.send(message)
