"""What every contestant of an experiment can do, and the check that all of them come to the same answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import duckdb

from airflow_provider_viewdf.warehouse import Warehouse
from bench.losses import find_part, part_set


class Contestant(Protocol):
    """A way to keep a view up to date, part by part."""

    def update(self, number: int) -> object:
        """Make part `number` of the view. This is what is timed."""

    def answer(self, number: int) -> str | None:
        """The part as something that DuckDB can select from; None if it has no rows."""


class ViewDF:
    """A view of a warehouse, with its helper views."""

    def __init__(self, wh: Warehouse, view: str) -> None:
        self.wh, self.view = wh, view

    def update(self, number: int) -> None:
        self.wh.refresh(parts={self.view: part_set(number)})

    def answer(self, number: int) -> str | None:
        location = find_part(self.wh, self.view, number)
        return None if location is None else parquet(location)


def parquet(directory: str | Path) -> str:
    return f"read_parquet('{directory}/*.parquet')"


def check_same(contestants: Mapping[str, Contestant], number: int, columns: Sequence[str]) -> None:
    """All of them must have come to the same rows, or their times mean nothing."""
    answers = {name: _summarize(item.answer(number), columns) for name, item in contestants.items()}
    if len(set(answers.values())) > 1:
        found = ", ".join(f"{name} {answer}" for name, answer in answers.items())
        raise AssertionError(f"The contestants differ in part {number} (rows, sum of hashes): {found}.")
    if next(iter(answers.values()))[0] == 0:
        raise AssertionError(f"Part {number} has no rows; this would compare nothing.")


def _summarize(relation: str | None, columns: Sequence[str]) -> tuple[int, int]:
    if relation is None:
        return 0, 0
    values = ", ".join(f"CAST({column} AS BIGINT)" for column in columns)
    ((rows, total),) = duckdb.sql(f"SELECT count(*), sum(hash({values})) FROM {relation}").fetchall()
    return int(rows), int(total or 0)
