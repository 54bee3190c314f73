"""All steps of a pattern query, in their order."""

from __future__ import annotations

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.translate.pattern.dominance import find_dominance
from airflow_provider_viewdf.translate.pattern.explain import draw_machine, explain_machine
from airflow_provider_viewdf.translate.pattern.machine import build_machine
from airflow_provider_viewdf.translate.pattern.memory import Memory
from airflow_provider_viewdf.translate.pattern.query import PatternQuery
from airflow_provider_viewdf.translate.pattern.write_views import Clauses, Rows, Shape, ViewWriter
from airflow_provider_viewdf.translate.translation import Source, Translation


def translate_query(query: PatternQuery, source: Source, clauses: Clauses) -> Translation:
    # Only of a stream: the columns of a view may become known later, and the same text must be translated the same way.
    columns = source.columns if source.kind == "stream" else ()
    memory = Memory(query, {fold(column.name): column.type for column in columns})
    machine = build_machine(query, memory)
    dominance = find_dominance(machine)
    rows, why = _choose_rows(query, source, clauses)
    shape = Shape(dominance.needs_one_run, rows)
    writer = ViewWriter(query, machine, dominance, shape, clauses)
    return Translation(
        (writer.write_helper(),),
        writer.write_view(),
        explain_machine(query, machine, dominance, shape, why),
        draw_machine(machine),
    )


def _choose_rows(query: PatternQuery, source: Source, clauses: Clauses) -> tuple[Rows, str]:
    """What is known of the rows that a group has in a part, and why."""
    if not query.groups:
        return "many", "all rows are one sequence"
    if query.is_across_gaps:
        return "many", "ACROSS GAPS also keeps groups that have no row in a part"
    if clauses.length_seconds != clauses.source_length_seconds:
        return "many", f"a part of the view covers several parts of {query.source}"
    if source.unique and {fold(name) for name in source.unique} <= {fold(name) for name in query.groups}:
        return "one", f"{source.name} has UNIQUE ({', '.join(source.unique)})"
    return "seen", "how many rows a group has is seen when the part is computed"
