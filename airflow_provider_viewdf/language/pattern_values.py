"""Values of variables in a pattern query: `a.loss`, `d[i-1].loss`, `d[..i-1].loss`.

They are found among the tokens, since a variable may be called like a word of SQL (`end.loss`) and `[..i-1]` is no SQL at
all. Each is replaced by one name, the query is then parsed as any other, and the names become values in its tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.dialect import parse_query
from airflow_provider_viewdf.translate.pattern.memory import quote
from airflow_provider_viewdf.translate.pattern.query import Value

_PREFIX = "__value_"
_SUBSCRIPTS = ("1", "i", "i-1", "..i-1")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|\s+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Found:
    variable: str
    subscript: str
    attribute: str
    start: int
    end: int


def parse_with_values(tokens: Sequence[Token], names: Mapping[str, str], text: str) -> exp.Expr:
    """The tree of a query in whose tokens values of variables occur. `names` are the variables, by folded name."""
    replaced, found = _replace_values(tokens, names, text)
    tree = parse_query(replaced, text)
    for column in list(tree.find_all(exp.Column)):
        if not column.name.startswith(_PREFIX):
            continue
        item = found[int(column.name.removeprefix(_PREFIX))]
        value = Value(variable=item.variable, subscript=item.subscript, attribute=item.attribute)
        value.meta["place"] = (item.start, item.end)
        column.replace(value)
    return tree


def _replace_values(tokens: Sequence[Token], names: Mapping[str, str], text: str) -> tuple[list[Token], list[_Found]]:
    replaced: list[Token] = []
    found: list[_Found] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        item, end = _read_value(tokens, position, names, text)
        if item is None:
            replaced.append(token)
        else:
            name = f"{_PREFIX}{len(found)}"
            found.append(item)
            replaced.append(Token(TokenType.VAR, name, token.line, token.col, item.start, item.end - 1))
        position = end
    return replaced, found


def _read_value(
    tokens: Sequence[Token], position: int, names: Mapping[str, str], text: str
) -> tuple[_Found | None, int]:
    token = tokens[position]
    following = tokens[position + 1].token_type if position + 1 < len(tokens) else None
    is_name = token.token_type != TokenType.STRING and fold(token.text) in names
    if (
        not is_name
        or following not in (TokenType.DOT, TokenType.L_BRACKET)
        or (position and tokens[position - 1].token_type == TokenType.DOT)
    ):
        return None, position + 1
    variable, subscript, end = names[fold(token.text)], "", position + 1
    if following == TokenType.L_BRACKET:
        subscript, end = _read_subscript(tokens, position, variable, text)
    attribute, end = _read_attribute(tokens, end, position, text)
    return _Found(variable, subscript, attribute, token.start, tokens[end - 1].end + 1), end


def _read_subscript(tokens: Sequence[Token], position: int, variable: str, text: str) -> tuple[str, int]:
    end = position + 2
    while end < len(tokens) and tokens[end].token_type != TokenType.R_BRACKET:
        end += 1
    if end >= len(tokens):
        bracket = tokens[position + 1]
        raise LanguageError("This bracket is not closed.", text=text, start=bracket.start, end=bracket.end + 1)
    start, stop = tokens[position + 1].end + 1, tokens[end].start
    written = _COMMENT.sub("", text[start:stop]).lower()
    if written not in _SUBSCRIPTS:
        raise LanguageError(
            f"{variable}[{text[start:stop].strip()}] is no row of {variable}; there are {variable}[1], the first, {variable}[i], "
            f"the current one, {variable}[i-1], the one before it, and {variable}[..i-1], all before it.",
            text=text,
            start=tokens[position].start,
            end=tokens[end].end + 1,
        )
    return written, end + 1


def _read_attribute(tokens: Sequence[Token], position: int, first: int, text: str) -> tuple[str, int]:
    words: list[str] = []
    while position + 1 < len(tokens) and tokens[position].token_type == TokenType.DOT:
        name = tokens[position + 1]
        if name.token_type == TokenType.STAR and not words:
            return "*", position + 2
        words.append(quote(name.text))
        position += 2
    if not words:
        last = tokens[min(position, len(tokens)) - 1]
        written = text[tokens[first].start : last.end + 1]
        raise LanguageError(
            f"An attribute is missing after {written}; write {written}.x.",
            text=text,
            start=tokens[first].start,
            end=last.end + 1,
        )
    return ".".join(words), position
