"""The strategies for a sliding window, as what has to be combined for each part. Who combines is another matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# How many blocks of the dyadic strategy make the next larger one.
FANOUT = 8


@dataclass(frozen=True, slots=True)
class Combine:
    """Make one table of states from others: those added up (or the greatest of them), less those that left the window."""

    name: str
    plus: Sequence[str]
    minus: str | None = None


def list_steps(strategy: str, window: int, number: int) -> list[Combine]:
    """What follows, for part `number`, when the partial aggregates `p<number>` of the part are there."""
    if strategy == "delta":
        return [_delta(window, number)]
    if strategy == "prefix":
        return _prefix(window, number)
    if strategy == "dyadic":
        return _dyadic(window, number)
    return [_merge(window, number)]


def _merge(window: int, number: int) -> Combine:
    return Combine(f"view{number}", [f"p{index}" for index in range(max(0, number - window + 1), number + 1)])


def _delta(window: int, number: int) -> Combine:
    if number < window:
        return _merge(window, number)
    return Combine(f"view{number}", [f"view{number - 1}", f"p{number}"], f"p{number - window}")


def _prefix(window: int, number: int) -> list[Combine]:
    total = Combine(f"prefix{number}", [f"prefix{number - 1}", f"p{number}"] if number else ["p0"])
    expired = f"prefix{number - window}" if number >= window else None
    return [total, Combine(f"view{number}", [total.name], expired)]


def _dyadic(window: int, number: int) -> list[Combine]:
    steps, size = [], 1
    while 2 * size * FANOUT <= window:
        if number - size * FANOUT + 1 >= 0:
            smaller = [_block(size, number - size * back) for back in range(FANOUT)]
            steps.append(Combine(_block(size * FANOUT, number), smaller))
        size *= FANOUT
    if number < window - 1:
        return steps
    blocks, behind = [], 0
    while size:
        while behind + size <= window:
            blocks.append(_block(size, number - behind))
            behind += size
        size //= FANOUT
    return [*steps, Combine(f"view{number}", blocks)]


def _block(size: int, number: int) -> str:
    return f"p{number}" if size == 1 else f"block{size}_{number}"
