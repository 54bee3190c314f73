"""The machine of a pattern query, for a person: as text, and as a Mermaid diagram."""

from __future__ import annotations

from airflow_provider_viewdf.translate.pattern.dominance import Dominance
from airflow_provider_viewdf.translate.pattern.machine import Edge, Machine
from airflow_provider_viewdf.translate.pattern.memory import Field
from airflow_provider_viewdf.translate.pattern.query import PatternQuery, write_regex
from airflow_provider_viewdf.translate.pattern.write_views import Shape

_KINDS = {"last": "the last {}", "first": "the first {}", "start": "the time of its first row"}


def explain_machine(
    query: PatternQuery, machine: Machine, dominance: Dominance, shape: Shape, why: str
) -> tuple[str, ...]:
    gaps = " ACROSS GAPS" if query.is_across_gaps else ""
    lines = [f"PATTERN [{write_regex(query.regex)}]{gaps} over {query.source}, {_describe_groups(query)}"]
    for state in machine.states:
        lines.append(f"  state {state.number}: {state.label}{', ends a match' if state.is_accepting else ''}")
    for source, target, label in _list_edges(machine):
        lines.append(f"  {source or 'begin'} -> {target}: {label}")
    lines.append(f"  a run remembers: {', '.join(_describe_fields(query, machine)) or 'nothing but its state'}")
    lines.append(f"  kept: {_describe_bound(machine, dominance)}")
    lines.append(f"  computed: {_describe_shape(shape)}, because {why}")
    return tuple(lines)


def _describe_groups(query: PatternQuery) -> str:
    return f"for each {', '.join(query.groups)}" if query.groups else "all rows as one sequence"


def _label(edge: Edge) -> str:
    return " AND ".join(edge.reasons) or "any row"


def _list_edges(machine: Machine) -> list[tuple[int, int, str]]:
    edges = sorted(machine.edges, key=lambda edge: (edge.source, edge.target))
    return list(dict.fromkeys((edge.source, edge.target, _label(edge)) for edge in edges))


def _describe_fields(query: PatternQuery, machine: Machine) -> list[str]:
    return list(dict.fromkeys(_describe_field(field, machine) for field in machine.memory.fields.values()))


def _describe_field(field: Field, machine: Machine) -> str:
    value = machine.memory.row.get(field.value, "")
    of = f"{field.variable}." if field.variable else ""
    if field.kind in _KINDS:
        return _KINDS[field.kind].format(f"{of}{value}") if value else _KINDS[field.kind]
    if not value:
        return f"the number of rows{f' of {field.variable}' if field.variable else ''}"
    return f"{field.kind}({of}{value})"


def _describe_bound(machine: Machine, dominance: Dominance) -> str:
    if dominance.needs_one_run:
        return "one run per group, the longest; it makes every later one superfluous"
    live = sorted(set().union(*dominance.live.values()))
    what = f" and values of {', '.join(live)}" if live else ""
    return f"one run per group and state{what}, the one with the earliest start"


def _describe_shape(shape: Shape) -> str:
    fold = "collecting the rows of a group in a part, ordering them, and taking the runs over one after the other"
    if shape.rows == "one":
        return "by an outer join with the part before"
    if shape.rows == "seen":
        return f"by an outer join with the part before for groups with one row in a part, by {fold} for groups with several"
    return f"by {fold}"


def draw_machine(machine: Machine) -> str:
    lines = ["stateDiagram-v2"]
    for state in machine.states:
        lines.append(f"    s{state.number}: {state.label}")
    for source, target, label in _list_edges(machine):
        begin = f"s{source}" if source else "[*]"
        lines.append(f"    {begin} --> s{target}: {_escape(label)}")
    lines += [f"    s{number} --> [*]" for number in machine.accepting]
    return "\n".join(lines)


def _escape(label: str) -> str:
    # Mermaid ends a label at a colon or a semicolon, and reads < and > as tags.
    codes = {":": "#58;", ";": "#59;", "<": "#lt;", ">": "#gt;", "#": "#35;"}
    return "".join(codes.get(sign, sign) for sign in label)
