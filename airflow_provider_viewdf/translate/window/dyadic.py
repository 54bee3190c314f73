"""Dyadic: blocks of 8, 64, 512, ... parts that end at each part; a window is made of a few of them.

Of 8 rather than 2: a block is a part of a view of its own, with a job to make it, which takes as long as reading a dozen parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.frame import shift
from airflow_provider_viewdf.translate.window.states import State
from airflow_provider_viewdf.translate.window.views import (
    Partials,
    WindowView,
    combine,
    finalize,
    rows_of,
    union,
    write_view,
)

# How many blocks make the next larger one.
FANOUT = 8


def find_blocks(width: int) -> list[tuple[int, int]]:
    """The sizes of the blocks of a window, and how many parts lie behind each: 18 is 8 with none, 8 with 8, 1 with 16, 1 with 17."""
    blocks, behind = [], 0
    for size in reversed(_list_sizes(width)):
        while behind + size <= width:
            blocks.append((size, behind))
            behind += size
    return blocks


def _list_sizes(width: int) -> list[int]:
    """A size of which a window has a single block is left out: it would be read as often as it is made."""
    sizes = [1]
    while 2 * sizes[-1] * FANOUT <= width:
        sizes.append(sizes[-1] * FANOUT)
    return sizes


def write_dyadic(view: WindowView, partials: Partials) -> tuple[tuple[GeneratedView, ...], str]:
    """The views of blocks, and the view's UPDATE over them."""
    keys, width = partials.columns, view.frame.width
    blocks: list[GeneratedView] = []
    for size in _list_sizes(width)[1:]:
        smaller = size // FANOUT
        pieces = [(smaller, smaller * number) for number in range(FANOUT)]

        def query(variable: str, pieces: list[tuple[int, int]] = pieces) -> str:
            subscripts = [(piece, shift(variable, 1, behind)) for piece, behind in pieces]
            return combine(keys, partials.states, _read(partials, partials.states, subscripts))

        blocks.append(write_view(_name(partials, size), query("i"), query("j"), view.frame.base_seconds))
    states = view.query.states
    subscripts = [(size, view.frame.at("j", behind)) for size, behind in find_blocks(width)]
    return tuple(blocks), finalize(view, f"({combine(keys, states, _read(partials, states, subscripts))}) AS merged")


def _read(partials: Partials, states: Sequence[State], pieces: Sequence[tuple[int, str]]) -> str:
    """The states of blocks, newest first. Single parts lie next to each other, and are read as one range."""
    singles = [subscript for size, subscript in pieces if size == 1]
    tables = [f"{_name(partials, size)}[{subscript}]" for size, subscript in pieces if size > 1]
    if singles:
        span = singles[0] if len(singles) == 1 else f"{singles[-1]} .. {singles[0]}"
        tables.append(f"{partials.name}[{span}]")
    if len(tables) == 1:
        return tables[0]
    return union([rows_of(partials.columns, states, table) for table in tables])


def _name(partials: Partials, size: int) -> str:
    return partials.name if size == 1 else f"{partials.name}_block{size}"
