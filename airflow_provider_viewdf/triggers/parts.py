"""Waits, in the triggerer, until parts are there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_viewdf.errors import ExternalFilesError, UnknownTableError
from airflow_provider_viewdf.hooks.viewdf import ViewDFHook, WarehouseAddress, open_warehouse
from airflow_provider_viewdf.parts import PartRange, PartSet

if TYPE_CHECKING:
    from airflow_provider_viewdf.warehouse import Warehouse


class PartsTrigger(BaseTrigger):
    """Fires when all of the wanted parts exist and none of them is stale, or when the deadline has passed.

    The event says which of the two; whoever is woken looks for itself what is still missing.

    :param wanted: by table, ranges of subscripts as [low, high] pairs; None: until the table is defined.
    :param deadline: Unix time in seconds, so that a trigger that moves to another triggerer keeps it.
    """

    def __init__(
        self,
        viewdf_conn_id: str,
        wanted: Mapping[str, list[list[int]] | None],
        deadline: float,
        poll_interval: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.viewdf_conn_id = viewdf_conn_id
        self.wanted = dict(wanted)
        self.deadline = deadline
        self.poll_interval = poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "viewdf_conn_id": self.viewdf_conn_id,
                "wanted": self.wanted,
                "deadline": self.deadline,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        address = await ViewDFHook(self.viewdf_conn_id).afind_warehouse()
        wanted = {table: None if ranges is None else unpack_parts(ranges) for table, ranges in self.wanted.items()}
        while True:
            # The catalog is read by plain, blocking calls: in a thread, so that other triggers go on.
            if await asyncio.to_thread(are_ready, address, wanted):
                yield TriggerEvent({"status": "ready"})  # type: ignore[no-untyped-call]
                return
            remaining = self.deadline - time.time()
            if remaining <= 0:
                yield TriggerEvent({"status": "timeout"})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(min(self.poll_interval, remaining))


def are_ready(address: WarehouseAddress, wanted: Mapping[str, PartSet | None]) -> bool:
    """Whether every wanted part exists and is not stale. A table that is not defined has no parts yet.

    The files of an external stream are looked at, and what is there is registered.
    """
    with open_warehouse(address) as warehouse:
        try:
            return not any(find_unready(warehouse, table, parts or PartSet()) for table, parts in wanted.items())
        except UnknownTableError:
            return False
        except ExternalFilesError:
            return True  # whoever is woken looks for itself, and says in the task's own log what is wrong


def find_unready(warehouse: Warehouse, table: str, parts: PartSet) -> PartSet:
    """Of these parts, those that do not exist, or are stale; of an external stream, those that are not there or complete."""
    if parts and warehouse.is_external(table):
        return warehouse.look(table, parts=parts).missing
    return warehouse.unready_parts(table, parts)


def pack_parts(parts: PartSet) -> list[list[int]]:
    """Parts as JSON values."""
    return [[item.low, item.high] for item in parts.ranges]


def unpack_parts(ranges: list[list[int]]) -> PartSet:
    return PartSet.of(PartRange(low, high) for low, high in ranges)
