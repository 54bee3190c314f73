"""The PATTERN clause: finding it among the tokens of a view's query, and reading `[a, b+, (c | d){2,3}]`."""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError, TimeFormatError
from airflow_provider_viewdf.language.token_reader import NAME
from airflow_provider_viewdf.parts import parse_length
from airflow_provider_viewdf.translate.pattern.query import (
    Choice,
    Regex,
    Repeat,
    Sequence,
    Variable,
    write_quantifier,
    write_regex,
)

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_SIGNS = ("+", "*", "?", "{")
# A name or a brace is no pattern, but nothing else either: FROM M pattern x is no SQL.
_AFTER_PATTERN = (TokenType.L_BRACKET, TokenType.L_PAREN, TokenType.L_BRACE, TokenType.VAR)
_LONGEST_REPEAT = 1000


@dataclass(frozen=True, slots=True)
class PatternClause:
    """What stands between FROM and WHERE, and the tokens of the query without it."""

    regex: Regex
    names: tuple[str, ...]
    start: int
    end: int
    is_across_gaps: bool
    within_seconds: int
    within_place: tuple[int, int]
    rest: tuple[Token, ...]


def find_pattern(tokens: Tokens[Token]) -> int | None:
    """The position of the word PATTERN of a pattern query, if this is one."""
    depth = 0
    has_from = False
    for position, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth:
            continue
        has_from = has_from or token.token_type == TokenType.FROM
        if (
            has_from
            and is_word(token, "PATTERN")
            and position + 1 < len(tokens)
            and tokens[position + 1].token_type in _AFTER_PATTERN
            # FROM pattern(...) is a table function.
            and tokens[position - 1].token_type not in (TokenType.FROM, TokenType.COMMA, TokenType.JOIN, TokenType.DOT)
        ):
            return position
    return None


def is_word(token: Token, word: str) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text.upper() == word


def read_pattern_clause(tokens: Tokens[Token], text: str) -> PatternClause:
    """The clauses PATTERN, ACROSS GAPS and WITHIN of a pattern query."""
    position = find_pattern(tokens)
    assert position is not None
    reader = _PatternReader(tokens, position + 1, text)
    regex, end = reader.read()
    rest = list(tokens[:position])
    is_across, within, place = False, 0, (0, 0)
    depth = 0
    while end < len(tokens):
        token = tokens[end]
        following = tokens[end + 1] if end + 1 < len(tokens) else None
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and is_word(token, "ACROSS") and following is not None and is_word(following, "GAPS"):
            is_across, end = True, end + 2
        elif (
            depth == 0
            and is_word(token, "WITHIN")
            and following is not None
            and following.token_type in (TokenType.STRING, TokenType.NUMBER)
        ):
            if within:
                _fail("WITHIN stands there twice; leave one out.", text, token)
            end, within, place = _read_within(tokens, end, text)
        else:
            if depth == 0 and is_word(token, "PATTERN") and following is not None and following.text in ("[", "("):
                _fail("A query has one PATTERN; write a view for each.", text, token)
            if len(rest) == position:
                _check_next_clause(token, text)
            rest.append(token)
            end += 1
    return PatternClause(
        regex,
        tuple(reader.names.values()),
        tokens[position].start,
        reader.end,
        is_across,
        within,
        place,
        tuple(rest),
    )


def _check_next_clause(token: Token, text: str) -> None:
    """What follows the pattern must not be a name: it would silently become another name of the table."""
    if is_word(token, "WITHIN"):
        _fail("WITHIN needs a length of time; write WITHIN '10 minutes'.", text, token)
    if is_word(token, "ACROSS"):
        _fail("ACROSS needs GAPS; write ACROSS GAPS.", text, token)
    if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.ALIAS):
        _fail(
            f"{token.text} is not expected behind a pattern; there can be ACROSS GAPS, WITHIN '10 minutes', and then WHERE, "
            f"GROUP BY, HAVING and ORDER BY. Another name for what is read stands before PATTERN.",
            text,
            token,
        )


def _read_within(tokens: Tokens[Token], position: int, text: str) -> tuple[int, int, tuple[int, int]]:
    value = tokens[position + 1]
    words, end = value.text, position + 2
    unit = tokens[end] if end < len(tokens) and tokens[end].token_type == TokenType.VAR else None
    if value.token_type == TokenType.NUMBER and unit and not (is_word(unit, "ACROSS") or is_word(unit, "WITHIN")):
        words, end = f"{words} {unit.text}", end + 1
    place = (tokens[position].start, tokens[end - 1].end + 1)
    try:
        seconds = parse_length(words)
    except TimeFormatError as error:
        raise LanguageError(str(error), text=text, start=value.start, end=tokens[end - 1].end + 1) from None
    if seconds < 1:
        raise LanguageError(
            "WITHIN needs at least one second; write WITHIN '10 minutes'.", text=text, start=place[0], end=place[1]
        )
    return end, seconds, place


