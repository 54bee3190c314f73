"""The strategies: each writes the helper views that it needs beside the partial aggregates, and the view's two queries."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.delta import write_delta
from airflow_provider_viewdf.translate.window.dyadic import write_dyadic
from airflow_provider_viewdf.translate.window.prefix import write_prefix
from airflow_provider_viewdf.translate.window.views import (
    Partials,
    WindowView,
    finalize_from_partials,
    query_source,
    write_view,
)

# In the order in which they are offered to people.
STRATEGIES = ("delta", "dyadic", "merge", "prefix", "recompute")


@dataclass(frozen=True, slots=True)
class Written:
    """The helper views of a strategy in the order in which they read each other, and the view."""

    helpers: tuple[GeneratedView, ...]
    view: GeneratedView


def write_strategy(strategy: str, view: WindowView, partials: Partials | None) -> Written:
    """The views that maintain a window by a strategy. Only recompute does without partial aggregates."""
    if strategy == "recompute" or partials is None:
        return Written((), _write_final(view, query_source(view, "i"), query_source(view, "j")))
    initialize = finalize_from_partials(view, partials, "i")
    if strategy == "delta":
        helpers, initialize, update = write_delta(view, partials)
    elif strategy == "prefix":
        helpers, update = write_prefix(view, partials)
    elif strategy == "dyadic":
        helpers, update = write_dyadic(view, partials)
    else:
        helpers, update = (), finalize_from_partials(view, partials, "j")
    return Written((partials.write(), *helpers), _write_final(view, initialize, update))


def _write_final(view: WindowView, initialize: str, update: str) -> GeneratedView:
    return write_view(view.name, initialize, update, view.frame.view_seconds, view.clauses)
