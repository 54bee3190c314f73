"""Going through the tokens of one statement, and saying what is wrong with one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.errors import LanguageError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, with its place."""

    text: str
    start: int
    end: int


class TokenReader:
    """A place among the tokens of a statement, which moves on with what is taken."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.position = text, tokens, 0

    def _name(self, what: str) -> Name:
        if self.position >= len(self.tokens) or self._current.text in ("(", ")", ","):
            self._fail(f"{what} is missing.", self._previous)
        token = self._current
        self.position += 1
        following = self.tokens[self.position] if self.position < len(self.tokens) else None
        if not NAME.fullmatch(token.text) or (following is not None and following.text == "."):
            written = token.text if following is None or following.text != "." else self._dotted(self.position - 1)
            self._fail(
                f"{written} cannot be a name; a name consists of letters, digits and _, "
                f"and does not begin with a digit.",
                token,
            )
        return Name(token.text, token.start, token.end + 1)

    def _dotted(self, position: int) -> str:
        """The name of several words, such as db.x, that begins at a position."""
        written = self.tokens[position].text
        while position + 2 < len(self.tokens) and self.tokens[position + 1].text == ".":
            position += 2
            written += f".{self.tokens[position].text}"
        return written

    def _string(self, problem: str) -> str:
        if self.position >= len(self.tokens) or self._current.token_type != TokenType.STRING:
            self._fail(problem, self._previous)
        self.position += 1
        return self._previous.text

    def _expect(self, word: str, problem: str) -> Token:
        if not self._take(word):
            self._fail(f"{problem}.", self._previous)
        return self._previous

    def _take(self, word: str) -> bool:
        if (
            self.position < len(self.tokens)
            and self._current.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
            and self._current.text.upper() == word
        ):
            self.position += 1
            return True
        return False

    def _peek_words(self, *words: str) -> bool:
        return tuple(token.text.upper() for token in self.tokens[self.position : self.position + len(words)]) == words

    @property
    def _current(self) -> Token:
        return self.tokens[self.position]

    @property
    def _previous(self) -> Token:
        return self.tokens[max(0, self.position - 1)]

    def _extent(self) -> tuple[int, int]:
        return self.tokens[0].start, self.tokens[-1].end + 1

    def _fail(self, message: str, token: Token) -> NoReturn:
        raise LanguageError(message, text=self.text, start=token.start, end=token.end + 1)

    def _fail_at(self, message: str, name: Name) -> NoReturn:
        raise LanguageError(message, text=self.text, start=name.start, end=name.end)
