"""Queries by ranges of parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from sqlalchemy import ColumnElement, Table, and_, or_

from airflow_provider_viewdf.parts import PartRange, PartSet

# Few enough for any database's limit on the size of a statement.
RANGES_PER_STATEMENT = 100


def conditions(table: Table, key: str, parts: PartSet) -> Iterator[ColumnElement[bool]]:
    """A row belongs to these parts of a table, as conditions for one statement each; their answers follow in order."""
    ranges = iter(parts.ranges)
    while chunk := list(islice(ranges, RANGES_PER_STATEMENT)):
        # The name stands in every term: only then does SQLite search the index once for each, instead of
        # walking through all that lies between the first range and the last.
        yield or_(*(and_(table.c.table_key == key, table.c.part_index.between(item.low, item.high)) for item in chunk))


def bounds(ranges: Iterable[PartRange]) -> PartRange | None:
    """The smallest range around some ranges and their neighbours, with which they may merge."""
    low: int | None = None
    high: int | None = None
    for item in ranges:
        low = item.low if low is None else min(low, item.low)
        high = item.high if high is None else max(high, item.high)
    return None if low is None or high is None else PartRange(low - 1, high + 1)
