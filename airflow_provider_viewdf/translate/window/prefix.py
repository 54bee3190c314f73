"""Prefix: cumulative states since the beginning; a window is the difference of two of them."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.views import (
    Partials,
    WindowView,
    drop_empty,
    finalize,
    group_by,
    join_lines,
    rows_of,
    starting_clause,
    union,
    write_view,
)


def write_prefix(view: WindowView, partials: Partials) -> tuple[tuple[GeneratedView, ...], str]:
    """The cumulative view, and the view's UPDATE over it."""
    keys = partials.columns
    # One for all windows over the same partials; one of its own if the view says where it starts.
    name = f"{partials.name}_total" if view.starting is None else f"{view.name}_total"
    totals = [state for state in partials.states if state.is_additive]
    added = [*keys, *(f"{state.add(state.name, state.total_type)} AS {state.name}" for state in totals)]
    both = union([rows_of(keys, totals, f"{name}[j - 1]"), rows_of(keys, totals, f"{partials.name}[j]")])
    start = view.starting - timedelta(seconds=view.frame.window_seconds) if view.starting is not None else None
    total = write_view(
        name,
        f"SELECT {join_lines(added)}\n    FROM {partials.name}[i]{group_by(keys)}",
        f"SELECT {join_lines(added)}\n    FROM {both}{group_by(keys)}",
        view.frame.base_seconds,
        starting_clause(start),
    )
    states = view.query.states
    ends = union(
        [
            rows_of(keys, states, f"{name}[{view.frame.at('j')}]"),
            rows_of(keys, states, f"{name}[{view.frame.at('j', view.frame.width)}]", sign="-"),
        ]
    )
    window = [*keys, *(f"CAST(coalesce(sum({state.name}), 0) AS {state.type}) AS {state.name}" for state in states)]
    difference = f"SELECT {join_lines(window)}\n    FROM {ends}{group_by(keys)}{drop_empty(keys)}"
    return (total,), finalize(view, f"({difference}) AS difference")
