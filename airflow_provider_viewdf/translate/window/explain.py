"""What a person is told about a window: its strategy and the reason, its helper views, and a picture of them."""

from __future__ import annotations

import re

from airflow_provider_viewdf.parts import format_length
from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.choose import Choice
from airflow_provider_viewdf.translate.window.strategies import Written
from airflow_provider_viewdf.translate.window.views import Partials, WindowView

_READ = re.compile(r"(?:FROM|JOIN) `?(\w+)`?\[")


def describe_window(view: WindowView, choice: Choice, written: Written, partials: Partials | None) -> tuple[str, ...]:
    frame, query = view.frame, view.query
    kind = "also while it fills" if frame.is_partial else "full only"
    lines = [
        f"{view.name} is over a window of {format_length(frame.window_seconds)} of {query.source.name} "
        f"({frame.width} parts of {format_length(frame.base_seconds)}), {kind}, "
        f"sliding by {format_length(frame.view_seconds)}.",
        f"Strategy {choice.strategy}: {choice.reason}",
    ]
    if partials is not None:
        states = ", ".join(state.name for state in partials.states)
        lines.append(f"{partials.name} keeps {states} of each part; every window over the same rows and keys reads it.")
    if choice.strategy == "delta" and [helper.name for helper in written.helpers] == [partials and partials.name]:
        lines.append(f"{view.name} keeps the state of its window in columns that only its own next part reads.")
    others = [helper.name for helper in written.helpers if partials is None or helper.name != partials.name]
    if others:
        lines.append(f"Further helper views: {', '.join(others)}.")
    return tuple(lines)


def draw_window(view: WindowView, written: Written) -> str:
    """Which view reads which, in Mermaid."""
    lines = ["flowchart LR"]
    for item in (*written.helpers, written.view):
        lines += [f"  {name} --> {item.name}" for name in _names_read(item)]
    return "\n".join(lines)


def _names_read(view: GeneratedView) -> list[str]:
    return sorted(set(_READ.findall(view.text)))
