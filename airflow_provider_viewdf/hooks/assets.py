"""The assets of tables and views, and the events that tell which of their parts have a new content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.exceptions import AirflowRuntimeError

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.hooks.viewdf import DEFAULT_CONNECTION, find_producer
from airflow_provider_viewdf.versions import PartVersion

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from airflow_provider_viewdf.warehouse import Warehouse

# A task that was deferred may go on on another machine, whose clock differs.
CLOCK_TOLERANCE = timedelta(minutes=5)
MOST_SHARED_PARTS = 100
LONGEST_REASON = 500

REASON_FORGOTTEN = "computed earlier by this task"

# Under this key of Airflow's task state store, which outlives a try, stands since which try there are parts without events.
UNANNOUNCED = "viewdf_unannounced"

Reasons = Mapping[tuple[str, int], str]


def name_asset(view: str, viewdf_conn_id: str) -> Asset:
    """The asset of a view: named after it and, in another warehouse than the default one, after the connection too.

    Its URI is its name, so that a DAG which writes `schedule=[Asset("View2")]` means this asset: two URIs of one name
    would make Airflow deactivate one of the two.
    """
    return Asset(view if viewdf_conn_id == DEFAULT_CONNECTION else f"{view}@{viewdf_conn_id}")


@dataclass(frozen=True, slots=True)
class PartNews:
    """A part with a new content, as its event tells it."""

    key: str
    rows: int
    version: int
    reason: str

    def to_extra(self) -> dict[str, Any]:
        return {"rows": self.rows, "version": self.version, "changed": True, "reason": self.reason[:LONGEST_REASON]}


def find_news(
    warehouse: Warehouse,
    context: Mapping[str, Any],
    started_at: float,
    reasons: Reasons,
    otherwise: str = REASON_FORGOTTEN,
) -> dict[str, list[PartNews]]:
    """By table or view, the parts whose current version this try of the task has published, also before it was deferred;
    and those of earlier tries that did not live to tell."""
    me = find_producer(context)
    first_try, began_at = (_recall(context) if me.try_number > 1 else None) or (me.try_number, started_at)
    since = datetime.fromtimestamp(min(started_at, began_at), UTC) - CLOCK_TOLERANCE
    ours = {str(replace(me, try_number=number)) for number in range(first_try, me.try_number + 1)}
    mine = [version for version in warehouse.changed_since(since) if version.produced_by in ours]
    definitions = {fold(item.name): item for item in warehouse.definitions()}
    found: dict[str, list[PartNews]] = {}
    for version in sorted(mine, key=lambda item: (fold(item.table), item.index)):
        definition = definitions.get(fold(version.table))
        if definition is not None:
            reason = reasons.get((fold(version.table), version.index), otherwise)
            found.setdefault(definition.name, []).append(_tell(definition, version, reason))
    return found


def remember_unannounced(context: Mapping[str, Any], started_at: float) -> None:
    """Note that there are parts without events from now on, for the next try to find if this one does not end well."""
    store = context.get("task_state_store")  # Airflow 3.3 and later
    if store is not None and _recall(context) is None:
        with suppress(AirflowRuntimeError):
            store.set(UNANNOUNCED, [find_producer(context).try_number, started_at])


def forget_unannounced(context: Mapping[str, Any]) -> None:
    """All that was published has its event, if the task ends well."""
    store = context.get("task_state_store")
    if store is not None:
        with suppress(AirflowRuntimeError):
            store.delete(UNANNOUNCED)


def _recall(context: Mapping[str, Any]) -> tuple[int, float] | None:
    """The try that left a note, and when it began."""
    store = context.get("task_state_store")
    if store is None:
        return None
    with suppress(AirflowRuntimeError):
        found = store.get(UNANNOUNCED)
        return None if found is None else (int(found[0]), float(found[1]))
    return None


def _tell(definition: Definition, version: PartVersion, reason: str) -> PartNews:
    return PartNews(definition.partitioning.format(version.index), version.rows, version.version, reason)


def announce(context: Context, task: BaseOperator, asset: Asset, news: Sequence[PartNews]) -> None:
    """Make an event of an asset for each of these parts, when the task ends well; none, if there are no such parts."""
    if not news:
        # Airflow makes an event for every outlet that the task has when it ends.
        task.outlets = [item for item in task.outlets if item != asset]
        return
    if asset not in task.outlets:
        task.outlets = [*task.outlets, asset]
    events = context["outlet_events"]
    if len(news) > 1 and _announce_each(events, asset, news):
        return
    event = events[asset]
    event.extra = news[0].to_extra() if len(news) == 1 else _share(news)
    if hasattr(event, "add_partitions"):  # Airflow 3.2 and later
        event.add_partitions([item.key for item in news])


class _EventKey(AssetUniqueKey):
    """An asset's key that equals no other: Airflow keeps one extra for each key, and each part is to have its own."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def _announce_each(events: Any, asset: Asset, news: Iterable[PartNews]) -> bool:
    """Give each part's event an extra of its own. False if this Airflow keeps events in another way than we know."""
    from airflow.sdk.execution_time.context import OutletEventAccessor

    kept = getattr(events, "_dict", None)
    if not isinstance(kept, dict) or not hasattr(OutletEventAccessor, "add_partitions"):
        return False
    for item in news:
        key = _EventKey(name=asset.name, uri=asset.uri)
        kept[key] = OutletEventAccessor(key=key, extra=item.to_extra(), partition_keys={item.key})
    return True


def _share(news: Sequence[PartNews]) -> dict[str, Any]:
    """One extra for the events of all parts: their sum, and the newest of them one by one."""
    return {
        "rows": sum(item.rows for item in news),
        "changed": True,
        "parts": {item.key: item.to_extra() for item in news[-MOST_SHARED_PARTS:]},
    }
