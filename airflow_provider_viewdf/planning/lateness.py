"""Which rows of a batch are late, and which are too late for their stream.

A batch is never late for the time that it says it covers: loading history, or the interval of a cleared run, is what it is
for. Its other rows are as late as the end of their part lies before the end of what the batch covers. A batch that does not
say what it covers is measured against the newest part that other batches had brought when it first came; the very first one is
therefore never late. No clock is asked, so a replay judges as the first load did.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_viewdf.definitions import LateRows
from airflow_provider_viewdf.parts import Partitioning, PartSet


@dataclass(frozen=True, slots=True)
class Lateness:
    """Of the parts that a batch has rows for: those that are late, and of them those that are too late to be taken.

    `newest` is the part against which that was measured; None if there was none.
    """

    late: PartSet = field(default_factory=PartSet)
    too_late: PartSet = field(default_factory=PartSet)
    newest: int | None = None


def judge_parts(
    policy: LateRows,
    partitioning: Partitioning,
    rows: PartSet,
    *,
    covers: PartSet,
    newest_before: int | None,
    taken_before: PartSet,
) -> Lateness:
    """`rows` are the parts that the batch has rows for, `covers` what it says it covers, if it does.

    `newest_before` is the newest part that there was, apart from the batch's own, when it first came.
    `taken_before` is where the same batch has brought rows earlier: it may replace those, however late they are.
    """
    newest = covers.last if covers else newest_before
    if newest is None:
        return Lateness()
    late = (rows - covers) & PartSet.between(rows.first, newest - 1) if rows else PartSet()
    if policy.action == "refresh":
        return Lateness(late, newest=newest)
    limit = partitioning.end_seconds(newest) - policy.after_seconds
    too_late = PartSet.of_indexes(index for index in late - taken_before if partitioning.end_seconds(index) < limit)
    return Lateness(late, too_late, newest)
