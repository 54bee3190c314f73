"""Pattern queries: `SELECT ... FROM M PATTERN [a, b+] WHERE ... GROUP BY ...` as the body of a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from sqlglot.tokenizer_core import Token

from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.pattern_clause import find_pattern, read_pattern_clause
from airflow_provider_viewdf.language.pattern_syntax import SourceOf, find_source, read_pattern_query
from airflow_provider_viewdf.language.statements import Statement
from airflow_provider_viewdf.parts import format_length
from airflow_provider_viewdf.translate.pattern.automaton import TooManyPositions, build_automaton
from airflow_provider_viewdf.translate.pattern.machine import TooManyStates
from airflow_provider_viewdf.translate.pattern.translate import translate_query
from airflow_provider_viewdf.translate.pattern.write_views import Clauses
from airflow_provider_viewdf.translate.translation import Translation
from airflow_provider_viewdf.translate.tree import place_of


def is_pattern(tokens: Sequence[Token]) -> bool:
    """Whether the body of a view is a pattern query."""
    return find_pattern(tokens) is not None


def pattern_length(item: Statement, source_of: SourceOf, text: str) -> int:
    """The partition length of the view: that of what it reads, if it does not say another."""
    if item.length_seconds:
        return item.length_seconds
    table = find_source(item, read_pattern_clause(item.plain, text), text)
    return source_of(table.name, *place_of(table)).length_seconds


def translate_pattern(item: Statement, source_of: SourceOf, text: str) -> Translation:
    """The helper view and the view that a pattern query stands for."""
    clause = read_pattern_clause(item.plain, text)
    try:
        is_nullable = build_automaton(clause.regex).is_nullable
    except TooManyPositions:
        _fail_too_large(clause.start, clause.end, text)
    if is_nullable:
        raise LanguageError(
            "The pattern can match no rows at all, so every group would match it everywhere; "
            "let at least one variable be bound to at least one row.",
            text=text,
            start=clause.start,
            end=clause.end,
        )
    query, source, pieces = read_pattern_query(item, clause, source_of, text)
    length = item.length_seconds or source.length_seconds
    if length % source.length_seconds:
        raise LanguageError(
            f"The partition length of the view {item.name.text} must be {format_length(source.length_seconds)}, that of "
            f"{source.name}, or a multiple of it.",
            text=text,
            start=item.length_place[0],
            end=item.length_place[1],
        )
    clauses = Clauses(
        length, source.length_seconds, item.starting, item.starting_latest, tuple(key.text for key in item.keys)
    )
    try:
        return replace(translate_query(query, source, clauses), pieces=pieces)
    except TooManyStates:
        _fail_too_large(clause.start, clause.end, text)


def _fail_too_large(start: int, end: int, text: str) -> NoReturn:
    raise LanguageError(
        "The pattern is too large: written out, it has more than 200 states; use smaller numbers in {n,m}, "
        "or + where the number of rows does not matter.",
        text=text,
        start=start,
        end=end,
    )
