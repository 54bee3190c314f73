"""Binding a view's query: what its tables are, and which parts its subscripts read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn, cast

from sqlglot import exp

from airflow_provider_viewdf.definitions import Kind, PartReference, Query, fold
from airflow_provider_viewdf.errors import LanguageError, SubscriptError, UnknownTableError
from airflow_provider_viewdf.language.subscript_syntax import SubscriptRange, Term, bind_term
from airflow_provider_viewdf.parts import Partitioning, parse_time
from airflow_provider_viewdf.subscripts import NotQuasiLinear, Subscript
from airflow_provider_viewdf.translate.tree import (
    PartTable,
    bind_reference,
    named_tables,
    names_common_table,
    place_of,
)

CENTURY = (parse_time("2000-01-01"), parse_time("2100-01-01"))


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What a query has to know of a table that it names."""

    name: str
    kind: Kind
    length_seconds: int
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule that a query belongs to: `head` is `UPDATE V[j]`."""

    view: str
    head: str
    variable: str
    length_seconds: int
    is_initialize: bool


def find_table(table: exp.Table, tables: Mapping[str, KnownTable], text: str) -> KnownTable:
    """What a table in a query is, by its name."""
    start, end = place_of(table)
    written = ".".join(part.name for part in table.parts)
    if isinstance(table, PartTable) and names_common_table(table, table.name):
        raise LanguageError(
            f"{table.name} is a WITH query, which has no parts; leave the subscript out.",
            text=text,
            start=start,
            end=end,
        )
    found = None if table.args.get("db") else tables.get(fold(table.name))
    if found is None:
        raise unknown_table(written, tables.values(), text, start, min(end, start + len(written)))
    return found


def unknown_table(name: str, tables: Iterable[KnownTable], text: str, start: int, end: int) -> UnknownTableError:
    names = {fold(table.name): table.name for table in tables}
    close = difflib.get_close_matches(fold(name), names, n=1)
    remedy = f"did you mean {names[close[0]]}?" if close else "create it first, or correct the name."
    return UnknownTableError(f"There is no table or view {name}; {remedy}", text=text, start=start, end=end)


def bind_query(tree: exp.Expr, rule: Rule, tables: Mapping[str, KnownTable], text: str, offset: int) -> Query:
    """The query with every subscript bound to the rule's variable. Places are kept relative to `offset`."""
    references: dict[tuple[str, str, str, bool], PartReference] = {}
    dimensions: dict[str, None] = {}
    for table in named_tables(tree):
        known = find_table(table, tables, text)
        start, end = place_of(table)
        if known.kind == "dimension":
            if isinstance(table, PartTable):
                raise LanguageError(
                    f"{known.name} is a dimension table, which has no parts; leave the subscript out.",
                    text=text,
                    start=start,
                    end=end,
                )
            dimensions[known.name] = None
            continue
        if not isinstance(table, PartTable):
            what = "stream" if known.kind == "stream" else "view"
            raise LanguageError(
                f"The {what} {known.name} has parts; say which of them {rule.head} reads, like "
                f"{known.name}[{rule.variable}].",
                text=text,
                start=start,
                end=end,
            )
        low, high = _bind_ends(table, known, rule, text)
        parsed = table.meta.get("subscript")
        is_partial = isinstance(parsed, SubscriptRange) and parsed.is_partial
        reference = PartReference(known.name, low, high, is_partial, start - offset, end - offset)
        _check_direction(table, reference, text)
        _check_order(reference, rule, text, (start, end))
        if fold(known.name) == fold(rule.view):
            _check_past(reference, rule, text, (start, end))
        bind_reference(table, reference, rule.variable)
        references.setdefault((fold(known.name), low.text, high.text, is_partial), reference)
    return Query(cast(exp.Expression, tree), rule.variable, tuple(references.values()), tuple(dimensions))


def _bind_ends(table: PartTable, known: KnownTable, rule: Rule, text: str) -> tuple[Subscript, Subscript]:
    parsed = table.meta.get("subscript")
    if not isinstance(parsed, SubscriptRange):
        # A translation has already made the subscript.
        return table.reference.low, table.reference.high
    low = bind_term(parsed.low, rule.variable, rule.head, text)
    return low, low if parsed.high is parsed.low else bind_term(parsed.high, rule.variable, rule.head, text)


def _check_direction(table: PartTable, reference: PartReference, text: str) -> None:
    parsed = table.meta.get("subscript")
    for subscript, term in (
        (reference.low, parsed.low if parsed else None),
        (reference.high, parsed.high if parsed else None),
    ):
        if subscript.direction is None:
            start, end = (term.start, term.end) if isinstance(term, Term) else place_of(table)
            raise SubscriptError(
                f"{subscript} cannot be inverted: it goes up and down, so which parts read a given part of "
                f"{reference.table} could not be told. Use a subscript that only rises, such as j - 1 or j / 60.",
                text=text,
                start=start,
                end=end,
            )


def _check_order(reference: PartReference, rule: Rule, text: str, place: tuple[int, int]) -> None:
    """Refuse a range that runs backwards for good. One that does so for a few odd parts only blocks these."""
    try:
        width = reference.high.add(reference.low, "", sign=-1)
    except NotQuasiLinear:
        _fail(f"{reference} cannot be inverted: the numbers in it are too large.", text, place)
    if width.rise > 0:
        last = Partitioning(rule.length_seconds).index_at(CENTURY[1])
        is_backwards = all(width(last - x) < 0 for x in range(width.period))
    else:
        is_backwards = width.rise < 0 or any(width(x) < 0 for x in range(width.period))
    if is_backwards:
        _fail(
            f"The range {reference.low} .. {reference.high} runs backwards; write the earlier part first.", text, place
        )


def _check_past(reference: PartReference, rule: Rule, text: str, place: tuple[int, int]) -> None:
    if rule.is_initialize:
        _fail(
            f"{rule.head} reads {reference.table} itself; INITIALIZE computes the first part, "
            f"when there is none before it.",
            text,
            place,
        )
    lead = reference.high.add(Subscript.variable(rule.variable), "", sign=-1)
    if lead.rise > 0 or any(lead(x) >= 0 for x in range(1, lead.period + 1)):
        _fail(
            f"{rule.head} reads {reference}, which is not in its past; a view can read itself only at earlier parts, "
            f"such as {rule.view}[{rule.variable} - 1].",
            text,
            place,
        )


def _fail(message: str, text: str, place: tuple[int, int]) -> NoReturn:
    raise SubscriptError(message, text=text, start=place[0], end=place[1])
