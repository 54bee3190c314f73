"""Delta: the state of the last window, plus the part that enters it, minus the part that leaves it."""

from __future__ import annotations

from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.views import (
    Partials,
    WindowView,
    combine,
    drop_empty,
    finalize,
    rows_of,
    starting_clause,
    union,
    write_view,
)


def write_delta(view: WindowView, partials: Partials) -> tuple[tuple[GeneratedView, ...], str, str]:
    """The view's state, and the view's INITIALIZE and UPDATE over it."""
    name, keys, states = f"{view.name}_state", partials.columns, view.query.states
    width = view.frame.width
    low = f"i - {width - 1} .. i" if width > 1 else "i"
    partial = " PARTIAL" if view.frame.is_partial and width > 1 else ""
    changes = union(
        [
            rows_of(keys, states, f"{name}[j - 1]"),
            rows_of(keys, states, f"{partials.name}[j]"),
            rows_of(keys, states, f"{partials.name}[j - {width}]", sign="-"),
        ]
    )
    state = write_view(
        name,
        combine(keys, states, f"{partials.name}[{low}{partial}]"),
        combine(keys, states, changes) + drop_empty(keys),
        view.frame.base_seconds,
        starting_clause(view.starting),
    )
    at = view.frame.at
    return (state,), finalize(view, f"{name}[{at('i')}]"), finalize(view, f"{name}[{at('j')}]")
