"""The texts of the views that a window query becomes, as far as all strategies share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from airflow_provider_viewdf.parts import format_time
from airflow_provider_viewdf.translate.translation import GeneratedView
from airflow_provider_viewdf.translate.window.frame import Frame
from airflow_provider_viewdf.translate.window.query import SOURCE_NAME, Key, TakenApart, quote
from airflow_provider_viewdf.translate.window.states import State


@dataclass(frozen=True, slots=True)
class WindowView:
    """A view over a window, as it was written. `clauses` are what stands behind its query, such as STARTING.

    `may_keep_state`: what it goes on from may be in columns of its own, since its parts are not archived.
    """

    name: str
    query: TakenApart
    frame: Frame
    starting: datetime | None = None
    clauses: str = ""
    may_keep_state: bool = True


@dataclass(frozen=True, slots=True)
class Partials:
    """The view of per-part partial aggregates that all windows over the same rows and keys share."""

    name: str
    source: str
    filter: str
    keys: tuple[Key, ...]
    states: tuple[State, ...]
    frame: Frame

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(quote(key.column) for key in self.keys)

    def write(self) -> GeneratedView:
        outputs = [
            key.text if key.text == quote(key.column) else f"{key.text} AS {quote(key.column)}" for key in self.keys
        ]
        outputs += [f"{state.rows} AS {state.name}" for state in self.states]

        def query(variable: str) -> str:
            text = f"SELECT {join_lines(outputs)}\n    FROM {quote(self.source)}[{self.frame.within_base(variable)}]"
            text += f"\n    WHERE {self.filter}" if self.filter else ""
            return text + (f"\n    GROUP BY {', '.join(key.text for key in self.keys)}" if self.keys else "")

        return write_view(self.name, query("i"), query("j"), self.frame.base_seconds)


def write_view(name: str, initialize: str, update: str, length_seconds: int, clauses: str = "") -> GeneratedView:
    text = (
        f"CREATE VIEW {name} AS\n"
        f"  INITIALIZE {name}[i] AS\n    {initialize}\n"
        f"  UPDATE {name}[j] AS\n    {update}\n"
        f"  PARTITION LENGTH {length_seconds}"
    )
    return GeneratedView(name, f"{text} {clauses}" if clauses else text)


def starting_clause(time: datetime | None) -> str:
    return f"STARTING '{format_time(time)}'" if time is not None else ""


def join_lines(items: Sequence[str]) -> str:
    return ",\n      ".join(items) if len(", ".join(items)) > 90 else ", ".join(items)


def combine(keys: Sequence[str], states: Sequence[State], table: str) -> str:
    """States of a table of states, put together for each key."""
    outputs = [*keys, *(f"{state.add(state.name)} AS {state.name}" for state in states)]
    return f"SELECT {join_lines(outputs)}\n    FROM {table}{group_by(keys)}"


def group_by(keys: Sequence[str]) -> str:
    return f"\n    GROUP BY {', '.join(keys)}" if keys else ""


def drop_empty(keys: Sequence[str]) -> str:
    """Groups without rows are gone. Without keys there is always one group, also when nothing is in it."""
    return "\n    HAVING sum(row_count) <> 0" if keys else ""


def rows_of(keys: Sequence[str], states: Sequence[State], table: str, sign: str = "") -> str:
    """The states of one part as they are, or with the opposite sign."""
    outputs = [*keys, *(f"-{state.name} AS {state.name}" if sign else state.name for state in states)]
    return f"SELECT {', '.join(outputs)} FROM {table}"


def rename(value: str, name: str) -> str:
    return value if value == name else f"{value} AS {name}"


def union(queries: Sequence[str]) -> str:
    inside = "\n      UNION ALL ".join(queries)
    return f"(\n      {inside}) AS parts"


def finalize(view: WindowView, table: str, more: Sequence[str] = ()) -> str:
    """The columns of the view from the states of its window, and more. What HAVING drops stays in the helper views."""
    outputs = [*(rename(output.value, quote(output.name)) for output in view.query.outputs), *more]
    having = f"\n    WHERE {view.query.having}" if view.query.having else ""
    return f"SELECT {join_lines(outputs)}\n    FROM {table}{having}"


def finalize_from_partials(view: WindowView, partials: Partials, variable: str) -> str:
    """The view's part from the partial aggregates of every part in its window."""
    covered = f"{partials.name}[{view.frame.covered(variable)}]"
    return finalize(view, f"({combine(partials.columns, view.query.states, covered)}) AS merged")


def query_source(view: WindowView, variable: str) -> str:
    """The query itself, over every part of the source in its window."""
    table = f"{quote(view.query.source.name)}[{view.frame.covered_source(variable)}]"
    return view.query.direct.replace(SOURCE_NAME, table)
