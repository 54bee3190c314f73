"""States: what the helper views keep of an aggregate, so that parts can be put together, and some be taken away again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class State:
    """A column of a helper view.

    `rows` computes it from rows of the source, `combine` puts those of several parts together ({} stands for the column).
    An additive state is a number of an exact `type` that is never NULL: states can be added, and subtracted too.
    """

    name: str
    rows: str
    combine: str
    type: str = ""
    is_additive: bool = False
    # Values of BIGINT can add up to more than BIGINT holds while the window slides, though not at its ends.
    is_wide: bool = False

    def add(self, column: str, type_name: str = "") -> str:
        """The sum of additive states, of this type or the state's own."""
        if not self.is_additive:
            return self.combine.format(column)
        wanted = type_name or self.type
        if wanted == "BIGINT":
            inner = f"CAST({column} AS DECIMAL(20, 0))" if self.is_wide else column
            total = f"coalesce(sum({inner}), 0)"
            return f"CAST({total} AS BIGINT)" if self.is_wide else total
        inner = f"CAST({column} AS {type_name})" if type_name else column
        return f"CAST(coalesce(sum({inner}), 0) AS {wanted})"

    @property
    def total_type(self) -> str:
        """The type for sums over all time, which no window bounds."""
        if self.type == "BIGINT":
            return "DECIMAL(38, 0)" if self.is_wide else "BIGINT"
        scale = self.type.rstrip(")").split(", ")[1]
        return f"DECIMAL(38, {scale})"


# Every helper view counts rows: a group is in the window as long as it has some.
ROWS = State("row_count", "count(*)", "sum({})", "BIGINT", is_additive=True)


def name_state(prefix: str, subject: str, is_plain: bool) -> str:
    """`sum_loss` for a plain column; anything else is told apart by a few letters of its digest."""
    if is_plain and PLAIN_NAME.fullmatch(subject):
        return f"{prefix}_{subject.lower()}"
    return f"{prefix}_{short_digest(subject)}"


def short_digest(text: str) -> str:
    # Begins with a letter, so that it never looks like the number of a part.
    return f"h{hashlib.sha256(text.encode()).hexdigest()[:7]}"


def union_of_states(groups: Sequence[Sequence[State]]) -> tuple[State, ...]:
    """Every state once, in the order in which they are first needed, after the count of rows."""
    found = {ROWS.name: ROWS}
    for states in groups:
        for state in states:
            found.setdefault(state.name, state)
    return tuple(found.values())
