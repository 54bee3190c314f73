"""What stands between the brackets of `M[j - 3 .. j]`: from text to an integer function of the subscript variable.

sqlglot's tokens are of no use here (`0..5` is the number `0.`, a dot and a 5), so the text is read anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import SubscriptError
from airflow_provider_viewdf.subscripts import NotQuasiLinear, Subscript
from airflow_provider_viewdf.translate.tree import PART_NUMBER

MOST_WORDS = 100
MOST_DIGITS = 15

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign>\.\.|[-+*/%()])",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of a subscript. `operator` is a sign, or "number", "name", "text" or "parentheses"."""

    operator: str
    value: str
    operands: tuple[Term, ...]
    start: int
    end: int

    def __str__(self) -> str:
        match self.operator, self.operands:
            case "parentheses", (inner,):
                return f"({inner})"
            case _, (left, right):
                return f"{left} {self.operator} {right}"
            case "-", (inner,):
                return f"-{inner}"
            case "text", _:
                return f"'{self.value}'"
        return self.value


@dataclass(frozen=True, slots=True)
class SubscriptRange:
    """A parsed subscript, with its place. A single part is a range whose ends are the same term.

    A PARTIAL range leaves out what lies before the first part of the table.
    """

    low: Term
    high: Term
    start: int
    end: int
    is_partial: bool = False


def parse_subscript(text: str, start: int, end: int) -> SubscriptRange:
    """The subscript at [start, end) of a text, which are the brackets' insides."""
    return _Reader(text, start, end).read_range()


class _Reader:
    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self.tokens: list[tuple[str, str, int, int]] = []
        self.position = 0
        offset = start
        while offset < end:
            match = _TOKEN.match(text, offset, end)
            if match is None:
                self._fail(
                    f"A subscript consists of integers, the subscript variable, + - * / % and parentheses; "
                    f"{text[offset]} is none of these.",
                    offset,
                    offset + 1,
                )
            if match.lastgroup != "space":
                assert match.lastgroup is not None
                self.tokens.append((match.lastgroup, match.group(), match.start(), match.end()))
            offset = match.end()

    def read_range(self) -> SubscriptRange:
        if len(self.tokens) > MOST_WORDS:
            self._fail(
                f"This subscript has {len(self.tokens):,} words and signs, and at most {MOST_WORDS} are read.",
                self.start,
                self.end,
            )
        if not self.tokens:
            self._fail("A subscript is missing between the brackets.", max(self.start - 1, 0), self.end + 1)
        low = self._sum()
        high = self._sum() if self._take("..") else low
        is_partial = high is not low and self._take_word("PARTIAL")
        if self.position < len(self.tokens):
            _, word, start, end = self.tokens[self.position]
            message = f"{word} is not expected here; a subscript is one expression, or two with .. in between."
            self._fail(message, start, end)
        return SubscriptRange(low, high, self.start, self.end, is_partial)

    def _sum(self) -> Term:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Term:
        return self._chain(("*", "/", "%"), self._factor)

    def _chain(self, signs: tuple[str, ...], operand: Callable[[], Term]) -> Term:
        left = operand()
        while sign := self._take(*signs):
            right = operand()
            left = Term(sign, "", (left, right), left.start, right.end)
        return left

    def _factor(self) -> Term:
        if self.position >= len(self.tokens):
            message = "The subscript ends too early; an integer or the subscript variable is missing."
            self._fail(message, self.end, self.end + 1)
        kind, word, start, end = self.tokens[self.position]
        self.position += 1
        if kind == "text":
            return Term("text", word[1:-1], (), start, end)
        if kind in ("number", "name"):
            return Term(kind, word, (), start, end)
        if word == "-":
            inner = self._factor()
            return Term("-", "", (inner,), start, inner.end)
        if word == "(":
            inner = self._sum()
            if not self._take(")"):
                self._fail("This parenthesis is not closed.", start, end)
            return Term("parentheses", "", (inner,), start, self.tokens[self.position - 1][3])
        self._fail(f"An integer or the subscript variable is missing before {word}.", start, end)

    def _take(self, *signs: str) -> str:
        if self.position < len(self.tokens) and self.tokens[self.position][1] in signs:
            self.position += 1
            return self.tokens[self.position - 1][1]
        return ""

    def _take_word(self, word: str) -> bool:
        if self.position < len(self.tokens) and self.tokens[self.position][1].upper() == word:
            self.position += 1
            return True
        return False

    def _fail(self, message: str, start: int, end: int) -> NoReturn:
        raise SubscriptError(message, text=self.text, start=start, end=end)


def bind_term(term: Term, variable: str, head: str, text: str) -> Subscript:
    """The function that a term is of the subscript variable. `head` is where that is declared: `UPDATE V[j]`."""

    def fail(message: str) -> NoReturn:
        raise SubscriptError(message, text=text, start=term.start, end=term.end)

    words = str(term)
    if term.operator == "number":
        if len(term.value) > MOST_DIGITS:
            fail(f"{term.value} is too large for a subscript; at most {MOST_DIGITS} digits are read.")
        return Subscript.constant(int(term.value), words)
    if term.operator == "name":
        if fold(term.value) not in (fold(variable), PART_NUMBER):
            fail(f"The subscript variable {term.value} is not in scope; {head} declares {variable}.")
        return Subscript.variable(words)
    if term.operator == "text":
        fail(f"A time cannot be a subscript in a view; write an expression of {variable}.")
    operands = [bind_term(operand, variable, head, text) for operand in term.operands]
    try:
        match term.operator, operands:
            case "parentheses", [inner]:
                return Subscript(inner.evaluate, inner.period, inner.rise, words)
            case "-", [inner]:
                return Subscript.constant(0).add(inner, words, sign=-1)
            case "+", [left, right]:
                return left.add(right, words)
            case "-", [left, right]:
                return left.add(right, words, sign=-1)
            case "*", [left, right]:
                return left.multiply(right, words)
            case "/", [left, right]:
                return left.divide(right, words)
            case _, [left, right]:
                return left.modulo(right, words)
    except NotQuasiLinear:
        if term.operator in "/%" and operands[1].is_constant and operands[1](0) == 0:
            fail(f"{words} divides by zero.")
        fail(
            f"{words} cannot be inverted: which parts read a given part could not be told. "
            f"Multiply and divide {variable} by small constants only."
        )
    raise AssertionError(term.operator)
