"""The version numbers that one transaction reads and moves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection

from airflow_provider_viewdf.catalog.inputs import digest_inputs, parts_of_inputs
from airflow_provider_viewdf.catalog.reader import read_numbers
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import InputRange


class VersionNumbers:
    """Current version numbers of the parts in some sets, read once and kept up to date in memory.

    So publishing thousands of parts reads each number once, and each publication sees what those before it did.
    """

    def __init__(self, connection: Connection, needed: Mapping[str, PartSet]) -> None:
        self._current: dict[str, dict[int, int]] = {}
        self._last: dict[str, dict[int, int]] = {}
        self._indexes: dict[str, list[int]] = {}
        for key, parts in needed.items():
            numbers = list(read_numbers(connection, key, parts))
            self._current[key] = {index: version for index, version, _ in numbers if version is not None}
            self._last[key] = {index: last for index, _, last in numbers}
            self._indexes[key] = list(self._current[key])

    def current(self, key: str, index: int) -> int | None:
        return self._current[key].get(index)

    def next(self, key: str, index: int) -> int:
        """Give a part a new version number, one that it never had."""
        number = self._last[key].get(index, 0) + 1
        if index not in self._current[key]:
            insort(self._indexes[key], index)
        self._current[key][index] = self._last[key][index] = number
        return number

    def digest(self, inputs: Sequence[InputRange]) -> str:
        return digest_inputs(self._in_ranges(inputs))

    def _in_ranges(self, inputs: Sequence[InputRange]) -> Iterator[tuple[str, int, int]]:
        for key, parts in parts_of_inputs(inputs).items():
            indexes, current = self._indexes[key], self._current[key]
            for item in parts.ranges:
                for index in indexes[bisect_left(indexes, item.low) : bisect_right(indexes, item.high)]:
                    yield key, index, current[index]
