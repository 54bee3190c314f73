"""The choice of a strategy, with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_viewdf.translate.window.frame import Frame
from airflow_provider_viewdf.translate.window.query import TakenApart

# Below, the jobs that make further views cost more than the parts that need not be read.
DELTA_WIDTH = 4
# With 1,000,000 rows a part in 100,000 groups: as long as merge for 60 parts, a fifth less for 100.
DYADIC_WIDTH = 60
# A part of which this share of rows are groups is hardly smaller when it is aggregated.
DENSE = 0.5


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the data: rows and groups per part of the source, 0 if nobody knows."""

    rows_per_part: float = 0.0
    groups_per_part: float = 0.0

    @property
    def is_dense(self) -> bool:
        return self.rows_per_part > 0 and self.groups_per_part > DENSE * self.rows_per_part


@dataclass(frozen=True, slots=True)
class Choice:
    strategy: str
    reason: str


def find_possible(query: TakenApart) -> dict[str, str]:
    """By strategy: why it cannot compute the query, or "" if it can."""
    if query.obstacle:
        merged = subtracted = query.obstacle
    else:
        inexact = [item.call.text for item in query.aggregates if not item.is_subtractable]
        merged = ""
        subtracted = f"{', '.join(inexact)} cannot be subtracted" if inexact else ""
    return {"delta": subtracted, "dyadic": merged, "merge": merged, "prefix": subtracted, "recompute": ""}


def choose_strategy(query: TakenApart, frame: Frame, facts: Facts) -> Choice:
    """The cheapest strategy by what is known.

    Never prefix: one late row changes every later part of its helper view, for ever.
    """
    possible = find_possible(query)
    if possible["merge"]:
        return Choice("recompute", f"{possible['merge']}.")
    if frame.width == 1:
        return Choice("recompute", "the window is a single part.")
    if not possible["delta"] and frame.width >= DELTA_WIDTH:
        return Choice(
            "delta",
            "all aggregates are of exact numbers and can be subtracted, so an update adds one part and takes one away, "
            "however long the window; late rows settle after one window.",
        )
    if facts.is_dense and possible["delta"]:
        return Choice("recompute", "almost every row is a group of its own, so aggregating parts first saves nothing.")
    why = f"{possible['delta']}, and " if possible["delta"] else ""
    if frame.width >= DYADIC_WIDTH:
        many = f"{frame.width} parts are many, so blocks of 8, 64, 512, ... of them are merged in advance"
        return Choice("dyadic", f"{why}{many}; late rows settle after one window.")
    return Choice("merge", f"{why}{frame.width} parts are few, so their partial aggregates are merged every time.")
