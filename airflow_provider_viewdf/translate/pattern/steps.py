"""One row, one step: the SQL that takes the runs of a group over a row.

With one run per group at most, a step gives the run after the row, or NULL. With several, it gives their list, in the order
of preference, without those that need not be kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from airflow_provider_viewdf.translate.pattern.dominance import Dominance
from airflow_provider_viewdf.translate.pattern.machine import Edge, Machine
from airflow_provider_viewdf.translate.pattern.memory import RUN, RUNS, STATE, write_null

_KEPT, _OLD, _NEW = "kept", "k", "q"
_LONG_LIST = 20


def write_one_run(machine: Machine, known: frozenset[str], indent: str) -> str:
    """The run after a row, out of the run `r` before it. `known` are conditions that every row is known to meet."""
    cases = [
        f"WHEN {_join([_guard(sources), *conditions]) or 'TRUE'}\n{indent}  THEN {struct}"
        for sources, conditions, struct in _merge_edges(machine, known)
    ]
    lines = f"\n{indent}".join(cases)
    return f"CASE\n{indent}{lines}\n{indent}END"


def write_all_runs(machine: Machine, dominance: Dominance, known: frozenset[str], indent: str) -> str:
    """The runs after a row, out of the list `runs` of those before it."""
    going = _merge_edges(machine, known, only_from_runs=True)
    begin = _merge_edges(machine, known, is_beginning=True)
    inner = f"{indent}      "
    next_runs = f",\n{inner}".join(_write_candidate([_guard(item[0]), *item[1]], item[2], inner) for item in going)
    new_runs = f",\n{inner}".join(_write_candidate(list(item[1]), item[2], inner) for item in begin)
    candidates = f"array(\n{inner}{new_runs})"
    if going:
        candidates = (
            f"concat(\n{indent}    flatten(transform({RUNS}, {RUN} -> array(\n{inner}{next_runs}))),\n"
            f"{indent}    {candidates})"
        )
    superfluous = _write_superfluous(machine, dominance)
    return (
        f"aggregate(\n{indent}  {candidates},\n{indent}  slice({RUNS}, 1, 0),\n"
        f"{indent}  ({_KEPT}, {_NEW}) -> CASE\n"
        f"{indent}    WHEN {_NEW} IS NULL OR exists({_KEPT}, {_OLD} -> {superfluous}) THEN {_KEPT}\n"
        f"{indent}    ELSE array_append({_KEPT}, {_NEW}) END)"
    )


def write_no_run(machine: Machine, row: str) -> str:
    """NULL, with the type of a run, out of some row. Every field of it can be NULL, unlike those of a run just begun."""
    fields = [(STATE, "1"), *((item.name, item.write_type(row)) for item in machine.memory.fields.values())]
    return write_null(write_struct((name, write_null(value)) for name, value in fields))


def _write_candidate(conditions: list[str], struct: str, indent: str) -> str:
    text = _join(conditions)
    return f"CASE WHEN {text} THEN {struct} END" if text else struct


def _merge_edges(
    machine: Machine, known: frozenset[str], *, is_beginning: bool = False, only_from_runs: bool = False
) -> list[tuple[tuple[int, ...], tuple[str, ...], str]]:
    """Edges with their sources, conditions and new runs; those that differ in the source alone together.

    Ordered by target, which keeps the order that the edges of each source have; those that begin a run come last.
    """
    sources: dict[tuple[int, int, tuple[str, ...], str], list[int]] = defaultdict(list)
    for edge in machine.edges:
        if (is_beginning and edge.source) or (only_from_runs and not edge.source):
            continue
        conditions = tuple(text for text in edge.conditions if text not in known)
        sources[int(edge.source == 0), edge.target, conditions, _write_struct(edge)].append(edge.source)
    merged = sorted(sources.items(), key=lambda item: item[0][:2])
    return [
        (() if is_new else tuple(sorted(found)), conditions, struct)
        for (is_new, _, conditions, struct), found in merged
    ]


def _write_struct(edge: Edge) -> str:
    return write_struct([(STATE, str(edge.target)), *edge.fields])


def write_struct(fields: Iterable[tuple[str, str]]) -> str:
    pairs = ", ".join(f"'{name}', {value}" for name, value in fields)
    return f"named_struct({pairs})"


def _guard(sources: tuple[int, ...]) -> str:
    return f"{RUN}.{STATE} {write_among(sources)}" if sources else ""


def write_among(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    if len(found) == 1:
        return f"= {found[0]}"
    if len(found) >= _LONG_LIST and found[-1] - found[0] == len(found) - 1:
        # For each of hundreds of states a list of hundreds would be more than anybody wants to wait for.
        return f"BETWEEN {found[0]} AND {found[-1]}"
    return f"IN ({', '.join(map(str, found))})"


def _join(conditions: Iterable[str]) -> str:
    found = [text for text in conditions if text]
    if len(found) == 1:
        return found[0]
    return " AND ".join(f"({text})" if " " in text and not _is_simple(text) else text for text in found)


def _is_simple(text: str) -> bool:
    return " OR " not in text and " AND " not in text and " BETWEEN " not in text and "CASE" not in text


def _write_superfluous(machine: Machine, dominance: Dominance) -> str:
    """Whether a new run q can do without, since a run k that is preferred to it covers it."""
    groups: dict[tuple[frozenset[int], frozenset[str]], list[int]] = defaultdict(list)
    for state in machine.states:
        covering = frozenset(p for p, q in dominance.covers if q == state.number)
        only_itself = covering == {state.number}
        groups[frozenset() if only_itself else covering, dominance.live[state.number]].append(state.number)
    texts = []
    for (covering, live), states in groups.items():
        tests = [f"{_OLD}.{STATE} {write_among(covering)}" if covering else f"{_OLD}.{STATE} = {_NEW}.{STATE}"]
        if len(groups) > 1:
            tests.append(f"{_NEW}.{STATE} {write_among(states)}")
        tests += [f"{_OLD}.{name} <=> {_NEW}.{name}" for name in sorted(live)]
        texts.append(" AND ".join(tests))
    return texts[0] if len(texts) == 1 else " OR ".join(f"({text})" for text in texts)
