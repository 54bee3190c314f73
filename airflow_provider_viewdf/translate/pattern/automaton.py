"""From a PATTERN clause to an automaton without empty moves (Glushkov's).

A position is one occurrence of a variable once `v{2,3}` is written out as v, v, v?. Being at a position means: the last
row was bound to its variable. Positions are numbered from left to right, which is the order in which ways to bind a
stretch of rows are preferred: at the first row that is bound differently, the position further left wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_provider_viewdf.translate.pattern.query import Choice, Regex, Repeat, Sequence, Variable


@dataclass(frozen=True, slots=True)
class Automaton:
    """`variables[p]` is what a row at position p is bound to; the rest are positions, in ascending order."""

    variables: tuple[str, ...]
    first: tuple[int, ...]
    follow: tuple[tuple[int, ...], ...]
    last: frozenset[int]
    is_nullable: bool


class TooManyPositions(Exception):
    """The pattern, written out, is longer than any that makes sense."""


MOST_POSITIONS = 200


def build_automaton(regex: Regex) -> Automaton:
    builder = _Builder()
    piece = builder.add(regex)
    follow = tuple(tuple(sorted(positions)) for positions in builder.follow)
    return Automaton(
        tuple(builder.variables), tuple(sorted(piece.first)), follow, frozenset(piece.last), piece.is_nullable
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where a piece of the pattern can begin and end, and whether it can match no rows."""

    first: frozenset[int]
    last: frozenset[int]
    is_nullable: bool


_EMPTY = _Piece(frozenset(), frozenset(), True)


@dataclass
class _Builder:
    variables: list[str] = field(default_factory=list)
    follow: list[set[int]] = field(default_factory=list)

    def add(self, regex: Regex) -> _Piece:
        match regex:
            case Variable(name):
                if len(self.variables) >= MOST_POSITIONS:
                    raise TooManyPositions
                self.variables.append(name)
                self.follow.append(set())
                position = frozenset((len(self.variables) - 1,))
                return _Piece(position, position, False)
            case Sequence(items):
                piece = _EMPTY
                for item in items:
                    piece = self._join(piece, self.add(item))
                return piece
            case Choice(items):
                pieces = [self.add(item) for item in items]
                return _Piece(
                    _union(piece.first for piece in pieces),
                    _union(piece.last for piece in pieces),
                    any(piece.is_nullable for piece in pieces),
                )
            case Repeat(item, least, most):
                return self._repeat(item, least, most)
        raise AssertionError(regex)

    def _join(self, left: _Piece, right: _Piece) -> _Piece:
        for position in left.last:
            self.follow[position] |= right.first
        return _Piece(
            left.first | right.first if left.is_nullable else left.first,
            left.last | right.last if right.is_nullable else right.last,
            left.is_nullable and right.is_nullable,
        )

    def _repeat(self, item: Regex, least: int, most: int | None) -> _Piece:
        copies: list[_Piece] = []
        for _ in range(max(least, 1) if most is None else most):
            copies.append(self.add(item))
        if most is None:
            # The last of the copies goes round.
            for position in copies[-1].last:
                self.follow[position] |= copies[-1].first
        # v{1,3} is v, (v, (v)?)?: a copy can only be bound after the one before it.
        piece = _EMPTY
        for number in range(len(copies) - 1, -1, -1):
            piece = self._join(copies[number], piece)
            if number >= least:
                piece = _Piece(piece.first, piece.last, True)
        return piece


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)
