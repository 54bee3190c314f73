"""From the automaton and the predicates to a machine: states, and edges with conditions and what a run then remembers.

A state is a position of the automaton, and which variables have been bound before as far as anything depends on it: whether
a row is the first of its variable decides about `v[1]`, `v[i-1]` and `first(v.x)`, and is so known from the state alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.translate.pattern.automaton import Automaton, build_automaton
from airflow_provider_viewdf.translate.pattern.memory import (
    ROW,
    RUN,
    Binding,
    Memory,
    describe,
    hold_outputs,
    write_sql,
)
from airflow_provider_viewdf.translate.pattern.query import PatternQuery, Predicate, Value, variables_of

MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class State:
    """A state, by its number from 1 on. `label` names its variable, and which copy of it if there are several."""

    number: int
    variable: str
    label: str
    is_accepting: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """A row that takes a run from a state to another, or begins one if `source` is 0.

    `conditions` are SQL over the row and the run, `reads` the run's fields in them. `fields` are the fields of the run after
    the row. `reasons` are the conditions as a person would write them.
    """

    source: int
    target: int
    conditions: tuple[str, ...]
    reads: frozenset[str]
    fields: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """`tests` gives for every variable the row's field that says whether it meets the variable's own predicates, or ""."""

    states: tuple[State, ...]
    edges: tuple[Edge, ...]
    memory: Memory
    tests: tuple[tuple[str, str], ...]

    def edges_from(self, state: int) -> list[Edge]:
        """The edges from a state, those to the left first; from 0, those that begin a run."""
        return [edge for edge in self.edges if edge.source == state]

    @property
    def accepting(self) -> list[int]:
        return [state.number for state in self.states if state.is_accepting]


class TooManyStates(Exception):
    """The machine would be larger than any that makes sense."""


MOST_STATES = 200

_Place = tuple[int, frozenset[str]]


def build_machine(query: PatternQuery, memory: Memory) -> Machine:
    automaton = build_automaton(query.regex)
    tracked = find_tracked(query, memory)
    tests = _hold_tests(query, memory)
    places = _reach(automaton, tracked)
    order = list(dict.fromkeys(variables_of(query.regex)))
    ordered = sorted(places, key=lambda place: (place[0], [name in place[1] for name in order]))
    numbers = {place: number for number, place in enumerate(ordered, start=1)}
    states = tuple(
        State(
            numbers[place],
            automaton.variables[place[0]],
            _label(place, automaton, ordered),
            place[0] in automaton.last,
        )
        for place in ordered
    )
    if query.within_seconds:
        time = memory.hold_row(f"unix_micros(CAST({query.time} AS TIMESTAMP))", "row_time")
        memory.hold("start", "", time, "started")
    edges: list[Edge] = []
    for source, target in _moves(automaton, tracked, ordered):
        variable = automaton.variables[target[0]]
        is_first = source is None or variable not in source[1]
        edges.append(
            _write_edge(
                query,
                memory,
                dict(tests),
                Binding(variable, source is None, is_first),
                numbers[source] if source is not None else 0,
                numbers[target],
            )
        )
    # Predicates may have asked for fields of runs, so what runs keep is known only now.
    finished = tuple(_add_fields(edge, states, memory, ordered, numbers) for edge in edges)
    return Machine(states, finished, memory, tests)


def find_tracked(query: PatternQuery, memory: Memory) -> frozenset[str]:
    """The variables for which it matters whether a row is their first."""
    hold_outputs(memory, query.outputs)
    found = {item.variable for item in memory.fields.values() if item.kind == "first" and item.variable}
    for predicate in query.predicates:
        if predicate.is_first_only or predicate.is_from_second:
            found.add(predicate.variable)
        found |= {node.variable for node in predicate.tree.find_all(Value) if node.subscript == "1"}
    names = {fold(name) for name in found}
    return frozenset(name for name in variables_of(query.regex) if fold(name) in names)


def is_row_test(predicate: Predicate) -> bool:
    """Whether a predicate is about the row alone that is being bound."""
    values = list(predicate.tree.find_all(Value))
    return (
        not predicate.is_from_second
        and bool(values)
        and all(
            fold(node.variable) == fold(predicate.variable)
            and (node.subscript in ("", "i") or (predicate.is_first_only and node.subscript == "1"))
            for node in values
        )
    )


def _hold_tests(query: PatternQuery, memory: Memory) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for name in variables_of(query.regex):
        own = [
            item
            for item in query.predicates
            if fold(item.variable) == fold(name) and is_row_test(item) and not item.is_first_only
        ]
        texts = list(dict.fromkeys(_write_row_test(item) for item in own))
        found.append((name, memory.hold_test(_join(texts), f"is_{name}") if texts else ""))
    return tuple(found)


def _join(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)


def _write_row_test(predicate: Predicate) -> str:
    return write_sql(predicate.tree, lambda node: node.attribute if isinstance(node, Value) else None)


def _reach(automaton: Automaton, tracked: frozenset[str]) -> set[_Place]:
    found: set[_Place] = set()
    ahead = [_bind(position, frozenset(), automaton, tracked) for position in automaton.first]
    while ahead:
        place = ahead.pop()
        if place in found:
            continue
        found.add(place)
        if len(found) > MOST_STATES:
            raise TooManyStates
        ahead += [_bind(position, place[1], automaton, tracked) for position in automaton.follow[place[0]]]
    return found


def _bind(position: int, bound: frozenset[str], automaton: Automaton, tracked: frozenset[str]) -> _Place:
    return position, bound | ({automaton.variables[position]} & tracked)


def _moves(
    automaton: Automaton, tracked: frozenset[str], places: list[_Place]
) -> Iterator[tuple[_Place | None, _Place]]:
    for place in places:
        for position in automaton.follow[place[0]]:
            yield place, _bind(position, place[1], automaton, tracked)
    for position in automaton.first:
        yield None, _bind(position, frozenset(), automaton, tracked)


def _label(place: _Place, automaton: Automaton, places: list[_Place]) -> str:
    position, bound = place
    name = automaton.variables[position]
    copies = [number for number, variable in enumerate(automaton.variables) if variable == name]
    label = f"{name}#{copies.index(position) + 1}" if len(copies) > 1 else name
    if sum(other[0] == position for other in places) > 1:
        before = [variable for variable in dict.fromkeys(automaton.variables) if variable in bound and variable != name]
        label += f" after {', '.join(before)}" if before else " at first"
    return label


def _write_edge(
    query: PatternQuery, memory: Memory, tests: dict[str, str], binding: Binding, source: int, target: int
) -> Edge:
    conditions: list[str] = []
    reasons: list[str] = []
    if test := tests[binding.variable]:
        conditions.append(f"{ROW}.{test}")
    for predicate in query.predicates:
        if fold(predicate.variable) != fold(binding.variable):
            continue
        if predicate.is_from_second and binding.is_first_of_variable:
            continue
        if predicate.is_first_only and not binding.is_first_of_variable:
            continue
        reasons.append(describe(predicate.tree))
        if not is_row_test(predicate):
            conditions.append(memory.write_predicate(predicate, binding))
        elif predicate.is_first_only:
            test = memory.hold_test(_write_row_test(predicate), f"is_first_{binding.variable}")
            conditions.append(f"{ROW}.{test}")
    if query.within_seconds and not binding.is_start:
        time, started = (
            memory.hold_row(f"unix_micros(CAST({query.time} AS TIMESTAMP))", "row_time"),
            next(item.name for item in memory.fields.values() if item.kind == "start"),
        )
        conditions.append(f"{ROW}.{time} - {RUN}.{started} <= {query.within_seconds * MICROSECONDS}")
        reasons.append(f"within {query.within_seconds} seconds")
    return Edge(source, target, tuple(conditions), frozenset(), (), tuple(reasons))


def _add_fields(
    edge: Edge, states: tuple[State, ...], memory: Memory, places: list[_Place], numbers: dict[_Place, int]
) -> Edge:
    variable = states[edge.target - 1].variable
    by_number = {number: place for place, number in numbers.items()}
    is_first = edge.source == 0 or variable not in by_number[edge.source][1]
    binding = Binding(variable, edge.source == 0, is_first)
    fields = tuple((item.name, item.write_next(binding)) for item in memory.fields.values())
    reads = frozenset(name for name in memory.fields if any(reads_field(text, name) for text in edge.conditions))
    return Edge(edge.source, edge.target, edge.conditions, reads, fields, edge.reasons)


def reads_field(sql: str, name: str) -> bool:
    """Whether an expression of ours reads a field of the run."""
    found = sql.find(f"{RUN}.{name}")
    while found >= 0:
        end = found + len(RUN) + 1 + len(name)
        before = sql[found - 1] if found else " "
        after = sql[end] if end < len(sql) else " "
        if not (before.isalnum() or before in "_.`") and not (after.isalnum() or after == "_"):
            return True
        found = sql.find(f"{RUN}.{name}", found + 1)
    return False
