"""Timing several ways of doing one thing side by side, so that what the machine does meanwhile hits all of them."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

console = Console(highlight=False)

# Behind the name of a contestant that is timed twice in each round: how far its two medians lie apart is noise.
AGAIN = " (again)"


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a contestant took, in seconds, round by round."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def fastest(self) -> float:
        return min(self.seconds)

    @property
    def slowest(self) -> float:
        return max(self.seconds)

    def __add__(self, other: Timing) -> Timing:
        """Two things that one update consists of, done in the same rounds."""
        return Timing(self.name, tuple(a + b for a, b in zip(self.seconds, other.seconds, strict=True)))


@dataclass(frozen=True, slots=True)
class Ratio:
    """One contestant's time by another's: the median over the rounds, and the quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio_of(above: Timing, below: Timing) -> Ratio:
    """Round by round, since what slowed the one in a round has slowed the other too."""
    ratios = [a / b for a, b in zip(above.seconds, below.seconds, strict=True)]
    if len(ratios) < 2:
        return Ratio(ratios[0], ratios[0], ratios[0])
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(median, low, high)


def ratio_of_medians(above: Timing, below: Timing) -> Ratio:
    """Of things that were timed in one run, but in other rounds: with the farthest that the runs allow."""
    return Ratio(above.median / below.median, above.fastest / below.slowest, above.slowest / below.fastest)


def measure(
    contestants: Mapping[str, Callable[[int], object]],
    rounds: Sequence[int],
    *,
    pinned: int = 0,
    prepare: Callable[[int], object] | None = None,
) -> dict[str, Timing]:
    """Time all contestants in each round, one after the other, in another order each time.

    Whoever comes right after the round was prepared, or after someone who has used all memory, is slower for it: the orders are
    shuffled, the same way whenever this runs. The first `pinned` of them always come first, because the others build on them.
    `prepare` goes before each round, untimed.
    """
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number, item in enumerate(rounds):
        if prepare is not None:
            prepare(item)
        others = names[pinned:]
        random.Random(number).shuffle(others)
        for name in names[:pinned] + others:
            gc.collect()
            with stopwatch(seconds[name]):
                contestants[name](item)
        console.print(f"  round {number + 1} of {len(rounds)}", style="dim")
    return {name: Timing(name, tuple(found)) for name, found in seconds.items()}


@contextmanager
def stopwatch(seconds: list[float]) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - started)


def show(title: str, timings: Mapping[str, Timing], to: str) -> None:
    table = Table(title=escape(title), title_justify="left")
    for column in ("contestant", "median s", "fastest", "slowest", "runs", f"ratio to {to}"):
        table.add_column(column, justify="left" if column == "contestant" else "right")
    for name, item in timings.items():
        figures = (f"{item.median:.3f}", f"{item.fastest:.3f}", f"{item.slowest:.3f}", str(len(item.seconds)))
        table.add_row(escape(name), *figures, str(ratio_of(item, timings[to])))
    console.print(table)
