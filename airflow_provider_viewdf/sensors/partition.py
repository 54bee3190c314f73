"""Waits until a run's parts of a table are there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowSensorTimeout

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.errors import UnknownTableError, UsageError, ViewDFError
from airflow_provider_viewdf.hooks.retries import failing_for_good
from airflow_provider_viewdf.hooks.runs import explain_no_parts, find_span_of
from airflow_provider_viewdf.hooks.scripts import find_definition, missing_parts_error
from airflow_provider_viewdf.hooks.templates import add_subscripts
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION, ViewDFHook, find_producer
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import describe_look
from airflow_provider_viewdf.triggers.parts import PartsTrigger, pack_parts

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

    from airflow_provider_viewdf.warehouse import Warehouse

DEFAULT_LOOKBACK = 24

# Airflow's own limit on a deferral only serves if the triggerer dies: it would not say which parts are missing.
GRACE_SECONDS = 300


class PartitionSensor(BaseSensorOperator):
    """Waits until the run's parts of a table exist and, if it is a view, are not stale.

    The run's parts are those that end inside its span (see `hooks.runs`); if none does, there is nothing to wait for. A
    table that is not defined yet is one whose parts are not there yet.

    Of an external stream (one with a LOCATION), it looks at the files: a part is there when they are there and complete, and
    is registered at once. Every run looks at earlier parts again, so that files that come late are found by the next run.

    :param table: the table or view.
    :param sql: a script, or a .sql file, that defines the table; it only tells the partition length, nothing is applied, but
        the definition of an external stream, which nobody else would make before its parts are there.
    :param offset: wait for parts that many parts later (earlier, if negative).
    :param lookback: of an external stream, how many parts before the run's own to look at again. Nothing waits for these.
    :param deferrable: wait in the triggerer (the default), or else in the worker.
    :param timeout: seconds or a timedelta, then the task fails with the list of the missing parts. Default:
        Airflow's `[sensors] default_timeout`.
    :param poke_interval: seconds between two looks at the catalog.
    """

    template_fields: Sequence[str] = ("table", "sql", "viewdf_conn_id")
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql"}
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        table: str,
        sql: str | None = None,
        viewdf_conn_id: str = DEFAULT_CONNECTION,
        offset: int = 0,
        lookback: int = DEFAULT_LOOKBACK,
        deferrable: bool = True,
        poke_interval: timedelta | float = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.table = table
        self.sql = sql
        self.viewdf_conn_id = viewdf_conn_id
        self.offset = offset
        if isinstance(lookback, bool) or not isinstance(lookback, int) or lookback < 0:
            raise UsageError(f"lookback of task {self.task_id} must be a number of parts, 0 or more, not {lookback!r}.")
        self.lookback = lookback
        self._has_looked_back = False
        self.deferrable = deferrable

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        super().render_template_fields(add_subscripts(context), jinja_env)  # type: ignore[arg-type]

    def poke(self, context: Context) -> bool:
        return not self.find_missing(context)

    def find_missing(self, context: Context) -> dict[str, PartSet | None]:
        """The run's parts that are not there, by table; None stands for a table of which nothing is known yet."""
        with ViewDFHook(self.viewdf_conn_id, produced_by=find_producer(context)).get_conn() as warehouse:
            definition = find_definition(warehouse.definitions(), self.table)
            is_defined = definition is not None
            with failing_for_good():
                definition = definition or self._find_in_script()
                span = find_span_of(context)
            if definition is None:
                return {self.table: None}
            if definition.is_external and not is_defined:
                # Its text alone: a stream needs no Spark to be defined, and the views of the script are others' business.
                warehouse.apply(definition.text)
                is_defined = True
            parts = span.parts(definition.partitioning, self.offset)
            if not parts:
                reason = explain_no_parts(definition.name, definition.partitioning, span)
                self.log.info("There is nothing to wait for: %s", reason)
                return {}
            if definition.is_external:
                missing = self._look(warehouse, definition, parts)
            else:
                missing = warehouse.unready_parts(self.table, parts) if is_defined else parts
        state = f"waiting for {definition.describe_parts(missing)}" if missing else "all there"
        self.log.info("%s: %s.", definition.describe_parts(parts), state)
        return {self.table: missing} if missing else {}

    def _look(self, warehouse: Warehouse, definition: Definition, parts: PartSet) -> PartSet:
        """Register what is there of the run's parts, and of those before; return those of the run's that are not."""
        found = warehouse.look(self.table, parts=parts, lookback=0 if self._has_looked_back else self.lookback)
        if self._has_looked_back and not found.missing:
            # While it waits, once is enough; at the end once more, since that may be long after.
            found = warehouse.look(self.table, parts=parts, lookback=self.lookback)
        self._has_looked_back = True
        for line in describe_look(replace(found, missing=found.missing & parts), definition.partitioning):
            self.log.info("%s", line)
        return found.missing & parts

    def _find_in_script(self) -> Definition | None:
        """The table as the script defines it. A script that needs the catalog to be understood says nothing yet."""
        if not self.sql:
            return None
        from airflow_provider_viewdf.language import parse_script

        try:
            return find_definition(parse_script(self.sql), self.table)
        except UnknownTableError:
            return None

    def execute(self, context: Context) -> Any:
        started_at = time.time()
        if not self.deferrable:
            try:
                return super().execute(context)
            except AirflowSensorTimeout as error:
                raise AirflowSensorTimeout(str(self._explain(context))) from error
        self._wait_for(self.find_missing(context), started_at)
        return None

    def execute_complete(self, context: Context, event: dict[str, Any], started_at: float) -> None:
        """Called when the trigger has fired: look again, for the last time if the time is over."""
        missing = self.find_missing(context)
        if missing and time.time() >= started_at + self.timeout:
            raise AirflowSensorTimeout(str(self._explain(context, missing)))
        self._wait_for(missing, started_at)

    def _wait_for(self, missing: dict[str, PartSet | None], started_at: float) -> None:
        if not missing:
            return
        deadline = started_at + self.timeout
        self.defer(
            trigger=PartsTrigger(
                viewdf_conn_id=self.viewdf_conn_id,
                wanted={table: None if parts is None else pack_parts(parts) for table, parts in missing.items()},
                deadline=deadline,
                poll_interval=self.poke_interval,
            ),
            method_name="execute_complete",
            kwargs={"started_at": started_at},
            timeout=timedelta(seconds=max(0.0, deadline - time.time()) + GRACE_SECONDS),
        )

    def _explain(self, context: Context, missing: dict[str, PartSet | None] | None = None) -> ViewDFError:
        missing = self.find_missing(context) if missing is None else missing
        with ViewDFHook(self.viewdf_conn_id).get_conn() as warehouse:
            definitions = warehouse.definitions()
        script = self._find_in_script()
        known = [*definitions, *([script] if script else [])]
        return missing_parts_error(
            f"Task {self.task_id}", {table: parts or PartSet() for table, parts in missing.items()}, known, self.timeout
        )
