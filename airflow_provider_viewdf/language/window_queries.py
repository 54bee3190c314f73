"""Window queries: `SELECT ... FROM S [WINDOW 60 minutes] ...`, from their text to views."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.checks import refuse_reserved_outputs, refuse_undetermined
from airflow_provider_viewdf.language.dialect import is_same_text, parse_query
from airflow_provider_viewdf.language.statements import Statement
from airflow_provider_viewdf.language.window_syntax import WindowClause, check_multiple, is_window, split_window
from airflow_provider_viewdf.parts import format_length
from airflow_provider_viewdf.translate.translation import Source, Translation
from airflow_provider_viewdf.translate.tree import PartTable, place_of
from airflow_provider_viewdf.translate.window.choose import Choice, Facts, choose_strategy, find_possible
from airflow_provider_viewdf.translate.window.explain import describe_window, draw_window
from airflow_provider_viewdf.translate.window.frame import Frame
from airflow_provider_viewdf.translate.window.query import take_apart
from airflow_provider_viewdf.translate.window.share import Family, StoredFamily, name_partials, share_partials
from airflow_provider_viewdf.translate.window.strategies import STRATEGIES, write_strategy
from airflow_provider_viewdf.translate.window.views import WindowView, starting_clause

__all__ = ["is_window", "translate_windows", "window_length"]

SourceOf = Callable[[str, int, int], Source]


def window_length(item: Statement, source_of: SourceOf, text: str) -> int:
    """The partition length of the view."""
    return _read(item, source_of, text).frame.view_seconds


def translate_windows(
    items: Sequence[Statement],
    source_of: SourceOf,
    text: str,
    known: Mapping[str, Definition],
    choices: Mapping[str, Mapping[str, str]],
) -> dict[str, Translation]:
    """By folded name of the view. Views over the same source, filter and group keys share their helper views."""
    views: dict[str, WindowView] = {}
    chosen: dict[str, Choice] = {}
    kept: dict[str, Mapping[str, str]] = {}
    for item in items:
        key = fold(item.name.text)
        before = known.get(key)
        # What was chosen for another text says nothing about this one.
        is_same = before is not None and is_same_text(before.text, text[item.start : item.end])
        kept[key] = choices.get(key, {}) if is_same else {}
        views[key] = _make_view(item, _read(item, source_of, text), choices.get(key, {}), text)
        chosen[key] = _choose(item, views[key], kept[key], _find_facts(views[key], known), text)
    others = [found for name, found in choices.items() if name not in kept]
    stored = [family for found in (*others, *kept.values()) if (family := StoredFamily.read(found)) is not None]
    shared = share_partials(
        {key: view for key, view in views.items() if chosen[key].strategy != "recompute"},
        {key: found.get("partials", "") for key, found in kept.items()},
        stored,
    )
    return {key: _translate(view, chosen[key], shared.get(key)) for key, view in views.items()}


@dataclass(frozen=True, slots=True)
class _Read:
    """A query with its window, not yet taken apart."""

    select: exp.Select
    source: Source
    alias: str
    clause: WindowClause
    frame: Frame


def _read(item: Statement, source_of: SourceOf, text: str) -> _Read:
    clause, tokens, before = split_window(item.plain, text)
    select = parse_query(tokens, text)
    # Checked again in what it becomes, but there the place is no longer known.
    refuse_undetermined(select, item.name.text, text)
    refuse_reserved_outputs(select, item.name.text, text)
    table = _find_table(select, before, text)
    start, end = place_of(table)
    source = source_of(table.name, start, end)
    if source.kind == "dimension":
        _fail(
            f"{source.name} is a dimension table, which has no parts, so no window can slide over it.", text, start, end
        )
    length = source.length_seconds
    check_multiple(clause.window_seconds, length, "window", source.name, text, clause.window_place)
    slide = clause.slide_seconds or item.length_seconds or length
    place = clause.slide_place if clause.slide_seconds else item.length_place
    if clause.slide_seconds and item.length_seconds and item.length_seconds != clause.slide_seconds:
        _fail(
            f"The view slides by {format_length(slide)}, so that is the length of its parts; "
            f"leave PARTITION LENGTH out.",
            text,
            *item.length_place,
        )
    check_multiple(slide, length, "slide" if clause.slide_seconds else "partition length", source.name, text, place)
    assert isinstance(select, exp.Select)
    frame = Frame(length, slide, clause.window_seconds, clause.is_partial)
    return _Read(select, source, table.alias, clause, frame)


def _find_table(select: exp.Expr, before: Token, text: str) -> exp.Table:
    """The one table of the query, behind which the window must stand."""
    table = select.args["from_"].this if isinstance(select, exp.Select) and select.args.get("from_") else None
    if not isinstance(table, exp.Table) or place_of(table)[1] != before.end + 1:
        _fail(
            "A window stands behind the one table that the view reads: SELECT ... FROM S [WINDOW 60 minutes] GROUP BY ...; "
            "for anything between them, write a view first and let the window slide over that.",
            text,
            before.start,
            before.end + 1,
        )
    if isinstance(table, PartTable):
        _fail(
            f"The window says which parts of {table.name} are read, so a subscript has no place here; leave it out.",
            text,
            *place_of(table),
        )
    joins = [*(select.args.get("joins") or ()), *(table.args.get("joins") or ())]
    if joins:
        start, end = place_of(joins[0])
        _fail(
            "A window slides over one table; write a view that joins the tables first, and let the window slide over that.",
            text,
            start,
            end,
        )
    return table


def _make_view(item: Statement, read: _Read, before: Mapping[str, str], text: str) -> WindowView:
    query = take_apart(read.select, read.source, read.alias, text)
    if not query.aggregates and not query.keys:
        start, end = place_of(read.select)
        _fail("A window query has aggregates or GROUP BY; without them there is nothing to slide.", text, start, end)
    clauses = ["STARTING LATEST" if item.starting_latest else starting_clause(item.starting)]
    if item.keys:
        clauses.append(f"KEY ({', '.join(key.text for key in item.keys)})")
    if item.retain_seconds:
        clauses.append(f"RETAIN '{format_length(item.retain_seconds)}'")
    # As it was before, if it was there before: RETAIN can be changed without computing anything anew.
    state = before.get("state", "apart" if item.retain_seconds else "own")
    written = " ".join(part for part in clauses if part)
    return WindowView(item.name.text, query, read.frame, item.starting, written, may_keep_state=state == "own")


def _find_facts(view: WindowView, known: Mapping[str, Definition]) -> Facts:
    """How many rows a part of the source has, and how many groups, if partial aggregates by these keys are there already."""
    source, partials = known.get(fold(view.query.source.name)), known.get(fold(name_partials(view)))
    return Facts(
        source.rows_per_part if source is not None else 0.0, partials.rows_per_part if partials is not None else 0.0
    )


def _choose(item: Statement, view: WindowView, kept: Mapping[str, str], facts: Facts, text: str) -> Choice:
    possible = find_possible(view.query)
    for name, value in item.settings:
        if fold(name.text) != "strategy":
            _fail(f"WITH knows strategy only, not {name.text}.", text, name.start, name.end)
        strategy = fold(value.text)
        if strategy not in STRATEGIES:
            offer = f"{', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}"
            _fail(f"There is no strategy {value.text}; use {offer}.", text, value.start, value.end)
        if possible[strategy]:
            able = [other for other in STRATEGIES if not possible[other]]
            _fail(
                f"The strategy {strategy} cannot compute {view.name}: {possible[strategy]}; use {' or '.join(able)}.",
                text,
                value.start,
                value.end,
            )
        return Choice(strategy, "asked for by WITH.")
    before = kept.get("strategy", "")
    if before in STRATEGIES and not possible[before]:
        return Choice(before, kept.get("reason", "chosen when the view was first applied."))
    return choose_strategy(view.query, view.frame, facts)


def _translate(view: WindowView, choice: Choice, family: Family | None) -> Translation:
    partials = family.partials if family is not None else None
    written = write_strategy(choice.strategy, view, partials)
    choices = [("strategy", choice.strategy), ("reason", choice.reason)]
    if choice.strategy == "delta":
        choices.append(("state", "own" if view.may_keep_state else "apart"))
    if family is not None:
        choices += [("partials", family.partials.name), ("states", json.dumps(family.dump()))]
    return Translation(
        written.helpers,
        written.view,
        describe_window(view, choice, written, partials),
        draw_window(view, written),
        tuple(choices),
    )


def _fail(message: str, text: str, start: int, end: int) -> NoReturn:
    raise LanguageError(message, text=text, start=start, end=end)
