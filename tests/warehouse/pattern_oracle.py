"""Patterns in plain Python: every stretch of every sequence is tried, and every way of binding it.

Shares no code with the package. A pattern is written here as nested tuples:
    ("a",)  ("seq", p, q)  ("alt", p, q)  ("rep", p, least, most)     most None: without end
A predicate is a text of the language, the variable it is checked at, and a Python function of the rows bound so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Pattern = tuple[Any, ...]


@dataclass(frozen=True)
class Bound:
    """The rows that are bound so far, the current one last; the variable of each."""

    rows: tuple[Row, ...]
    names: tuple[str, ...]

    def of(self, name: str) -> list[Row]:
        return [row for row, bound in zip(self.rows, self.names) if bound == name]

    def last(self, name: str, column: str) -> Any:
        rows = self.of(name)
        return rows[-1][column] if rows else None

    def first(self, name: str, column: str) -> Any:
        rows = self.of(name)
        return rows[0][column] if rows else None


@dataclass(frozen=True)
class Check:
    text: str
    variable: str
    holds: Callable[[Bound], bool | None] = field(compare=False)
    from_second: bool = False


def write(pattern: Pattern, inside: bool = False) -> str:
    match pattern:
        case ("seq", *items):
            text = ", ".join(write(item, True) for item in items)
            return f"({text})" if inside else text
        case ("alt", *items):
            return "(" + " | ".join(write(item, True) for item in items) + ")"
        case ("rep", item, 0, None):
            return write(item, True) + "*"
        case ("rep", item, 1, None):
            return write(item, True) + "+"
        case ("rep", item, 0, 1):
            return write(item, True) + "?"
        case ("rep", item, least, most):
            return write(item, True) + (
                f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
            )
    return str(pattern[0])


def number(pattern: Pattern, counter: list[int]) -> Pattern:
    """The pattern with every occurrence of a variable numbered from left to right, once {n,m} is written out."""
    match pattern:
        case ("seq", *items):
            return ("seq", *(number(item, counter) for item in items))
        case ("alt", *items):
            return ("alt", *(number(item, counter) for item in items))
        case ("rep", item, least, None):
            copies = [number(item, counter) for _ in range(max(least, 1))]
            loop = ("plus", copies[-1])
            return ("opt", loop) if least == 0 else ("seq", *copies[:-1], loop)
        case ("rep", item, least, most):
            copies = [number(item, counter) for _ in range(most)]
            tail: Pattern = ("seq",)
            for copy in reversed(copies[least:]):
                tail = ("opt", ("seq", copy, tail))
            return ("seq", *copies[:least], tail)
    counter[0] += 1
    return ("var", pattern[0], counter[0])


Way = tuple[tuple[int, str], ...]


def bind(pattern: Pattern, rows: Sequence[Row], way: Way, fits: Callable[[Way], bool]) -> Iterator[Way]:
    """Every way of binding further rows to a pattern."""
    match pattern:
        case ("var", name, place):
            longer = (*way, (place, name))
            if len(longer) <= len(rows) and fits(longer):
                yield longer
        case ("seq",):
            yield way
        case ("seq", first, *rest):
            for middle in bind(first, rows, way, fits):
                yield from bind(("seq", *rest), rows, middle, fits)
        case ("alt", *items):
            for item in items:
                yield from bind(item, rows, way, fits)
        case ("opt", item):
            yield way
            for longer in bind(item, rows, way, fits):
                if len(longer) > len(way):
                    yield longer
        case ("plus", item):
            for once in bind(item, rows, way, fits):
                yield once
                if len(once) > len(way):
                    yield from (more for more in bind(pattern, rows, once, fits) if len(more) > len(once))


def find_match(pattern: Pattern, checks: Sequence[Check], rows: Sequence[Row], within: int | None) -> Bound | None:
    """The longest stretch that ends with the last row, bound in the way that is preferred."""
    numbered = number(pattern, [0])
    for start in range(len(rows)):
        stretch = tuple(rows[start:])
        if within is not None and (stretch[-1]["ts"] - stretch[0]["ts"]).total_seconds() > within:
            continue

        def fits(way: Way, stretch: tuple[Row, ...] = stretch) -> bool:
            bound = Bound(stretch[: len(way)], tuple(name for _, name in way))
            name = way[-1][1]
            return all(
                check.holds(bound) is True
                for check in checks
                if check.variable == name and not (check.from_second and len(bound.of(name)) == 1)
            )

        ways = [way for way in bind(numbered, stretch, (), fits) if len(way) == len(stretch)]
        if ways:
            best = min(ways, key=lambda way: [place for place, _ in way])
            return Bound(stretch, tuple(name for _, name in best))
    return None


def find_matches(
    pattern: Pattern,
    checks: Sequence[Check],
    parts: Sequence[Sequence[Row]],
    *,
    across_gaps: bool = False,
    within: int | None = None,
) -> list[Bound | None]:
    """For one group, as of the end of each part. The rows of each part are in their order."""
    answers: list[Bound | None] = []
    sequence: list[Row] = []
    for rows in parts:
        if not rows and not across_gaps:
            sequence = []
        sequence = [*sequence, *rows]
        answers.append(find_match(pattern, checks, sequence, within) if rows else None)
    return answers
