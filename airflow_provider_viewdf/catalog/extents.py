"""The existing parts of each table, as the few ranges that they usually are."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from airflow_provider_viewdf.catalog.spans import Spans
from airflow_provider_viewdf.catalog.tables import extents
from airflow_provider_viewdf.parts import PartRange, PartSet


def read_extents(connection: Connection, key: str, around: PartRange | None = None) -> PartSet:
    """The existing parts of a table, or those in the ranges that reach into `around`."""
    query = select(extents.c.low, extents.c.high).where(extents.c.table_key == key).order_by(extents.c.low)
    if around is not None:
        # Extents do not overlap, so at most one that begins before `around` reaches into it: start there, not at the
        # table's first.
        before = select(func.max(extents.c.low)).where(extents.c.table_key == key, extents.c.low <= around.low)
        start = func.coalesce(before.scalar_subquery(), around.low)
        query = query.where(extents.c.low >= start, extents.c.low <= around.high, extents.c.high >= around.low)
    return PartSet(tuple(PartRange(low, high) for low, high in connection.execute(query)))


class Extents:
    """The extents that one transaction looks at and lets grow."""

    def __init__(self, connection: Connection, around: dict[str, PartRange]) -> None:
        self._connection = connection
        self._stored = {key: set(read_extents(connection, key, box).ranges) for key, box in around.items()}
        self._spans = {key: Spans(sorted(ranges)) for key, ranges in self._stored.items()}

    def add(self, key: str, index: int) -> None:
        self._spans[key].add(PartRange(index, index))

    def cut(self, key: str, item: PartRange) -> list[PartRange]:
        """What exists of a range of parts."""
        return self._spans[key].within(item)

    def write(self) -> None:
        gone, new = [], []
        for key, spans in self._spans.items():
            after = set(spans)
            gone += [(key, item) for item in self._stored[key] - after]
            new += [(key, item) for item in after - self._stored[key]]
        if gone:
            self._connection.execute(
                delete(extents).where(extents.c.table_key == bindparam("key"), extents.c.low == bindparam("from")),
                [{"key": key, "from": item.low} for key, item in gone],
            )
        if new:
            rows = [{"table_key": key, "low": item.low, "high": item.high} for key, item in new]
            self._connection.execute(insert(extents), rows)