class _PatternReader:
    """Reads a pattern: alternatives of sequences of variables and groups, each with a quantifier."""

    def __init__(self, tokens: Tokens[Token], position: int, text: str) -> None:
        self.tokens, self.position, self.text = tokens, position, text
        self.names: dict[str, str] = {}
        self.end = 0

    def read(self) -> tuple[Regex, int]:
        opening = self._current
        if opening.text not in ("[", "("):
            _fail("A pattern stands in brackets, as in PATTERN [a, b+].", self.text, opening)
        self.position += 1
        closing = "]" if opening.text == "[" else ")"
        if self._peek(closing):
            _fail(
                "The pattern is empty; write at least one variable, as in PATTERN [a, b+].",
                self.text,
                opening,
                self._current,
            )
        regex = self._read_choice(opening, closing)
        self.end = self.tokens[self.position - 1].end + 1
        return regex, self.position

    def _read_choice(self, opening: Token, closing: str) -> Regex:
        items = [self._read_sequence(opening, closing)]
        while self._take("|"):
            items.append(self._read_sequence(opening, closing))
        if not self._take(closing):
            if self.position >= len(self.tokens):
                what = "bracket" if opening.text == "[" else "parenthesis"
                _fail(f"This {what} is not closed.", self.text, opening)
            _fail(
                f"{self._current.text} is not expected in a pattern; it consists of variables with commas between, "
                f"the quantifiers + * ? {{n}} {{n,m}}, and ( | ).",
                self.text,
                self._current,
            )
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def _read_sequence(self, opening: Token, closing: str) -> Regex:
        items = [self._read_item(opening)]
        while self._take(","):
            items.append(self._read_item(opening))
        if self.position < len(self.tokens) and self._is_name(self._current):
            _fail(
                f"A comma is missing before {self._current.text}; the variables of a pattern have commas between them.",
                self.text,
                self._current,
            )
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _read_item(self, opening: Token) -> Regex:
        if self.position >= len(self.tokens):
            what = "bracket" if opening.text == "[" else "parenthesis"
            _fail(f"This {what} is not closed.", self.text, opening)
        token = self._current
        if token.text == "(" and token.token_type == TokenType.L_PAREN:
            self.position += 1
            item = self._read_choice(token, ")")
        elif self._is_name(token):
            self.position += 1
            if fold(token.text) in self.names:
                _fail(
                    f"The variable {token.text} occurs twice in the pattern; give each its own name, and write "
                    f"{token.text}+ or {token.text}{{2}} for several rows of one.",
                    self.text,
                    token,
                )
            self.names[fold(token.text)] = token.text
            item = Variable(token.text)
        elif token.token_type in (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER):
            written = self.text[token.start : token.end + 1]
            _fail(
                f"{written} is no name of a variable; names consist of letters, digits and _, without quotes.",
                self.text,
                token,
            )
        else:
            _fail(f"A variable is missing before {token.text}.", self.text, token)
        return self._read_quantifier(item, token)

    def _read_quantifier(self, item: Regex, first: Token) -> Regex:
        sign = next((sign for sign in _SIGNS if self._take(sign)), "")
        if not sign:
            return item
        token = self.tokens[self.position - 1]
        match sign:
            case "+":
                found = Repeat(item, 1, None)
            case "*":
                found = Repeat(item, 0, None)
            case "?":
                found = Repeat(item, 0, 1)
            case _:
                found = self._read_counts(item, token)
        if self.position < len(self.tokens) and self._current.text in _SIGNS:
            written = write_regex(item, True)
            again = self._current
            _fail(
                f"{written} has two quantifiers, {write_quantifier(found.least, found.most)} and {again.text}; "
                f"leave one out, or put parentheses around the inner one.",
                self.text,
                again,
            )
        return found

    def _read_counts(self, item: Regex, opening: Token) -> Repeat:
        numbers: list[int | None] = [self._read_count()]
        if self._take(","):
            numbers.append(self._read_count())
        if not self._take("}") or numbers[0] is None:
            _fail("Write {n}, {n,m} or {n,} with whole numbers.", self.text, opening, self.tokens[self.position - 1])
        least, most = numbers[0], numbers[-1]
        closing = self.tokens[self.position - 1]
        written = write_quantifier(least, most)
        if most is not None and most < least:
            _fail(
                f"The quantifier {written} runs backwards; write the smaller number first.", self.text, opening, closing
            )
        if most == 0:
            _fail("The quantifier {0} means no row; leave the variable out.", self.text, opening, closing)
        if max(least, most or 0) > _LONGEST_REPEAT:
            _fail(f"A variable can be repeated {_LONGEST_REPEAT} times at most.", self.text, opening, closing)
        return Repeat(item, least, most)

    def _read_count(self) -> int | None:
        if self.position < len(self.tokens) and self._current.text.isdigit():
            self.position += 1
            return int(self.tokens[self.position - 1].text)
        return None

    @staticmethod
    def _is_name(token: Token) -> bool:
        return token.token_type != TokenType.STRING and NAME.fullmatch(token.text) is not None

    def _peek(self, word: str) -> bool:
        return self.position < len(self.tokens) and self._current.text == word

    def _take(self, word: str) -> bool:
        if self._peek(word) and self._current.token_type != TokenType.STRING:
            self.position += 1
            return True
        return False

    @property
    def _current(self) -> Token:
        return self.tokens[self.position]


def _fail(message: str, text: str, token: Token, last: Token | None = None) -> NoReturn:
    raise LanguageError(message, text=text, start=token.start, end=(last or token).end + 1)
