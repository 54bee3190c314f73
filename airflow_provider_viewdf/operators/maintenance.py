"""Looks after a warehouse: archives what is old, rolls up what is small, and removes what nobody reads any more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION, ViewDFHook, find_producer

if TYPE_CHECKING:
    from airflow.sdk import Context


class ViewDFMaintenanceOperator(BaseOperator):
    """Archives, rolls up and cleans up, in this order. Each is safe at any time, beside any other task.

    :param retire: archive the parts that are older than the RETAIN of their table or view.
    :param roll_up: put small old parts into few files: a day of minutes into one file set.
    :param gc: delete the files of replaced, rolled up and archived parts, and what crashed writes left behind.
    :param tables: which tables and views to archive and roll up. Default: all.
    :param span: the time whose parts are put together.
    :param older_than: what is newer than this, counted from the newest part, is not rolled up.
    :param grace: files that were of use less than this long ago are not deleted, so that running queries keep theirs.
    """

    template_fields: Sequence[str] = ("tables", "viewdf_conn_id", "spark_conn_id")
    ui_color = "#e6e0d4"

    def __init__(
        self,
        *,
        retire: bool = True,
        roll_up: bool = True,
        gc: bool = True,
        tables: Sequence[str] | None = None,
        span: timedelta | str = "1 day",
        older_than: timedelta | str = "1 day",
        grace: timedelta = timedelta(hours=24),
        viewdf_conn_id: str = DEFAULT_CONNECTION,
        spark_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not (retire or roll_up or gc):
            raise UsageError(f"Task {self.task_id} is to do nothing; leave one of retire, roll_up and gc as True.")
        self.retire, self.roll_up, self.gc = retire, roll_up, gc
        self.tables = tables
        self.span, self.older_than, self.grace = span, older_than, grace
        self.viewdf_conn_id = viewdf_conn_id
        self.spark_conn_id = spark_conn_id
        self._hook: ViewDFHook | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        self._hook = ViewDFHook(self.viewdf_conn_id, self.spark_conn_id, find_producer(context))
        report: dict[str, Any] = {}
        with self._hook.working_warehouse() as warehouse:
            if self.retire:
                retired = warehouse.retire(self.tables)
                for item in retired.tables:
                    held = f"; older parts are kept, since {item.held_because}" if item.held_because else ""
                    self.log.info("%s: %d parts archived%s.", item.table, len(item.parts), held)
                report["archived"] = retired.parts
            if self.roll_up:
                rolled = warehouse.roll_up(self.tables, span=self.span, older_than=self.older_than)
                for done in (*rolled.rolled, *rolled.left):
                    outcome = f"left as they were: {done.left_because}" if done.left_because else "rolled up"
                    self.log.info("%s[%s]: %d parts %s.", done.table, done.parts, len(done.parts), outcome)
                report["rolled_up"] = rolled.parts
            if self.gc:
                cleaned = warehouse.gc(self.grace)
                report |= {"versions_removed": cleaned.versions, "leftovers_removed": cleaned.orphans}
        self.log.info("%s", ", ".join(f"{what}: {count}" for what, count in report.items()))
        return report

    def on_kill(self) -> None:
        """Let go of Spark. Nothing is half done: files come first, and the catalog follows in one transaction."""
        if self._hook is not None:
            self._hook.release_spark(stop=True)
