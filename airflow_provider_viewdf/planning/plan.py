"""A plan is data: the steps that a refresh would run if each of them changed its part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning.agenda import Agenda, Step
from airflow_provider_viewdf.planning.snapshot import Snapshot
from airflow_provider_viewdf.reports import PartsSetAside


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]
    skipped: tuple[PartsSetAside, ...]
    blocked: tuple[PartsSetAside, ...]


def plan_refresh(snapshot: Snapshot, asked: Mapping[str, PartSet]) -> Plan:
    """The steps that bring the asked parts up to date, by folded view name. A real refresh may stop earlier."""
    agenda = Agenda(snapshot, asked)
    steps: list[Step] = []
    while (step := agenda.next()) is not None:
        steps.append(step)
        agenda.assume_changed(step)
    return Plan(tuple(steps), agenda.skipped, agenda.blocked)


def explain(plan: Plan) -> str:
    """The plan as text, one line a step: `Helper[5]  UPDATE  because M[5] changed`."""
    lines = [f"{step.view}[{step.index}]  {step.rule.upper()}  because {step.reason}" for step in plan.steps]
    lines += [f"{item.view}[{item.parts}]  skipped: {item.reason}" for item in plan.skipped]
    lines += [f"{item.view}[{item.parts}]  blocked: {item.reason}" for item in plan.blocked]
    return "\n".join(lines) or "Everything is up to date."
