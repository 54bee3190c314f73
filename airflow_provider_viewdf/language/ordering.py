"""In which order views are computed, and whether there is such an order at all.

A view V that reads S[high(j)] for its part j waits for a part of S that ends at most `displacement` seconds after V[j]
does. With those as the lengths of edges, a cycle of length zero or more is a view that waits for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_provider_viewdf.definitions import Definition, PartReference, fold
from airflow_provider_viewdf.errors import CyclicDefinitionError
from airflow_provider_viewdf.subscripts import NotQuasiLinear, Subscript


@dataclass(frozen=True, slots=True)
class Edge:
    """A view reads another (or itself). `displacement` is None if it reads ever further into the future."""

    reader: str
    read: str
    displacement: int | None
    reference: PartReference
    variable: str
    is_initialize: bool


def order_views(definitions: Mapping[str, Definition]) -> dict[str, tuple[int, int]]:
    """An offset in seconds and a level for each view, by folded name.

    Computing parts in the order of (end of the part in seconds + offset of the view, level of the view, name) computes
    whatever a part reads before it.
    """
    views = {fold(item.name) for item in definitions.values() if item.kind == "view"}
    edges = [edge for edge in _edges(definitions) if edge.reader in views]
    offsets = _relax(views, [(edge.reader, edge.read, edge.displacement or 0) for edge in edges])
    tight = [
        edge
        for edge in edges
        if edge.displacement is not None and offsets[edge.reader] == offsets[edge.read] + edge.displacement
    ]
    levels = _relax(views, [(edge.reader, edge.read, 1) for edge in tight])
    return {view: (offsets[view], levels[view]) for view in views}


def _relax(views: set[str], edges: list[tuple[str, str, int]]) -> dict[str, int]:
    """The least numbers >= 0 with number[reader] >= number[read] + distance, for a graph without positive cycles."""
    numbers = dict.fromkeys(views, 0)
    for _ in views:
        before = dict(numbers)
        for reader, read, distance in edges:
            numbers[reader] = max(numbers[reader], numbers[read] + distance)
        if numbers == before:
            break
    return numbers


def check_order(definitions: Mapping[str, Definition], text: str, written: Mapping[str, Definition]) -> None:
    """Raise CyclicDefinitionError if views wait for each other. `written` are the definitions that `text` holds."""

    def fail(message: str, edge: Edge) -> None:
        definition = written.get(edge.reader)
        if definition is None:
            raise CyclicDefinitionError(message)
        start = definition.offset + edge.reference.start
        raise CyclicDefinitionError(message, text=text, start=start, end=definition.offset + edge.reference.end)

    edges = list(_edges(definitions))
    for edge in edges:
        if edge.displacement is None:
            name = definitions[edge.reader].name
            fail(
                f"{name}[{edge.variable}] reads {edge.reference}, which lies ever further in the future; "
                f"read parts at a bounded distance.",
                edge,
            )
    starts = [edge for edge in edges if edge.is_initialize]
    if cycle := _find_cycle(starts, ignore_distance=True):
        fail(
            f"The INITIALIZE queries read each other in a circle, {_describe(cycle, definitions)}, "
            f"so none can be the first.",
            _written_edge(cycle, written),
        )
    if cycle := _find_cycle(edges):
        fail(
            f"These views need each other within one part: {_describe(cycle, definitions)}. "
            f"Let one of them read an earlier part.",
            _written_edge(cycle, written),
        )


def _written_edge(cycle: list[Edge], written: Mapping[str, Definition]) -> Edge:
    return next((edge for edge in cycle if edge.reader in written), cycle[0])


def _describe(cycle: list[Edge], definitions: Mapping[str, Definition]) -> str:
    first = definitions[cycle[0].reader].name
    return " -> ".join([f"{first}[{cycle[0].variable}]", *(str(edge.reference) for edge in cycle)])


def _edges(definitions: Mapping[str, Definition]) -> Iterator[Edge]:
    for definition in definitions.values():
        for query in (definition.initialize, definition.update):
            if query is None:
                continue
            for reference in query.references:
                read = definitions.get(fold(reference.table))
                if read is not None and read.kind == "view":
                    yield Edge(
                        fold(definition.name),
                        fold(read.name),
                        find_displacement(definition, reference, read),
                        reference,
                        query.variable,
                        query is definition.initialize,
                    )


def find_displacement(reader: Definition, reference: PartReference, read: Definition) -> int | None:
    """The most seconds by which a part that is read ends after the part that reads it; None if there is no most."""
    one = Subscript.constant(1)
    try:
        read_end = reference.high.add(one, "").multiply(Subscript.constant(read.length_seconds), "")
        own_end = Subscript.variable("j").add(one, "").multiply(Subscript.constant(reader.length_seconds), "")
        distance = read_end.add(own_end, "", sign=-1)
    except NotQuasiLinear:
        return None
    if distance.rise > 0:
        return None
    return max(distance(x) for x in range(1, distance.period + 1))


def _find_cycle(edges: list[Edge], *, ignore_distance: bool = False) -> list[Edge] | None:
    """A cycle of total displacement zero or more, if there is one; any cycle at all with `ignore_distance`."""
    names = list(dict.fromkeys(name for edge in edges for name in (edge.reader, edge.read)))
    # One more per edge, and everything else so much larger that the ones cannot add up to it: a cycle of total
    # zero then has a positive weight, and one that is negative keeps a negative weight.
    weights = [(0 if ignore_distance else edge.displacement or 0) * (len(names) + 1) + 1 for edge in edges]
    distance = dict.fromkeys(names, 0)
    through: dict[str, Edge] = {}
    last = ""
    for _ in range(len(names) + 1):
        last = ""
        for edge, weight in zip(edges, weights, strict=True):
            if distance[edge.read] + weight > distance[edge.reader]:
                distance[edge.reader] = distance[edge.read] + weight
                through[edge.reader] = edge
                last = edge.reader
        if not last:
            return None
    for _ in names:
        last = through[last].read
    cycle = [through[last]]
    while cycle[-1].read != last:
        cycle.append(through[cycle[-1].read])
    first = min(range(len(cycle)), key=lambda index: names.index(cycle[index].reader))
    return cycle[first:] + cycle[:first]
