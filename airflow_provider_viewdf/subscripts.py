"""Subscript expressions: integer functions of one variable, and their exact inverse.

Every expression of integers, one variable, `+ - *`, and `/ %` by a constant is *quasi-linear*: there
are a period P and a rise R with f(x + P) = f(x) + R for all x. So whatever is asked about all of the
infinitely many parts (is it monotone? does the range ever run backwards? does it always point into
the past?) is answered by looking at one period, exactly.

A reference can be inverted when both its ends are monotone: the views' parts that read a given part
then form one range, found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartRange

# A period longer than this is no subscript anyone means; looking at all of it would take seconds.
LONGEST_PERIOD = 200_000


class NotQuasiLinear(Exception):
    """The expression multiplies or divides by something that varies, or divides by zero."""


@dataclass(frozen=True)
class Subscript:
    """An integer function f with f(x + period) = f(x) + rise. `text` is what the person wrote."""

    evaluate: Callable[[int], int] = field(compare=False, repr=False)
    period: int
    rise: int
    text: str

    @classmethod
    def constant(cls, value: int, text: str | None = None) -> Subscript:
        return cls(lambda x: value, 1, 0, text if text is not None else str(value))

    @classmethod
    def variable(cls, name: str) -> Subscript:
        return cls(lambda x: x, 1, 1, name)

    def __call__(self, x: int) -> int:
        return self.evaluate(x)

    def __str__(self) -> str:
        return self.text

    @property
    def is_constant(self) -> bool:
        return self.period == 1 and self.rise == 0

    def add(self, other: Subscript, text: str, sign: int = 1) -> Subscript:
        period = _bounded(math.lcm(self.period, other.period))
        rise = self.rise * (period // self.period) + sign * other.rise * (period // other.period)
        f, g = self.evaluate, other.evaluate
        return Subscript(lambda x: f(x) + sign * g(x), period, rise, text)

    def multiply(self, other: Subscript, text: str) -> Subscript:
        if not self.is_constant and not other.is_constant:
            raise NotQuasiLinear
        factor, f = (self(0), other) if self.is_constant else (other(0), self)
        g = f.evaluate
        if factor == 0:
            return Subscript.constant(0, text)
        return Subscript(lambda x: g(x) * factor, f.period, f.rise * factor, text)

    def divide(self, other: Subscript, text: str) -> Subscript:
        """Floor division, also of negative numbers."""
        divisor, f = self._divisor(other), self.evaluate
        if self.is_constant:
            return Subscript.constant(f(0) // divisor, text)
        scale = abs(divisor) // math.gcd(self.rise, divisor)
        period = _bounded(self.period * scale)
        return Subscript(lambda x: f(x) // divisor, period, self.rise * scale // divisor, text)

    def modulo(self, other: Subscript, text: str) -> Subscript:
        """The remainder that goes with floor division."""
        divisor, f = self._divisor(other), self.evaluate
        if self.is_constant:
            return Subscript.constant(f(0) % divisor, text)
        scale = abs(divisor) // math.gcd(self.rise, divisor)
        period = _bounded(self.period * scale)
        return Subscript(lambda x: f(x) % divisor, period, 0, text)

    @staticmethod
    def _divisor(other: Subscript) -> int:
        if not other.is_constant or other(0) == 0:
            raise NotQuasiLinear
        return other(0)

    @cached_property
    def direction(self) -> int | None:
        """1 if it never falls, -1 if it never rises, 0 if constant, None if it does both."""
        rises = falls = False
        before = self(0)
        for x in range(1, self.period + 1):
            now = self(x)
            rises, falls = rises or now > before, falls or now < before
            before = now
        if rises and falls:
            return None
        return 1 if rises else -1 if falls else 0

    def minimum_minus(self, other: Subscript, *, from_zero: bool = False) -> int | None:
        """The least value of self - other over all x (over x >= 0 with `from_zero`), None if there is none."""
        difference = self.add(other, "", sign=-1)
        if difference.rise < 0 or (difference.rise > 0 and not from_zero):
            return None
        return min(difference(x) for x in range(difference.period))

    def maximum_minus(self, other: Subscript, *, from_zero: bool = False) -> int | None:
        """The greatest value of self - other, as `minimum_minus` is the least."""
        least = other.minimum_minus(self, from_zero=from_zero)
        return None if least is None else -least

    def first_at_least(self, bound: int) -> int:
        """The smallest x with f(x) >= bound, for an f that never falls and does rise."""
        cycles = (bound - self(0)) // self.rise
        low, high = (cycles - 1) * self.period, (cycles + 2) * self.period
        while low < high:
            middle = (low + high) // 2
            if self(middle) >= bound:
                high = middle
            else:
                low = middle + 1
        return low

    def xs_at_most(self, bound: int) -> tuple[int, int]:
        """The x with f(x) <= bound as a span; empty if its first end is above its second."""
        direction = self.direction
        if direction == 0:
            return (EARLIEST, LATEST) if self(0) <= bound else (LATEST, EARLIEST)
        if direction == 1:
            return EARLIEST, self.first_at_least(bound + 1) - 1
        return self._negated.first_at_least(-bound), LATEST

    def xs_at_least(self, bound: int) -> tuple[int, int]:
        """The x with f(x) >= bound as a span; empty if its first end is above its second."""
        return self._negated.xs_at_most(-bound)

    @cached_property
    def _negated(self) -> Subscript:
        f = self.evaluate
        return Subscript(lambda x: -f(x), self.period, -self.rise, f"-({self.text})")


def inverse(low: Subscript, high: Subscript, read: PartRange) -> PartRange | None:
    """The x whose range low(x) .. high(x) shares a part with `read`. Both ends must be monotone."""
    a, b = low.xs_at_most(read.high)
    c, d = high.xs_at_least(read.low)
    first, last = max(a, c), min(b, d)
    return PartRange(first, last) if first <= last else None


def _bounded(period: int) -> int:
    if period > LONGEST_PERIOD:
        raise NotQuasiLinear
    return period
