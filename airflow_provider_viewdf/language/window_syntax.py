"""What stands between the brackets of `FROM S [WINDOW 60 minutes PARTIAL SLIDE 5 minutes]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.errors import LanguageError, TimeFormatError
from airflow_provider_viewdf.language.dialect import read_tokens
from airflow_provider_viewdf.parts import format_length, parse_length

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A window with the places of its two lengths. `slide_seconds` is 0 if there is no SLIDE."""

    window_seconds: int
    window_place: Place
    slide_seconds: int
    slide_place: Place
    is_partial: bool
    start: int
    end: int


def is_window(tokens: Sequence[Token]) -> bool:
    return _find_window(tokens) is not None


def has_window(text: str) -> bool:
    """Whether any statement of a script has a window."""
    return is_window(read_tokens(text))


def split_window(tokens: Sequence[Token], text: str) -> tuple[WindowClause, list[Token], Token]:
    """The window of a query, the tokens of the query without it, and the token that stands before it."""
    position = _find_window(tokens)
    assert position is not None
    opening = tokens[position]
    end = position + 1
    while end < len(tokens) and tokens[end].token_type != TokenType.R_BRACKET:
        end += 1
    if end == len(tokens):
        _fail("This bracket is not closed.", text, (opening.start, opening.end + 1))
    clause = _Reader(tokens[position + 1 : end + 1], text, opening.start).read()
    rest = [*tokens[:position], *tokens[end + 1 :]]
    if is_window(rest):
        other = rest[_find_window(rest) or 0]
        _fail(
            "A view has one window; write a view for each, and join these.",
            text,
            (other.start, other.end + 1),
        )
    if position == 0:
        _fail("The table before the window is missing.", text, (opening.start, opening.end + 1))
    return clause, rest, tokens[position - 1]


def check_multiple(seconds: int, unit: int, what: str, whose: str, text: str, place: Place) -> None:
    """Refuse a length of time that is no multiple of a table's, and offer the nearest that are."""
    if seconds % unit == 0 and seconds:
        return
    below, above = seconds // unit * unit, (seconds // unit + 1) * unit
    offer = f"{format_length(below)} or {format_length(above)}" if below else format_length(above)
    _fail(
        f"A {what} of {format_length(seconds)} is no multiple of {format_length(unit)}, the length of {whose}; "
        f"the nearest {'are' if below else 'is'} {offer}.",
        text,
        place,
    )


def _find_window(tokens: Sequence[Token]) -> int | None:
    for position, (opening, word) in enumerate(pairwise(tokens)):
        if opening.token_type == TokenType.L_BRACKET and word.text.upper() == "WINDOW":
            return position
    return None


class _Reader:
    """Reads the tokens from WINDOW to the closing bracket."""

    def __init__(self, tokens: Sequence[Token], text: str, start: int) -> None:
        self.tokens, self.text, self.start, self.position = tokens, text, start, 1

    def read(self) -> WindowClause:
        window, window_place = self._length("WINDOW")
        slide, slide_place, is_partial = 0, window_place, False
        while self._word not in ("]",):
            if self._word == "PARTIAL" and not is_partial:
                is_partial = True
                self.position += 1
            elif self._word == "SLIDE" and not slide:
                self.position += 1
                slide, slide_place = self._length("SLIDE")
            else:
                token = self.tokens[self.position]
                _fail(
                    f"{token.text} is not expected here; write [WINDOW 60 minutes], "
                    f"[WINDOW 60 minutes PARTIAL] or [WINDOW 60 minutes SLIDE 5 minutes].",
                    self.text,
                    (token.start, token.end + 1),
                )
        return WindowClause(
            window, window_place, slide, slide_place, is_partial, self.start, self.tokens[self.position].end + 1
        )

    @property
    def _word(self) -> str:
        return self.tokens[self.position].text.upper()

    def _length(self, keyword: str) -> tuple[int, Place]:
        before = self.tokens[self.position - 1]
        first = self.position
        while self._word not in ("]", "PARTIAL", "SLIDE"):
            self.position += 1
        words = self.tokens[first : self.position]
        if not words:
            _fail(
                f"A length of time is missing after {keyword}; write {keyword} 5 minutes.",
                self.text,
                (before.start, before.end + 1),
            )
        place = (words[0].start, words[-1].end + 1)
        try:
            seconds = parse_length(" ".join(word.text for word in words))
        except TimeFormatError as error:
            _fail(str(error), self.text, place)
        if not seconds:
            _fail(f"A {keyword} must be at least one second long.", self.text, place)
        return seconds, place


def _fail(message: str, text: str, place: Place) -> NoReturn:
    raise LanguageError(message, text=text, start=place[0], end=place[1])
