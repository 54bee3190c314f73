"""Loads the rows of a run's span into a table."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseOperator

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.hooks.assets import (
    announce,
    find_news,
    forget_unannounced,
    name_asset,
    remember_unannounced,
)
from airflow_provider_viewdf.hooks.retries import failing_for_good
from airflow_provider_viewdf.hooks.runs import find_span_of, has_date
from airflow_provider_viewdf.hooks.scripts import require_definition, tell_preview
from airflow_provider_viewdf.hooks.templates import add_subscripts, is_template
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION, ViewDFHook, find_producer
from airflow_provider_viewdf.operators.viewdf import Changed, check_choice
from airflow_provider_viewdf.parts import format_time
from airflow_provider_viewdf.reports import LoadResult

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

Source = str | Sequence[str] | Callable[..., Any]
Span = tuple[datetime, datetime]

MOST_REJECTED_SHOWN = 10


class LoadOperator(BaseOperator):
    """Loads one batch of rows into a table, each row into the part of its event time, late ones too.

    The batch is the run's: it covers the run's span (minutes without rows become empty parts, not missing ones), and its
    id is made of the DAG, the task and the beginning of that span. So a run that is cleared, or done again by a backfill,
    replaces the rows that it brought before; with the same rows, it changes nothing. Late rows are taken, set aside or
    ignored as the table's LATE ROWS says, and counted in the log. Each part that it did change is an event of the table's
    asset, as for views.

    :param table: the table.
    :param source: a file (CSV, JSON lines, Parquet), several, or a directory, with Jinja; relative ones are looked for
        beside the DAG file. Or a callable that is given `start`, `end` and whatever else of the task context
        it has parameters for, and returns rows (dicts) or paths.
    :param batch_id: another batch id, with Jinja. With one, runs without any date can load too; their batches cover what
        their rows cover.
    :param sql: a script, or a .sql file, that defines the table, applied beforehand.
    :param on_error: "reject" (default) loads nothing if any row does not fit, "quarantine" sets those rows aside.
    :param offset: load the batch of that many parts later (earlier, if negative).
    :param changed: as for `ViewDFOperator`, if `sql` defines views too.
    :param restate_from: as for `ViewDFOperator`.
    """

    template_fields: Sequence[str] = ("table", "source", "batch_id", "sql", "viewdf_conn_id", "spark_conn_id")
    # Only for `sql`: a source that ends in .csv is a file to be loaded, not a template.
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql"}
    ui_color = "#fff2cc"

    def __init__(
        self,
        *,
        table: str,
        source: Source,
        batch_id: str | None = None,
        sql: str | None = None,
        viewdf_conn_id: str = DEFAULT_CONNECTION,
        spark_conn_id: str | None = None,
        on_error: Literal["reject", "quarantine"] = "reject",
        offset: int = 0,
        changed: Changed = "refuse",
        restate_from: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if on_error not in ("reject", "quarantine"):
            raise UsageError(f'on_error of task {self.task_id} must be "reject" or "quarantine", not {on_error!r}.')
        self.table = table
        # Airflow would call a callable in a template field while rendering, with arguments of its own.
        self.python_callable = source if callable(source) else None
        self.source = None if callable(source) else source
        self.batch_id = batch_id
        self.sql = sql
        self.viewdf_conn_id = viewdf_conn_id
        self.spark_conn_id = spark_conn_id
        self.on_error = on_error
        self.offset = offset
        check_choice(self.task_id, changed, restate_from)
        self.changed = changed
        self.restate_from = restate_from
        self.asset = None if is_template(table) else name_asset(table, viewdf_conn_id)
        self.outlets = [*self.outlets, *([self.asset] if self.asset else [])]
        self._hook: ViewDFHook | None = None

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        super().render_template_fields(add_subscripts(context), jinja_env)  # type: ignore[arg-type]

    def execute(self, context: Context) -> dict[str, Any]:
        self._hook = ViewDFHook(self.viewdf_conn_id, self.spark_conn_id, find_producer(context))
        started_at = time.time()
        with self._hook.working_warehouse() as warehouse:
            with failing_for_good():
                if self.sql:
                    warehouse.apply(
                        self.sql,
                        changed=self.changed,
                        restate_from=self.restate_from,
                        start=self.dag.start_date,
                        on_preview=lambda preview: tell_preview(self.log, preview),
                    )
                table = require_definition(warehouse.definitions(), self.table)
                covers = self._find_span(context, table)
            batch_id = self.batch_id or self._name_batch(context, covers)
            source = self._find_source(context, covers)
            remember_unannounced(context, started_at)
            result = warehouse.load(self.table, source, batch_id=batch_id, covers=covers, on_error=self.on_error)
            if self.asset is not None:
                news = find_news(warehouse, context, started_at, {}, f"batch {batch_id}")
                announce(context, self, self.asset, news.get(table.name, []))
            forget_unannounced(context)
        self._tell(result, table)
        return summarize(result)

    def _find_span(self, context: Context, table: Definition) -> Span | None:
        if self.batch_id is not None and not has_date(context):
            return None
        return find_span_of(context).bounds(table.partitioning, self.offset)

    def _name_batch(self, context: Context, covers: Span | None) -> str:
        assert covers is not None
        map_index = getattr(context["ti"], "map_index", -1)
        mapped = f"/{map_index}" if map_index is not None and map_index >= 0 else ""
        return f"{self.dag_id}/{self.task_id}{mapped}/{format_time(covers[0])}"

    def _find_source(self, context: Context, covers: Span | None) -> Any:
        if self.python_callable is None:
            folder = self.dag.folder
            return place_paths(self.source, folder)
        start, end = covers or (None, None)
        return call_with_accepted(self.python_callable, {**context, "start": start, "end": end})

    def _tell(self, result: LoadResult, table: Definition) -> None:
        changed = table.describe_parts(result.changed) if result.changed else "no part, the batch was there already"
        self.log.info(
            "Batch %s: %d rows for %s, changed %s, in %.1f s.",
            result.batch_id,
            result.rows,
            table.describe_parts(result.covers) if result.covers else table.name,
            changed,
            result.seconds,
        )
        if result.late:
            self.log.warning("Late rows: %s (%s).", result.late, table.late_rows)
        for row in result.rejected[:MOST_REJECTED_SHOWN]:
            self.log.warning("Set aside: %s", row)

    def on_kill(self) -> None:
        """Let go of Spark. A batch is loaded whole or not at all."""
        if self._hook is not None:
            self._hook.release_spark(stop=True)


def summarize(result: LoadResult) -> dict[str, Any]:
    """A load in plain, small JSON values."""
    return {
        "table": result.table,
        "batch_id": result.batch_id,
        "rows": result.rows,
        "covers": str(result.covers),
        "changed": str(result.changed),
        "rejected": len(result.rejected),
        "late": {"taken": result.late.taken, "quarantined": result.late.quarantined, "ignored": result.late.ignored},
        "seconds": round(result.seconds, 3),
    }


def place_paths(source: Any, folder: str) -> Any:
    """Relative paths, of one file or of several, as paths in a folder. URLs and absolute paths stay as they are."""
    if isinstance(source, str):
        return source if "://" in source else str(Path(folder, source))
    if isinstance(source, (list, tuple)):
        return [place_paths(item, folder) for item in source]
    return source


def call_with_accepted(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function with those of the values that it has parameters for."""
    parameters = inspect.signature(function).parameters.values()
    if any(item.kind is item.VAR_KEYWORD for item in parameters):
        return function(**values)
    return function(**{item.name: values[item.name] for item in parameters if item.name in values})
