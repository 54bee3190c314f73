"""Planning against a world in plain Python: after any schedule, every part equals the one computed from scratch."""

from __future__ import annotations

import zlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import Definition, PartReference
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Agenda, Bounds, Snapshot, ask_for_everything
from airflow_provider_viewdf.versions import StaleRange

SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT x FROM S[i]
  UPDATE Chain[j] AS SELECT a.x FROM S[j] a, Chain[j-1] b PARTITION LENGTH 60;
CREATE VIEW Third AS INITIALIZE Third[i] AS SELECT x FROM S[i]
  UPDATE Third[j] AS SELECT a.x FROM S[j] a, Third[j-3] b PARTITION LENGTH 60;
CREATE VIEW Two AS INITIALIZE Two[i] AS SELECT x FROM Chain[i]
  UPDATE Two[j] AS SELECT a.x FROM Chain[j] a, Two[j-2 .. j-1] b PARTITION LENGTH 60;
CREATE VIEW Long AS INITIALIZE Long[i] AS SELECT x FROM S[i*3 .. i*3+2]
  UPDATE Long[j] AS SELECT x FROM S[j*3 .. j*3+2] PARTITION LENGTH 180;
CREATE VIEW Short AS INITIALIZE Short[i] AS SELECT x FROM Long[i/3]
  UPDATE Short[j] AS SELECT a.x FROM Long[j/3] a, Chain[j] b PARTITION LENGTH 60;
CREATE VIEW Window AS INITIALIZE Window[i] AS SELECT x FROM S[i-2 .. i]
  UPDATE Window[j] AS SELECT a.x FROM Window[j-1] a, S[j] b, S[j-3] c PARTITION LENGTH 60;
CREATE VIEW Filling AS INITIALIZE Filling[i] AS SELECT x FROM S[i-3 .. i PARTIAL]
  UPDATE Filling[j] AS SELECT x FROM S[j-3 .. j PARTIAL] PARTITION LENGTH 60;
CREATE VIEW FillingDelta AS INITIALIZE FillingDelta[i] AS SELECT x FROM Filling[i-2 .. i PARTIAL]
  UPDATE FillingDelta[j] AS SELECT a.x FROM FillingDelta[j-1] a, Filling[j] b, Filling[j-3] c PARTITION LENGTH 60;
CREATE VIEW FillingSlow AS INITIALIZE FillingSlow[i] AS SELECT x FROM Window[i*3-4 .. i*3+2 PARTIAL]
  UPDATE FillingSlow[j] AS SELECT x FROM Window[j*3-4 .. j*3+2 PARTIAL] PARTITION LENGTH 180;
CREATE VIEW FillingSelf AS INITIALIZE FillingSelf[i] AS SELECT x FROM S[i]
  UPDATE FillingSelf[j] AS SELECT a.x FROM FillingSelf[j-3 .. j-1 PARTIAL] a, S[j] b PARTITION LENGTH 60;
