"""Rows given as dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count, islice

from airflow_provider_viewdf.engine.sources.layouts import Layout, RowBatch, RowCollector, cut_row
from airflow_provider_viewdf.engine.sources.texts import Misfit

ROWS_PER_BATCH = 20_000
SOURCE = "rows"


def read_dicts(rows: Iterable[object], layout: Layout) -> Iterator[RowBatch]:
    """The rows of dicts, some thousands at a time; a row's number, from 1, stands for its line."""
    numbered = zip(count(1), rows)
    while chunk := list(islice(numbered, ROWS_PER_BATCH)):
        collector = RowCollector(layout, SOURCE, "row")
        for number, row in chunk:
            try:
                collector.accept(number, layout.read_mapping(row))
            except Misfit as error:
                collector.reject(number, str(error), render_row(row))
        yield collector.batch()


def render_row(row: object) -> str:
    """A row as JSON, with the text of what JSON does not have."""
    try:
        return cut_row(json.dumps(row, default=str, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return cut_row(repr(row))
