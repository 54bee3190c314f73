"""A set of parts that changes often: sorted ranges, searched by halving."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from airflow_provider_viewdf.parts import PartRange


class Spans:
    """Ranges of subscripts that neither overlap nor touch. A change costs little even among many thousands."""

    def __init__(self, ranges: Iterable[PartRange] = ()) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        for item in ranges:
            self.add(item)

    def add(self, item: PartRange) -> None:
        """Unite with a range, joining the ranges that it overlaps or touches."""
        first, end = self._positions(item.low - 1, item.high + 1)
        low, high = item.low, item.high
        if first < end:
            low, high = min(low, self._lows[first]), max(high, self._highs[end - 1])
        self._lows[first:end] = [low]
        self._highs[first:end] = [high]

    def remove(self, item: PartRange) -> None:
        """Take a range out, splitting the range around it if need be."""
        first, end = self._positions(item.low, item.high)
        if first == end:
            return
        rest = []
        if self._lows[first] < item.low:
            rest.append((self._lows[first], item.low - 1))
        if self._highs[end - 1] > item.high:
            rest.append((item.high + 1, self._highs[end - 1]))
        self._lows[first:end] = [low for low, _ in rest]
        self._highs[first:end] = [high for _, high in rest]

    def within(self, item: PartRange) -> list[PartRange]:
        """What of the set lies in a range."""
        first, end = self._positions(item.low, item.high)
        return [
            PartRange(max(low, item.low), min(high, item.high))
            for low, high in zip(self._lows[first:end], self._highs[first:end], strict=True)
        ]

    def _positions(self, low: int, high: int) -> tuple[int, int]:
        return bisect_left(self._highs, low), bisect_right(self._lows, high)

    def __iter__(self) -> Iterator[PartRange]:
        return (PartRange(low, high) for low, high in zip(self._lows, self._highs, strict=True))

    def __len__(self) -> int:
        """The number of ranges, not of parts."""
        return len(self._lows)
