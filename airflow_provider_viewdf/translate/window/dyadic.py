"""Dyadic: blocks of 2, 4, 8, ... parts that end at each part; a window is made of a few of them."""

from __future__ import annotations

from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.views import (
    Partials,
    WindowView,
    combine,
    finalize,
    rows_of,
    union,
    write_view,
)


def find_blocks(width: int) -> list[tuple[int, int]]:
    """The sizes of the blocks of a window, and how many parts lie behind each: 10 is 8 with none, and 2 with 8."""
    blocks, behind = [], 0
    for size in (2**power for power in reversed(range(width.bit_length()))):
        if width & size:
            blocks.append((size, behind))
            behind += size
    return blocks


def write_dyadic(view: WindowView, partials: Partials) -> tuple[tuple[GeneratedView, ...], str]:
    """The views of blocks, and the view's UPDATE over them."""
    keys, width = partials.columns, view.frame.width
    blocks: list[GeneratedView] = []
    size = 2
    while size <= width:
        smaller, half = _name(partials, size // 2), size // 2

        def query(variable: str, smaller: str = smaller, half: int = half) -> str:
            halves = [f"{smaller}[{variable} - {half}]", f"{smaller}[{variable}]"]
            return combine(keys, partials.states, union([rows_of(keys, partials.states, item) for item in halves]))

        blocks.append(write_view(_name(partials, size), query("i"), query("j"), view.frame.base_seconds))
        size *= 2
    states = view.query.states
    pieces = [
        rows_of(keys, states, f"{_name(partials, size)}[{view.frame.at('j', behind)}]")
        for size, behind in find_blocks(width)
    ]
    return tuple(blocks), finalize(view, f"({combine(keys, states, union(pieces))}) AS merged")


def _name(partials: Partials, size: int) -> str:
    return partials.name if size == 1 else f"{partials.name}_block{size}"