"""

DEFINITIONS: dict[str, Definition] = {item.name.lower(): item for item in parse_script(SCRIPT)}
VIEWS = [name for name, item in DEFINITIONS.items() if item.kind == "view"]


def digest(*values: object) -> int:
    """Content: of few different values, so that a recomputed part is often the same as before."""
    return zlib.crc32(repr(values).encode()) % 3


def reads_of(reference: PartReference, index: int, firsts: dict[str, int]) -> range:
    low = reference.low(index)
    if reference.is_partial:
        low = max(low, firsts[reference.table.lower()])
    return range(low, reference.high(index) + 1)


def is_late_enough(reference: PartReference, index: int, firsts: dict[str, int]) -> bool:
    end = reference.high if reference.is_partial else reference.low
    return end(index) >= firsts[reference.table.lower()]


class World:
    def __init__(self) -> None:
        self.content: dict[str, dict[int, int]] = {name: {} for name in DEFINITIONS}
        self.rules: dict[str, dict[int, str]] = {name: {} for name in DEFINITIONS}
        self.stale: dict[str, list[StaleRange]] = {name: [] for name in DEFINITIONS}
        self.retired: dict[str, PartSet] = {name: PartSet() for name in VIEWS}
        self.made_last: dict[str, set[int]] = {}
        self.blocked_last: dict[str, set[int]] = {}

    def snapshot(self) -> Snapshot:
        return Snapshot(
            DEFINITIONS,
            {name: PartSet.of_indexes(parts) for name, parts in self.content.items()},
            {name: tuple(found) for name, found in self.stale.items()},
            {
                name: PartSet.of_indexes(index for index, rule in rules.items() if rule == "initialize")
                for name, rules in self.rules.items()
            },
            retired=self.retired,
        )

    def load(self, index: int, value: int) -> None:
        if self.content["s"].get(index) != value:
            self.content["s"][index] = value
            self.mark(Bounds(self.snapshot()).stale_because("S", PartRange(index, index), "late"))

    def mark(self, found: tuple[StaleRange, ...]) -> tuple[StaleRange, ...]:
        cut = []
        for item in found:
            name = item.table.lower()
            parts = PartSet((item.parts,)) & PartSet.of_indexes(self.content[name])
            cut += [StaleRange(item.table, run, item.reason) for run in parts.ranges]
        for item in cut:
            self.stale[item.table.lower()].append(item)
        return tuple(cut)

    def compute(self, name: str, index: int, rule: str, content: dict[str, dict[int, int]]) -> int:
        firsts = self.find_firsts()
        read = [
            content[reference.table.lower()][part]
            for reference in DEFINITIONS[name].query_for(rule).references  # type: ignore[arg-type]
            for part in reads_of(reference, index, firsts)
        ]
        return digest(name, rule, read)

    def refresh(self, asked: dict[str, PartSet]) -> int:
        agenda = Agenda(self.snapshot(), asked)
        self.made_last = {name: set() for name in VIEWS}
        steps = 0
        while (step := agenda.next()) is not None:
            steps += 1
            name = step.view.lower()
            self.check_rows_are_there(name, step.index, step.rule)
            value = self.compute(name, step.index, step.rule, self.content)
            changed = self.content[name].get(step.index) != value
            self.content[name][step.index] = value
            self.made_last[name].add(step.index)
            self.rules[name][step.index] = step.rule
            part = PartSet.between(step.index, step.index)
            self.retired[name] -= part
            self.stale[name] = [
                StaleRange(item.table, run, item.reason)
                for item in self.stale[name]
                for run in (PartSet((item.parts,)) - part).ranges
            ]
            marked: tuple[StaleRange, ...] = ()
            if changed:
                parts = PartRange(step.index, step.index)
                marked = self.mark(agenda.bounds.stale_because(step.view, parts, "changed"))
            agenda.record(step, marked)
        self.blocked_last = {name: set() for name in VIEWS}
        for item in agenda.blocked:
            self.blocked_last[item.view.lower()] |= set(item.parts & PartSet.between(-100, 100))
        return steps

    def check_rows_are_there(self, name: str, index: int, rule: str) -> None:
        firsts = self.find_firsts()
        for reference in DEFINITIONS[name].query_for(rule).references:  # type: ignore[arg-type]
            retired = self.retired.get(reference.table.lower(), PartSet())
            assert not any(part in retired for part in reads_of(reference, index, firsts))

    def retire(self, name: str, last: int) -> None:
        self.retired[name] |= PartSet.of_indexes(index for index in self.content[name] if index <= last)

    def everything(self) -> dict[str, PartSet]:
        snapshot = self.snapshot()
        return {name: ask_for_everything(snapshot, Bounds(snapshot), name) for name in VIEWS}

    def find_firsts(self) -> dict[str, int]:
        firsts = {"s": min(self.content["s"])}
        for name in VIEWS:
            references = DEFINITIONS[name].query_for("initialize").references
            index = -40
            while not all(is_late_enough(item, index, firsts) for item in references):
                index += 1
            firsts[name] = index
        return firsts

    def from_scratch(self) -> dict[str, dict[int, int]]:
        """Written from the rules of the language, part by part, without any planning."""
        content: dict[str, dict[int, int]] = {name: {} for name in DEFINITIONS}
        content["s"] = self.content["s"]
        if not content["s"]:
            return content
        firsts = self.find_firsts()
        for _ in range(4):  # views may read others that are computed later in a pass
            for index in range(-40, 80):
                for name in VIEWS:
                    if index < firsts[name] or index in content[name]:
                        continue
                    update = DEFINITIONS[name].query_for("update").references
                    has_past = all(is_late_enough(item, index, firsts) for item in update)
                    rule = "update" if has_past else "initialize"
                    reads = DEFINITIONS[name].query_for(rule).references  # type: ignore[arg-type]
                    if all(
                        part in content[item.table.lower()] for item in reads for part in reads_of(item, index, firsts)
                    ):
                        content[name][index] = self.compute(name, index, rule, content)
        return content


loads = st.tuples(st.just("load"), st.integers(0, 14), st.integers(0, 3))
spans = st.tuples(st.just("load all"), st.integers(0, 14), st.integers(1, 8))
refreshes = st.tuples(st.just("refresh"), st.sampled_from(VIEWS), st.integers(0, 14), st.integers(1, 6))
retirements = st.tuples(st.just("retire"), st.sampled_from(VIEWS), st.integers(0, 14))
schedules: st.SearchStrategy[list[Any]] = st.lists(st.one_of(loads, spans, refreshes, retirements), max_size=14)


def run(world: World, schedule: list[Any]) -> None:
    for kind, *values in schedule:
        if kind == "load":
            world.load(*values)
        elif kind == "load all":
            for index in range(values[0], values[0] + values[1]):
                world.load(index, world.content["s"].get(index, 0))
        elif kind == "retire":
            world.retire(*values)
        else:
            view, first, length = values
            world.refresh({view: PartSet.between(first, first + length - 1)})


@settings(max_examples=400, deadline=None)
@given(schedule=schedules)
def test_after_any_schedule_a_refresh_gives_what_computing_from_scratch_gives(schedule: list[Any]) -> None:
    world = World()
    run(world, schedule)
    world.refresh(world.everything())
    expected = world.from_scratch()
    for name in VIEWS:
        found = {index: world.content[name][index] for index in expected[name] if index in world.content[name]}
        assert found == expected[name], name
        # What else there is was made before the past it has now was known, and waits for that.
        assert not world.made_last[name] - set(expected[name]), name
        others = {index for index in world.content[name] if index not in expected[name]}
        early = min(expected[name], default=100)
        assert {index for index in others if index > early} <= world.blocked_last[name], name
    assert world.refresh(world.everything()) == 0


@settings(max_examples=200, deadline=None)
@given(schedule=schedules, view=st.sampled_from(VIEWS), first=st.integers(0, 14), length=st.integers(1, 4))
def test_what_is_asked_for_is_right_whatever_else_is_stale(
    schedule: list[Any], view: str, first: int, length: int
) -> None:
    world = World()
    run(world, schedule)
    world.refresh({view: PartSet.between(first, first + length - 1)})
    expected = world.from_scratch()[view]
    for index in range(first, first + length):
        if index in expected:
            assert world.content[view].get(index) == expected[index]
