"""The recorded stale ranges, and how they grow and shrink."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, delete, insert, select

from airflow_provider_viewdf.catalog.spans import Spans
from airflow_provider_viewdf.catalog.tables import stale_ranges
from airflow_provider_viewdf.parts import PartRange

# Where this many ranges are recorded, a further reason is recorded only for parts that have none yet. So however
# often late data comes, the ranges stay few; which parts are stale is never lost, only the later reasons are.
FULL = 200


class Staleness:
    """The stale ranges that one transaction looks at and changes: those that reach into the given boxes."""

    def __init__(self, connection: Connection, around: dict[str, PartRange]) -> None:
        self._connection = connection
        self._stored: dict[tuple[str, str, PartRange], list[int]] = {}
        self._spans: dict[str, dict[str, Spans]] = {key: {} for key in around}
        for key, box in around.items():
            self._load(key, box)

    def _load(self, key: str, box: PartRange) -> None:
        query = select(stale_ranges).where(
            stale_ranges.c.table_key == key, stale_ranges.c.low <= box.high, stale_ranges.c.high >= box.low
        )
        for row in self._connection.execute(query):
            item = PartRange(row.low, row.high)
            self._stored.setdefault((key, row.reason, item), []).append(row.id)
            self._spans[key].setdefault(row.reason, Spans()).add(item)

    def add(self, key: str, ranges: Iterable[PartRange], reason: str) -> None:
        """Record parts as stale, or more of them for a reason that is there already."""
        reasons = self._spans[key]
        if sum(len(spans) for spans in reasons.values()) >= FULL:
            ranges = self._not_yet_stale(key, ranges)
        for item in ranges:
            reasons.setdefault(reason, Spans()).add(item)

    def _not_yet_stale(self, key: str, ranges: Iterable[PartRange]) -> list[PartRange]:
        fresh = Spans(ranges)
        for spans in self._spans[key].values():
            for item in list(fresh):
                for covered in spans.within(item):
                    fresh.remove(covered)
        return list(fresh)

    def remove(self, key: str, index: int) -> None:
        """A part is up to date again."""
        for spans in self._spans[key].values():
            spans.remove(PartRange(index, index))

    def write(self) -> None:
        after = {
            (key, reason, item)
            for key, reasons in self._spans.items()
            for reason, spans in reasons.items()
            for item in spans
        }
        gone = [{"gone": number} for found, numbers in self._stored.items() if found not in after for number in numbers]
        # A set has no order of its own, and rows that come in the same order are easier to follow.
        new = sorted(after - self._stored.keys())
        if gone:
            self._connection.execute(delete(stale_ranges).where(stale_ranges.c.id == bindparam("gone")), gone)
        if new:
            self._connection.execute(
                insert(stale_ranges),
                [{"table_key": key, "low": item.low, "high": item.high, "reason": reason} for key, reason, item in new],
            )
