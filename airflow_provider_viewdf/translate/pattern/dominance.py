"""Which runs need not be kept.

Runs of a group are in an order of preference: the earlier start first, then the way of binding that is preferred. A run can
be forgotten if one before it will end a match whenever it does. State p *covers* state q if every edge from q has a
counterpart from p that asks for no more and leads to a state that again covers, and if p accepts where q does. Then a run
at p, before a run at q, makes it superfluous, provided that both remember the same values as far as q's future depends on
them. A state covers itself: so there is never more than one run for a state and the values that it remembers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from airflow_provider_viewdf.translate.pattern.machine import Edge, Machine, reads_field


@dataclass(frozen=True, slots=True)
class Dominance:
    """`covers` has the pairs (p, q); `live[q]` the fields that a future condition from q on depends on."""

    covers: frozenset[tuple[int, int]]
    live: dict[int, frozenset[str]]
    needs_one_run: bool


def find_dominance(machine: Machine) -> Dominance:
    live = _find_live(machine)
    covers = _find_covers(machine, live)
    return Dominance(covers, live, _needs_one_run(machine, covers, live))


def _find_live(machine: Machine) -> dict[int, frozenset[str]]:
    live: dict[int, frozenset[str]] = {state.number: frozenset() for state in machine.states}
    while True:
        before = dict(live)
        for edge in machine.edges:
            if edge.source:
                carried = {name for name, text in edge.fields if name in live[edge.target] and reads_field(text, name)}
                live[edge.source] |= edge.reads | carried
        if live == before:
            return live


def _find_covers(machine: Machine, live: dict[int, frozenset[str]]) -> frozenset[tuple[int, int]]:
    accepting = set(machine.accepting)
    numbers = [state.number for state in machine.states]
    pairs = {(p, q) for p in numbers for q in numbers if q not in accepting or p in accepting}
    edges = {number: machine.edges_from(number) for number in numbers}
    while True:
        before = len(pairs)
        # Edges mostly lead to higher numbers, so what is no pair there is known before the pairs that depend on it.
        for p, q in sorted(pairs, reverse=True):
            if not all(any(_is_counterpart(ours, theirs, pairs, live) for ours in edges[p]) for theirs in edges[q]):
                pairs.discard((p, q))
        if len(pairs) == before:
            return frozenset(pairs)


def _is_counterpart(ours: Edge, theirs: Edge, pairs: set[tuple[int, int]], live: dict[int, frozenset[str]]) -> bool:
    return (
        (ours.target, theirs.target) in pairs
        and set(ours.conditions) <= set(theirs.conditions)
        and _remember_same(ours, theirs, live[theirs.target])
    )


def _remember_same(ours: Edge, theirs: Edge, names: frozenset[str]) -> bool:
    after, other = dict(ours.fields), dict(theirs.fields)
    return all(after[name] == other[name] for name in names)


def _needs_one_run(machine: Machine, covers: frozenset[tuple[int, int]], live: dict[int, frozenset[str]]) -> bool:
    """Whether of all that a row can make of one run, and the one it may begin, the first makes the rest superfluous."""
    begin = machine.edges_from(0)
    for number in (0, *(state.number for state in machine.states)):
        choices = begin if number == 0 else machine.edges_from(number) + begin
        for ours, theirs in combinations(choices, 2):
            if (ours.target, theirs.target) not in covers or not _remember_same(ours, theirs, live[theirs.target]):
                return False
    return True
