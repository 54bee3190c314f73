"""The geometry of a window: how long its parts are, and which parts of the tables below it it covers."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """A window that slides by `view_seconds`, over a source with parts of `source_seconds`.

    Helper views have parts of `base_seconds`, which divides window and slide: the slide itself if it divides the window.
    """

    source_seconds: int
    view_seconds: int
    window_seconds: int
    is_partial: bool

    @property
    def base_seconds(self) -> int:
        return math.gcd(self.view_seconds, self.window_seconds)

    @property
    def width(self) -> int:
        """How many parts of a helper view a window has."""
        return self.window_seconds // self.base_seconds

    def at(self, variable: str, back: int = 0) -> str:
        """The subscript of the helper part that ends with part `variable` of the view, or of one so many before it."""
        return shift(variable, self.view_seconds // self.base_seconds, back)

    def covered(self, variable: str) -> str:
        """The subscript of all helper parts in the window."""
        return self._range(self.at(variable, self.width - 1), self.at(variable))

    def covered_source(self, variable: str) -> str:
        """The subscript of all parts of the source in the window."""
        steps = self.view_seconds // self.source_seconds
        width = self.window_seconds // self.source_seconds
        return self._range(shift(variable, steps, width - 1), shift(variable, steps))

    def within_base(self, variable: str) -> str:
        """The subscript of the parts of the source in one part of a helper view."""
        steps = self.base_seconds // self.source_seconds
        low, high = shift(variable, steps, steps - 1), shift(variable, steps)
        return low if steps == 1 else f"{low} .. {high}"

    def _range(self, low: str, high: str) -> str:
        if low == high:
            return high
        return f"{low} .. {high} PARTIAL" if self.is_partial else f"{low} .. {high}"


def shift(variable: str, steps: int, back: int = 0) -> str:
    """`j * steps + steps - 1 - back`, the last of `steps` shorter parts or one before it, as short as it can be written."""
    offset = steps - 1 - back
    product = variable if steps == 1 else f"{variable} * {steps}"
    return product if offset == 0 else f"{product} {'-' if offset < 0 else '+'} {abs(offset)}"
