"""Refreshes one view: the parts of the run's span, and whatever else of the view late data has made stale."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow.sdk import BaseOperator, TriggerRule, conf
from airflow.sdk.exceptions import AirflowRuntimeError, AirflowSkipException

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import UsageError, ViewDFError
from airflow_provider_viewdf.hooks.ahead import find_parts_of_other_runs
from airflow_provider_viewdf.hooks.assets import (
    announce,
    find_news,
    forget_unannounced,
    name_asset,
    remember_unannounced,
)
from airflow_provider_viewdf.hooks.reruns import LaterRuns, Verdict
from airflow_provider_viewdf.hooks.retries import failing_for_good
from airflow_provider_viewdf.hooks.runs import RunSpan, explain_no_parts, find_span_of
from airflow_provider_viewdf.hooks.scripts import (
    blocked_parts,
    choose_view,
    describe_blocked,
    describe_step,
    find_shown_part,
    missing_parts_error,
    require_definition,
    resolve_sql,
    tell_preview,
)
from airflow_provider_viewdf.hooks.templates import add_subscripts
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION, ViewDFHook, find_producer
from airflow_provider_viewdf.parts import EARLIEST, PartSet, as_time
from airflow_provider_viewdf.reports import RefreshReport, StepReport
from airflow_provider_viewdf.triggers.parts import PartsTrigger, are_ready, pack_parts

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

    from airflow_provider_viewdf.warehouse import Warehouse

LateData = Literal["refresh", "rerun", "leave"]
Incomplete = Literal["wait", "skip"]
Changed = Literal["refuse", "restate", "forward"]

# Airflow's own limit on a deferral only serves if the triggerer dies: it would not say which parts are missing.
GRACE_SECONDS = 300


class ViewDFOperator(BaseOperator):
    """Brings the run's parts of one view up to date and, unless told to leave them, the other stale parts of the view.

    The run's parts are those that end inside its span (see `hooks.runs`). What they read is refreshed first. If something
    they read has to be loaded and is not there, the task waits for it, deferred, and after `timeout` fails with the list.
    A script that is wrong, or does not fit what is defined, fails at once, whatever the task's retries.

    Each part with a new content is an event of the asset of its view, with the part as its partition key and with rows,
    version, changed and reason as its extra.

    Skipped upstream tasks do not make it skip (its `trigger_rule` is none_failed unless you say otherwise): an hourly
    view is skipped in 59 of 60 minutely runs, and the views that read it still have their parts to compute.

    :param sql: a script, or a .sql file beside the DAG file, with the view and what it reads. It is applied before the
        refresh, which changes nothing if it is applied already; views without STARTING begin with the DAG's start_date.
        In its Jinja context are `i` and `j` (the subscript) and the params. None: the view is defined already.
    :param view: which of the script's views. Default: the one named like the task, else the only one.
    :param changed: what to do if the script defines a view differently that has parts: "refuse" (default) fails and names
        the choices, "restate" computes its parts anew, "forward" leaves them, and computes new ones by the new definition.
    :param restate_from: with "restate": only parts from this time on (a time in UTC, or a text like 2015-01-01T10:00).
    :param late_data: what becomes of the view's stale parts that belong to other runs. "refresh" (default): they are computed
        here. "rerun": later ones by their own runs, of which the next is rerun and goes on from there; what no run
        can take over is computed here, and earlier ones are. "leave": they stay stale until someone asks for them.
    :param batch_limit: how many parts the task may compute at once. Where it has to compute its own, it also computes those
        of other runs of the DAG that exist (with `catchup`: of its schedule up to now) and whose inputs are there, until it
        has that many: these runs then find theirs done, and start no Spark. 1, or any other `late_data` or `incomplete` than
        the default: only its own.
    :param incomplete: what to do if something that the run's parts read is not there. "wait" (default) computes what can be
        computed and waits for what has to be loaded. "skip" skips the task, also if there is nothing to compute,
        and computes no other view: for a DAG whose runs come from the assets of what the view reads
        (see `after_parts_of`), since the next event makes the next run.
    :param offset: compute parts that many parts later (earlier, if negative).
    :param deferrable: wait for missing inputs in the triggerer (the default), or else in the worker.
    :param timeout: how long to wait for missing inputs, seconds or a timedelta. Default: Airflow's
        `[sensors] default_timeout`.
    :param poll_interval: seconds between two looks at the catalog while waiting.
    """

    template_fields: Sequence[str] = ("sql", "view", "viewdf_conn_id", "spark_conn_id")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql"}
    ui_color = "#d9ead3"

    def __init__(
        self,
        *,
        sql: str | None = None,
        view: str | None = None,
        viewdf_conn_id: str = DEFAULT_CONNECTION,
        spark_conn_id: str | None = None,
        late_data: LateData = "refresh",
        batch_limit: int = 100,
        changed: Changed = "refuse",
        restate_from: datetime | str | None = None,
        incomplete: Incomplete = "wait",
        offset: int = 0,
        deferrable: bool = True,
        timeout: timedelta | float | None = None,
        poll_interval: float = 5,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("trigger_rule", TriggerRule.NONE_FAILED)
        super().__init__(**kwargs)
        if late_data not in get_args(LateData):
            raise UsageError(
                f'late_data of task {self.task_id} must be "refresh", "rerun" or "leave", not {late_data!r}.'
            )
        if incomplete not in get_args(Incomplete):
            raise UsageError(f'incomplete of task {self.task_id} must be "wait" or "skip", not {incomplete!r}.')
        check_choice(self.task_id, changed, restate_from)
        if sql is None and view is None:
            raise UsageError(f"Task {self.task_id} says neither sql=... nor view=...; give it at least one of them.")
        self.sql = sql
        self.view = view
        self.viewdf_conn_id = viewdf_conn_id
        self.spark_conn_id = spark_conn_id
        self.late_data = late_data
        if batch_limit < 1:
            raise UsageError(f"batch_limit of task {self.task_id} must be at least 1, not {batch_limit}.")
        self.batch_limit = batch_limit
        self.changed = changed
        self.restate_from = restate_from
        self.incomplete = incomplete
        self.offset = offset
        self.deferrable = deferrable
        self.timeout_seconds = _read_timeout(timeout)
        self.poll_interval = poll_interval
        self.asset = name_asset(view or self.task_id.rpartition(".")[2], viewdf_conn_id)
        self.outlets = [*self.outlets, self.asset]
        self._definition_sql: str | None = None
        self._is_rendered = False
        self._hook: ViewDFHook | None = None
        self._ahead = PartSet()
        self._on_first_published: Callable[[], None] | None = None

    # What the rendered tab shows, and what is applied

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """Render the definition, with `i` and `j` as symbols; then show, in its place, the SQL of this run's part."""
        template = self.sql
        super().render_template_fields(add_subscripts(context), jinja_env)  # type: ignore[arg-type]
        self._definition_sql, self._is_rendered = self.sql, True
        try:
            self.sql = self._resolve(context, template, jinja_env or self.get_template_env())
        except Exception as error:
            # What is shown must never be why a task fails: execute will meet the same trouble, and say it better.
            self.log.debug("The SQL of this run's part cannot be shown: %s", error)

    def _resolve(self, context: Context, template: str | None, jinja_env: jinja2.Environment) -> str:
        definitions = self._read_definitions()
        view = self._choose_view(list(definitions.values()))
        span = find_span_of(context)
        try:
            return resolve_sql(view, definitions, span, self.offset)
        except ViewDFError:
            if template is None:
                raise
            index, _ = find_shown_part(view, span, self.offset)
            numbers = add_subscripts(context, index)
            return str(self.render_template(template, numbers, jinja_env))  # type: ignore[arg-type]

    def _read_definitions(self) -> dict[str, Definition]:
        """The script's definitions by folded name, and the catalog's if the script does not stand alone."""
        from airflow_provider_viewdf.language import parse_script

        if self._definition_sql:
            try:
                return {fold(item.name): item for item in parse_script(self._definition_sql)}
            except ViewDFError:
                pass  # it may refer to what is defined in the catalog
        with ViewDFHook(self.viewdf_conn_id).get_conn() as warehouse:
            known = {fold(item.name): item for item in warehouse.definitions()}
        script = parse_script(self._definition_sql, known) if self._definition_sql else []
        return {**known, **{fold(item.name): item for item in script}}

    def _choose_view(self, definitions: Sequence[Definition]) -> Definition:
        if self._definition_sql is None and self.view is not None:
            return require_definition(definitions, self.view)
        return choose_view(definitions, self.view, self.task_id)

    # Running

    def execute(self, context: Context) -> dict[str, Any]:
        return self._refresh(context, time.time())

    def execute_complete(self, context: Context, event: dict[str, Any], started_at: float) -> dict[str, Any]:
        """Called when the trigger has fired, because the inputs are there or the time is over."""
        return self._refresh(context, started_at)

    def _refresh(self, context: Context, started_at: float) -> dict[str, Any]:
        self._hook = ViewDFHook(self.viewdf_conn_id, self.spark_conn_id, find_producer(context))
        self._on_first_published = partial(remember_unannounced, context, started_at)
        with failing_for_good():
            span = find_span_of(context)
        with self._hook.working_warehouse() as warehouse:
            with failing_for_good():
                view = self._apply(warehouse)
            parts = span.parts(view.partitioning, self.offset)
            no_parts = "" if parts else explain_no_parts(view.name, view.partitioning, span)
            self.log.info(
                "This run (%s) is for %s", span, view.describe_parts(parts) if parts else f"no part: {no_parts}"
            )
            self._ahead = self._find_ahead(warehouse, context, view, parts)
            report = RefreshReport()
            while True:
                report += self._refresh_once(warehouse, view, parts, span)
                wanted = blocked_parts(report.blocked, view.name, parts)
                if not wanted or self.incomplete == "skip":
                    break
                missing_error = missing_parts_error(
                    view.describe_parts(parts), wanted, warehouse.definitions(), time.time() - started_at
                )
                if time.time() >= started_at + self.timeout_seconds:
                    raise missing_error
                if self.deferrable:
                    self._defer(wanted, started_at)
                self._sleep_until_there(wanted, started_at)
            rerun = None
            if self.late_data == "rerun":
                report, rerun = self._rerun_later(warehouse, context, view, span, report)
            self._announce(warehouse, context, view, started_at, report)
        if not report.steps:
            self._skip_if_nothing_to_do(view, parts, report, no_parts)
        return {**report.to_dict(), **({"rerun": rerun} if self.late_data == "rerun" else {})}

    def _apply(self, warehouse: Warehouse) -> Definition:
        if not self._is_rendered:
            self._definition_sql = self.sql
        if self._definition_sql is None:
            return self._choose_view(warehouse.definitions())
        start = self.dag.start_date
        applied = warehouse.apply(
            self._definition_sql,
            changed=self.changed,
            restate_from=self.restate_from,
            start=start,
            on_preview=lambda preview: tell_preview(self.log, preview),
        )
        if self.view is not None and not any(fold(item.name) == fold(self.view) for item in applied):
            return require_definition(warehouse.definitions(), self.view)
        return self._choose_view(applied)

    def _find_ahead(self, warehouse: Warehouse, context: Context, view: Definition, parts: PartSet) -> PartSet:
        """The parts of other runs, if there is a reason to start Spark at all."""
        if self.late_data != "refresh" or self.incomplete != "wait" or self.batch_limit == 1:
            return PartSet()
        if not warehouse.unready_parts(view.name, parts):
            return PartSet()
        span = find_span_of(context)
        return find_parts_of_other_runs(context, span, view.partitioning, self.offset, self.batch_limit)

    def _tell_plan(self, warehouse: Warehouse, view: Definition, parts: PartSet, also_stale: bool | PartSet) -> None:
        """Say what will be computed and why, before it is."""
        plan = warehouse.refresh(
            parts={view.name: parts}, also_stale=also_stale, only_these=self.incomplete == "skip", dry_run=True
        )
        if plan.steps:
            self.log.info("The plan is to compute at most (a part that turns out the same ends its chain):")
        for line in warehouse.explain_plan(plan):
            self.log.info("  %s", line)

    def _refresh_once(
        self, warehouse: Warehouse, view: Definition, parts: PartSet, span: RunSpan | None
    ) -> RefreshReport:
        """Refresh these parts and, given the run's span, the stale ones that are this run's concern."""
        also_stale: bool | PartSet = span is not None and self.late_data != "leave"
        if span is not None and self.late_data == "rerun":
            also_stale = PartSet.between(EARLIEST, span.last_part(view.partitioning, self.offset))
        self._tell_plan(warehouse, view, parts, also_stale)
        report = warehouse.refresh(
            parts={view.name: parts},
            also_stale=also_stale,
            only_these=self.incomplete == "skip",
            on_progress=self._make_narrator(warehouse),
            batch_limit=self.batch_limit,
            ahead={view.name: self._ahead},
        )
        for item in (*report.skipped, *report.blocked):
            self.log.info("%s[%s] not computed: %s", item.view, item.parts, item.reason)
        self.log.info(
            "%s: %d published, %d kept, %d rows, %.1f s.",
            view.name,
            len(report.published),
            len(report.kept),
            report.rows,
            report.seconds,
        )
        return report

    def _rerun_later(
        self, warehouse: Warehouse, context: Context, view: Definition, span: RunSpan, report: RefreshReport
    ) -> tuple[RefreshReport, str | None]:
        """Have the next later run that owns a stale part done again; it goes on from there. Parts before it that no run
        can take over are computed here. Always forward, so it ends."""
        runs = LaterRuns(context, view.partitioning, self.offset)
        after = span.last_part(view.partitioning, self.offset)

        def find_next() -> int | None:
            return warehouse.find_next_due(view.name, after, only_these=self.incomplete == "skip")

        while (index := find_next()) is not None:
            part = view.describe_part(index)
            with warehouse.hold_alone(runs.lock):
                verdict = runs.judge(index)
                if verdict.action == "rerun":
                    # The run was over when it was looked at: if the part is still due, it will not come by itself.
                    if find_next() != index:
                        continue
                    try:
                        runs.rerun(verdict)
                    except AirflowRuntimeError as error:
                        verdict = replace(verdict, action="here", reason=f"its run cannot be done again: {error}")
            self.log.info("%s is not up to date either: %s.", part, _describe_verdict(verdict))
            if verdict.action != "here":
                return report, verdict.run_id if verdict.action == "rerun" else None
            computed = self._refresh_once(warehouse, view, PartSet.between(index, index), None)
            report = replace(report, steps=report.steps + computed.steps)
            after = index
        return report, None

    def _announce(
        self, warehouse: Warehouse, context: Context, view: Definition, started_at: float, report: RefreshReport
    ) -> None:
        """Say, in events of their assets, which parts of the view, and of others on the way, have a new content."""
        reasons = {(fold(step.view), step.index): step.reason for step in report.published}
        news = find_news(warehouse, context, started_at, reasons)
        has_news = bool(news)
        announce(context, self, self.asset, news.pop(view.name, []))
        generated = {item.name for item in warehouse.definitions() if item.helper_of}
        for name, parts in news.items():
            if name not in generated:
                announce(context, self, name_asset(name, self.viewdf_conn_id), parts)
        if has_news:
            forget_unannounced(context)

    def _make_narrator(self, warehouse: Warehouse) -> Callable[[StepReport, int, int], None]:
        definitions = {fold(item.name): item for item in warehouse.definitions()}

        def tell(step: StepReport, done: int, total: int) -> None:
            if step.outcome == "published" and self._on_first_published is not None:
                self._on_first_published()
                self._on_first_published = None
            self.log.info(
                "%s", describe_step(step, done, total, definitions[fold(step.view)].describe_part(step.index))
            )

        return tell

    def _defer(self, wanted: Mapping[str, PartSet], started_at: float) -> None:
        deadline = started_at + self.timeout_seconds
        self.defer(
            trigger=PartsTrigger(
                viewdf_conn_id=self.viewdf_conn_id,
                wanted={table: pack_parts(parts) for table, parts in wanted.items()},
                deadline=deadline,
                poll_interval=self.poll_interval,
            ),
            method_name="execute_complete",
            kwargs={"started_at": started_at},
            timeout=timedelta(seconds=max(0.0, deadline - time.time()) + GRACE_SECONDS),
        )

    def _sleep_until_there(self, wanted: Mapping[str, PartSet], started_at: float) -> None:
        assert self._hook is not None
        address = self._hook.find_warehouse()
        deadline = started_at + self.timeout_seconds
        while not are_ready(address, wanted) and (remaining := deadline - time.time()) > 0:
            time.sleep(min(self.poll_interval, remaining))

    def _skip_if_nothing_to_do(self, view: Definition, parts: PartSet, report: RefreshReport, no_parts: str) -> None:
        """A run that had nothing to compute is shown as skipped; one that found its parts up to date, as done, unless
        it was to be skipped then."""
        if not parts:
            raise AirflowSkipException(no_parts)
        if self.incomplete == "skip":
            reason = describe_blocked(report.blocked, view.name, parts) or "it is up to date"
            raise AirflowSkipException(f"{view.describe_parts(parts)} is skipped: {reason}")
        left_out = PartSet()
        reasons = []
        for item in report.skipped:
            if fold(item.view) == fold(view.name):
                left_out |= item.parts
                reasons.append(item.reason)
        if not parts - left_out:
            raise AirflowSkipException(f"{view.describe_parts(parts)} is skipped: {'; '.join(dict.fromkeys(reasons))}")

    def on_kill(self) -> None:
        """Let go of Spark. What is half done is not published, and the next try starts from the catalog."""
        if self._hook is not None:
            self._hook.release_spark(stop=True)


def _describe_verdict(verdict: Verdict) -> str:
    if verdict.action == "rerun":
        return verdict.reason
    return f"{'left as it is' if verdict.action == 'leave' else 'computed here'}, since {verdict.reason}"


def check_choice(task_id: str, changed: str, restate_from: datetime | str | None) -> None:
    """Refuse, when the DAG is parsed, what `apply` would refuse when it runs."""
    if changed not in get_args(Changed):
        raise UsageError(f'changed of task {task_id} must be "refuse", "restate" or "forward", not {changed!r}.')
    if restate_from is None:
        return
    if changed != "restate":
        raise UsageError(f'restate_from of task {task_id} goes with changed="restate", not with {changed!r}.')
    as_time(restate_from)


def _read_timeout(timeout: timedelta | float | None) -> float:
    if timeout is None:
        return float(conf.getfloat("sensors", "default_timeout"))
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if seconds < 0:
        raise UsageError(f"A timeout cannot be negative: {timeout}.")
    return seconds
