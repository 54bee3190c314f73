"""Delta: the state of the last window, plus the part that enters it, minus the part that leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_viewdf.definitions import OWN_PREFIX
from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.query import quote
from airflow_provider_viewdf.translate.window.views import (
    Partials,
    WindowView,
    combine,
    drop_empty,
    finalize,
    rename,
    rows_of,
    starting_clause,
    union,
    write_view,
)


def write_delta(view: WindowView, partials: Partials) -> tuple[tuple[GeneratedView, ...], str, str]:
    """The helper view of states, if there has to be one, and the view's INITIALIZE and UPDATE.

    A view that shows a row for each state keeps them itself, in columns of its own: that spares a job for each part.
    """
    frame = view.frame
    if not view.may_keep_state or view.query.having or frame.view_seconds != frame.base_seconds:
        return _write_with_states_apart(view, partials)
    kept = _find_kept(view, partials)
    own = [rename(column, name) for column, name in kept.items() if name.startswith(OWN_PREFIX)]
    before = f"SELECT {', '.join(rename(name, column) for column, name in kept.items())} FROM {view.name}[j - 1]"
    initialize, update = _write_states(view, partials, before)
    return (), finalize(view, f"({initialize}) AS state", own), finalize(view, f"({update}) AS state", own)


def _write_with_states_apart(view: WindowView, partials: Partials) -> tuple[tuple[GeneratedView, ...], str, str]:
    name, at = f"{view.name}_state", view.frame.at
    before = rows_of(partials.columns, view.query.states, f"{name}[j - 1]")
    starting = starting_clause(view.starting)
    state = write_view(name, *_write_states(view, partials, before), view.frame.base_seconds, starting)
    return (state,), finalize(view, f"{name}[{at('i')}]"), finalize(view, f"{name}[{at('j')}]")


def _write_states(view: WindowView, partials: Partials, before: str) -> tuple[str, str]:
    """The states of the first window, and those of a later one, given the rows of states before it."""
    keys, states, width = partials.columns, view.query.states, view.frame.width
    low = f"i - {width - 1} .. i" if width > 1 else "i"
    partial = " PARTIAL" if view.frame.is_partial and width > 1 else ""
    changes = union(
        [
            before,
            rows_of(keys, states, f"{partials.name}[j]"),
            rows_of(keys, states, f"{partials.name}[j - {width}]", sign="-"),
        ]
    )
    return (
        combine(keys, states, f"{partials.name}[{low}{partial}]"),
        combine(keys, states, changes) + drop_empty(keys),
    )


def _find_kept(view: WindowView, partials: Partials) -> Mapping[str, str]:
    """By key and state: the column of the view that has it, one that it shows anyway or one of its own."""
    shown = {output.value: quote(output.name) for output in reversed(view.query.outputs)}
    needed: Sequence[str] = [*partials.columns, *(state.name for state in view.query.states)]
    return {column: shown.get(column) or _name_own(column, partials.columns) for column in needed}


def _name_own(column: str, keys: Sequence[str]) -> str:
    # By its number, since a key may be called like anything.
    return f"{OWN_PREFIX}key_{keys.index(column) + 1}" if column in keys else f"{OWN_PREFIX}{column}"
