"""Named points in the work at which a test can have its process die, or stop.

Nothing but a test calls `arm`, and neither a setting nor the environment can: unarmed, `reach` compares with None and returns.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "load: staged",
    "load: written",
    "load: moved",
    "load: published",
    "declare empty: recorded",
    "look: listed",
    "look: published",
    "refresh: leased",
    "refresh: computed",
    "refresh: published",
    "refresh many: leased",
    "refresh many: computed",
    "refresh many: moved",
    "refresh many: published",
    "publish: in the transaction",
    "publish: committed",
    "apply: saved",
    "roll up: written",
    "roll up: moved",
    "retire: archived",
    "gc: helpers retired",
    "gc: directory removed",
    "gc: versions forgotten",
    "gc: places forgotten",
    "gc: writers ended",
    "gc: orphan removed",
    "migrate: begun",
    "migrate: tables made",
    "migrate: committed",
)

_armed: str | None = None
_left = 0
_signal = signal.SIGKILL


def arm(point: str, times: int = 1, by: signal.Signals = signal.SIGKILL) -> None:
    """Have this process send itself a signal when it reaches a point for the so-manieth time. For tests only."""
    global _armed, _left, _signal
    if point not in POINTS:
        raise ValueError(f"There is no fail point {point!r}.")
    _armed, _left, _signal = point, times, by


def reach(point: str) -> None:
    """Say that the work has come to a point."""
    if _armed is None:
        return
    _count_down(point)


def _count_down(point: str) -> None:
    global _left
    if point == _armed:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), _signal)
