"""What several processes did and saw, written down while it happened, and what must be true of it.

Each loader has a batch of its own, with one row in every part, and loads it again and again with the next number: the number of
a row says which load brought it. Time is the machine's monotonic clock, which all of its processes share.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# By table, part and loader: a number.
Numbers = dict[tuple[str, int, str], int]


@dataclass(frozen=True)
class Load:
    """A load of a loader's number, from the call to the return."""

    loader: str
    number: int
    began: float
    ended: float


@dataclass(frozen=True)
class Read:
    """What one query saw of three tables: rows of table, part, loader, number."""

    reader: str
    began: float
    ended: float
    rows: tuple[tuple[str, int, str, int], ...]


class Diary:
    """Where one process writes down what it does."""

    def __init__(self, path: str, who: str) -> None:
        self._path = Path(path) / f"{who.replace(' ', '-')}.jsonl"
        self.who = who

    def note(self, kind: str, **facts: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"who": self.who, "kind": kind, "at": time.monotonic(), **facts}) + "\n")


def read_diaries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(path.glob("*.jsonl")) for line in file.read_text().splitlines()]


def find_loads(events: Iterable[dict[str, Any]]) -> list[Load]:
    return [Load(item["who"], item["number"], item["began"], item["at"]) for item in events if item["kind"] == "loaded"]


def find_reads(events: Iterable[dict[str, Any]]) -> list[Read]:
    return [
        Read(item["who"], item["began"], item["at"], tuple(tuple(row) for row in item["rows"]))
        for item in events
        if item["kind"] == "read"
    ]


def check_history(loads: Sequence[Load], reads: Sequence[Read], parts: int) -> None:
    """Every read saw one state of all tables; later reads saw later states; and none missed a load that had ended."""
    loaders = sorted({load.loader for load in loads})
    last: dict[str, Numbers] = {}
    for read in sorted(reads, key=lambda item: item.began):
        numbers = _check_read(read, loaders, parts)
        for key, number in last.get(read.reader, {}).items():
            assert numbers.get(key, 0) >= number, f"{read.reader} saw {key} go back from {number} to {numbers.get(key)}"
        last[read.reader] = numbers
        for loader in loaders:
            mine = [load for load in loads if load.loader == loader]
            least = max((load.number for load in mine if load.ended < read.began), default=0)
            most = max((load.number for load in mine if load.began < read.ended), default=0)
            seen = numbers.get(("S", 0, loader), 0)
            assert least <= seen <= most, f"{read.reader} saw load {seen} of {loader}, not one of {least} to {most}"


def _check_read(read: Read, loaders: Sequence[str], parts: int) -> Numbers:
    numbers: Numbers = {}
    for table, part, loader, number in read.rows:
        assert (table, part, loader) not in numbers, f"{read.reader} saw two rows of {loader} in {table}[{part}]"
        numbers[table, part, loader] = number
    for loader in loaders:
        column = {numbers.get(("S", part, loader), 0) for part in range(parts)}
        assert len(column) == 1, f"{read.reader} saw pieces of the loads {sorted(column)} of {loader}"
        total = 0
        for part in range(parts):
            source, copy = numbers.get(("S", part, loader), 0), numbers.get(("Copy", part, loader), 0)
            assert copy <= source, f"{read.reader} saw Copy[{part}] ahead of S[{part}]"
            total += copy
            chain = numbers.get(("Chain", part, loader), 0)
            assert chain <= total, f"{read.reader} saw Chain[{part}] ahead of what it is made from"
    return numbers
