"""A script as a group of tasks: a sensor for each stream, an operator for each view, wired as they read each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import TaskGroup

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.hooks.templates import add_subscripts, is_template
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.operators.viewdf import Changed, Incomplete, LateData, ViewDFOperator
from airflow_provider_viewdf.sensors.partition import DEFAULT_LOOKBACK, PartitionSensor

if TYPE_CHECKING:
    from airflow.sdk import DAG, BaseOperator


class ViewDFTaskGroup(TaskGroup):
    """Makes a `PartitionSensor` for each stream of a script and a `ViewDFOperator` for each view, and wires them.

    Streams are loaded elsewhere: by tasks before the group (`load_M >> group`), or by other DAGs. Those with a LOCATION need no
    loading: their sensors register what others have written.

    :param sql: the script, or a .sql file beside the DAG file or on the DAG's template_searchpath. It is read when the DAG is
        parsed, so its Jinja can use `i`, `j` and the params, not the dates of a run.
    :param late_data: as for `ViewDFOperator`; so are `batch_limit`, `incomplete`, `changed` and `restate_from`.
    :param lookback: as for `PartitionSensor`: how many earlier parts of external streams each run looks at again.
    :param show_helpers: make a task of each generated helper view too, rather than compute it in its view's task.
    :param params: params for the script, besides the DAG's.
    """

    def __init__(
        self,
        group_id: str,
        sql: str,
        *,
        late_data: LateData = "refresh",
        batch_limit: int = 100,
        changed: Changed = "refuse",
        restate_from: datetime | str | None = None,
        incomplete: Incomplete = "wait",
        show_helpers: bool = False,
        viewdf_conn_id: str = DEFAULT_CONNECTION,
        spark_conn_id: str | None = None,
        offset: int = 0,
        lookback: int = DEFAULT_LOOKBACK,
        deferrable: bool = True,
        timeout: timedelta | float | None = None,
        poll_interval: float = 5,
        params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(group_id=group_id, **kwargs)
        text = read_script(sql, self.dag)
        definitions = parse_script(render_script(text, self.dag, params or {}))
        shared: dict[str, Any] = {
            "sql": text,
            "viewdf_conn_id": viewdf_conn_id,
            "offset": offset,
            "deferrable": deferrable,
            "timeout": timeout,
            "params": dict(params or {}),
        }
        tasks: dict[str, BaseOperator] = {}
        with self:
            for item in definitions:
                if item.kind == "stream":
                    tasks[fold(item.name)] = PartitionSensor(
                        task_id=item.name, table=item.name, poke_interval=poll_interval, lookback=lookback, **shared
                    )
                elif item.kind == "view" and (show_helpers or not item.helper_of):
                    tasks[fold(item.name)] = ViewDFOperator(
                        task_id=item.name,
                        view=item.name,
                        spark_conn_id=spark_conn_id,
                        late_data=late_data,
                        batch_limit=batch_limit,
                        changed=changed,
                        restate_from=restate_from,
                        incomplete=incomplete,
                        poll_interval=poll_interval,
                        **shared,
                    )
        for name, upstream in find_edges(definitions, tasks):
            tasks[name].set_upstream([tasks[item] for item in upstream])


def read_script(sql: str, dag: DAG) -> str:
    """The text of a script that may be given as the name of a file."""
    if not sql.rstrip().endswith(".sql"):
        return sql
    places = [dag.folder, *(dag.template_searchpath or ())]
    for place in places:
        file = Path(place, sql)  # an absolute one stays what it is
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise UsageError(f"There is no file {sql} in {', '.join(str(place) for place in places)}.")


def render_script(text: str, dag: DAG, params: Mapping[str, Any]) -> str:
    """The script with `i` and `j` as symbols and the params filled in; the rest of a run's context is not known yet."""
    if not is_template(text):
        return text
    context = add_subscripts({"params": {**dag.params.dump(), **params}, "dag": dag})
    import jinja2

    try:
        return dag.get_template_env(force_sandboxed=True).from_string(text).render(context)
    except jinja2.UndefinedError as error:
        raise UsageError(
            f"The script of a task group is read when the DAG is parsed, so it can use i, j and params only: {error}."
        ) from None


def find_edges(definitions: Sequence[Definition], shown: Iterable[str]) -> list[tuple[str, list[str]]]:
    """For each view that has a task: the tasks before it. A view without one is looked through, to what it reads."""
    known = {fold(item.name): item for item in definitions}
    tasks = set(shown)

    def find_upstream(name: str, seen: set[str]) -> list[str]:
        found: list[str] = []
        for reference in known[name].references:
            other = fold(reference.table)
            if other in seen or other not in known:
                continue
            seen.add(other)
            found += [other] if other in tasks else find_upstream(other, seen)
        return found

    edges = [(fold(item.name), find_upstream(fold(item.name), {fold(item.name)})) for item in definitions]
    return [(name, upstream) for name, upstream in edges if name in tasks and upstream]
