"""In which order views are computed: whatever a part reads comes before it."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import CyclicDefinitionError
from airflow_provider_viewdf.language import order_views, parse_script

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;\n"
VIEW = "CREATE VIEW {0} AS INITIALIZE {0}[i] AS SELECT x FROM M[0] UPDATE {0}[j] AS SELECT x FROM {1} PARTITION LENGTH {2};\n"

LENGTHS = {"A": 60, "B": 60, "C": 3600, "D": 120}


def subscript(length: int, read_length: int, shift: int) -> str:
    if length == read_length:
        return f"j + {shift}"
    if length > read_length:
        return f"j * {length // read_length} + {shift}"
    return f"j / {read_length // length} + {shift}"


EDGES = st.lists(
    st.tuples(st.sampled_from("ABCD"), st.sampled_from("ABCD"), st.integers(-3, 2)), min_size=1, max_size=6
)


def test_views_that_read_the_present_are_ordered_by_level() -> None:
    script = STREAM + VIEW.format("A", "B[j]", 60) + VIEW.format("B", "C[j]", 60) + VIEW.format("C", "M[j]", 60)
    definitions = {fold(item.name): item for item in parse_script(script)}
    assert order_views(definitions) == {"a": (0, 2), "b": (0, 1), "c": (0, 0)}


def test_a_view_that_reads_the_hour_around_it_waits_for_the_end_of_the_hour() -> None:
    script = STREAM + VIEW.format("A", "H[j / 60]", 60) + VIEW.format("H", "M[j * 60 .. j * 60 + 59]", 3600)
    definitions = {fold(item.name): item for item in parse_script(script)}
    assert order_views(definitions) == {"a": (59 * 60, 1), "h": (0, 0)}


@settings(max_examples=200, deadline=None)
@given(EDGES)
def test_whatever_a_part_reads_is_computed_before_it(edges: list[tuple[str, str, int]]) -> None:
    reads: dict[str, list[str]] = {name: ["M[j]"] for name in LENGTHS}
    for reader, read, shift in edges:
        if reader != read:
            reads[reader].append(f"{read}[{subscript(LENGTHS[reader], LENGTHS[read], shift)}]")
    script = STREAM + "".join(VIEW.format(name, ", ".join(tables), LENGTHS[name]) for name, tables in reads.items())
    try:
        definitions = {fold(item.name): item for item in parse_script(script)}
    except CyclicDefinitionError:
        assume(False)
    order = order_views(definitions)

    def rank(view: str, index: int) -> tuple[int, int, str]:
        offset, level = order[view]
        return definitions[view].partitioning.end_seconds(index) + offset, level, view

    for name in ("a", "b", "c", "d"):
        query = definitions[name].update
        assert query is not None
        for index in range(1, 130):
            for reference in query.references:
                if fold(reference.table) != "m":
                    assert rank(fold(reference.table), reference.high(index)) < rank(name, index)
