"""Timing several ways of doing one thing side by side, so that what the machine does meanwhile hits all of them."""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

RESULTS = Path(__file__).parent / "results"

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one contestant took, in seconds: the median, the fastest and the slowest of its runs."""

    name: str
    median: float
    fastest: float
    slowest: float
    runs: int


def measure(
    contestants: Mapping[str, Callable[[int], object]], rounds: Sequence[int], *, pinned: int = 0
) -> list[Timing]:
    """Time all contestants in each round, one after the other, beginning with another one each time.

    The first `pinned` of them always come first, because the others build on them.
    """
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number, item in enumerate(rounds):
        others = names[pinned:]
        shift = number % len(others)
        for name in names[:pinned] + others[shift:] + others[:shift]:
            gc.collect()
            with stopwatch(seconds[name]):
                contestants[name](item)
    return [Timing(name, statistics.median(s), min(s), max(s), len(s)) for name, s in seconds.items()]


@contextmanager
def stopwatch(seconds: list[float]) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - started)


def ratio_of(timings: Sequence[Timing], name: str, to: str) -> float:
    by_name = {timing.name: timing for timing in timings}
    return by_name[name].median / by_name[to].median


def show(title: str, timings: Sequence[Timing], to: str) -> None:
    table = Table(title=escape(title), title_justify="left")
    for column in ("contestant", "median s", "fastest", "slowest", "runs", f"ratio to {to}"):
        table.add_column(column, justify="left" if column == "contestant" else "right")
    for item in timings:
        figures = (f"{item.median:.2f}", f"{item.fastest:.2f}", f"{item.slowest:.2f}", str(item.runs))
        table.add_row(item.name, *figures, f"{ratio_of(timings, item.name, to):.2f}")
    console.print(table)


def save(
    name: str, settings: Mapping[str, Any], timings: Mapping[str, Sequence[Timing]], goals: Sequence[Goal]
) -> Path:
    """Keep the figures with the machine, the versions and the date they belong to."""
    import pyspark

    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}.json"
    content = {
        "bench": name,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine()},
        "versions": {"python": platform.python_version(), "pyspark": pyspark.__version__},
        "settings": dict(settings),
        "timings": {title: [asdict(item) for item in items] for title, items in timings.items()},
        "goals": [asdict(goal) | {"is_met": goal.is_met} for goal in goals],
    }
    file.write_text(json.dumps(content, indent=2) + "\n")
    return file


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio that was measured, and what it should be: at most, or at least, a number."""

    what: str
    measured: float
    bound: float
    at_most: bool

    @property
    def is_met(self) -> bool:
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        return f"{'met   ' if self.is_met else 'missed'}  {self.what}: {self.measured:.2f} (goal {sign} {self.bound:g})"
