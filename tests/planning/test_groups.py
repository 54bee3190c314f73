"""Groups of steps: taken together they lead to the very same parts and versions as one after the other."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from test_any_order import VIEWS, World

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Agenda, Snapshot
from airflow_provider_viewdf.versions import StaleRange


class GroupWorld(World):
    """Computes a whole group from what there was before any of it, and counts the versions of each part."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.versions: dict[tuple[str, int], int] = {}
        self.reasons: list[tuple[str, int, str, str]] = []
        self.blocked: set[tuple[str, int]] = set()

    def refresh(self, asked: dict[str, PartSet], computes: set[str] | None = None) -> int:
        agenda = Agenda(self.snapshot(), asked, computes)
        steps = 0
        while group := agenda.next_group(self.limit):
            assert len(group) <= self.limit
            assert len({(step.view, step.rule) for step in group}) == 1
            for step in group:
                self.check_rows_are_there(step.view.lower(), step.index, step.rule)
            values = [self.compute(step.view.lower(), step.index, step.rule, self.content) for step in group]
            for step, value in zip(group, values, strict=True):
                steps += 1
                name, part = step.view.lower(), PartSet.between(step.index, step.index)
                self.reasons.append((step.view, step.index, step.rule, step.reason))
                is_changed = self.content[name].get(step.index) != value
                self.content[name][step.index] = value
                self.rules[name][step.index] = step.rule
                self.retired[name] -= part
                self.stale[name] = [
                    StaleRange(item.table, run, item.reason)
                    for item in self.stale[name]
                    for run in (PartSet((item.parts,)) - part).ranges
                ]
                marked: tuple[StaleRange, ...] = ()
                if is_changed:
                    key = (name, step.index)
                    self.versions[key] = self.versions.get(key, 0) + 1
                    marked = self.mark(
                        agenda.bounds.stale_because(step.view, PartRange(step.index, step.index), "changed")
                    )
                agenda.record(step, marked)
        self.blocked = {(item.view, index) for item in agenda.blocked for index in item.parts & PartSet.between(-9, 50)}
        return steps


indexes = st.integers(0, 12)
loads = st.tuples(st.just("load"), indexes, st.integers(0, 2))
refreshes = st.tuples(st.just("refresh"), st.sets(st.sampled_from(VIEWS), min_size=1), indexes, st.integers(0, 8))
# Of the asked views only: what reads others that are not up to date waits.
partial_refreshes = st.tuples(st.just("only"), st.sets(st.sampled_from(VIEWS), min_size=1), indexes, st.integers(0, 8))
retirements = st.tuples(st.just("retire"), st.sampled_from(VIEWS), indexes)


@settings(max_examples=400, deadline=None)
@given(
    events=st.lists(st.one_of(loads, loads, refreshes, partial_refreshes, retirements), max_size=25),
    limit=st.sampled_from([2, 3, 100]),
)
def test_groups_lead_to_the_same_parts_versions_and_steps_as_single_steps(events: list[Any], limit: int) -> None:
    one, many = GroupWorld(1), GroupWorld(limit)
    for world in (one, many):
        for event in events:
            if event[0] == "load":
                world.load(event[1], event[2])
            elif event[0] == "retire":
                world.retire(event[1], event[2])
            else:
                asked = {name: PartSet.between(event[2], event[2] + event[3]) for name in event[1]}
                world.refresh(asked, event[1] if event[0] == "only" else None)
        world.refresh(world.everything())
    assert many.content == one.content
    assert many.versions == one.versions
    assert many.rules == one.rules
    assert many.blocked == one.blocked
    assert sorted(many.reasons) == sorted(one.reasons)


def groups_of(script: str, parts: int, limit: int, asked: list[str]) -> list[tuple[str, int, int]]:
    definitions = {item.name.lower(): item for item in parse_script(script)}
    agenda = Agenda(
        Snapshot(definitions, {"s": PartSet.between(0, parts - 1)}),
        {name.lower(): PartSet.between(0, parts - 1) for name in asked},
    )
    found = []
    while group := agenda.next_group(limit):
        found.append((group[0].view, group[0].index, len(group)))
        for step in group:
            agenda.assume_changed(step)
    return found


STREAM = "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;"
CHAIN = """CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT x FROM S[i]
  UPDATE Chain[j] AS SELECT a.x FROM S[j] a, Chain[j-1] b PARTITION LENGTH 60;"""


def test_a_view_without_a_past_is_taken_up_to_the_limit() -> None:
    script = STREAM + "CREATE VIEW V AS SELECT x FROM S; CREATE VIEW W AS SELECT x FROM V;"
    assert groups_of(script, 250, 100, ["V", "W"]) == [
        ("V", 0, 100),
        ("W", 0, 100),
        ("V", 100, 100),
        ("W", 100, 100),
        ("V", 200, 50),
        ("W", 200, 50),
    ]


def test_a_chain_goes_ahead_of_the_views_over_it_so_that_these_can_be_taken_together() -> None:
    found = groups_of(STREAM + CHAIN + "CREATE VIEW V AS SELECT x FROM Chain;", 6, 4, ["V"])
    assert found == [("Chain", n, 1) for n in range(4)] + [("V", 0, 4), ("Chain", 4, 1), ("Chain", 5, 1), ("V", 4, 2)]


def test_a_limit_of_one_is_one_step_at_a_time_in_the_order_of_time() -> None:
    found = groups_of(STREAM + CHAIN + "CREATE VIEW V AS SELECT x FROM Chain;", 2, 1, ["V"])
    assert found == [("Chain", 0, 1), ("V", 0, 1), ("Chain", 1, 1), ("V", 1, 1)]


def test_views_that_need_each_others_past_are_taken_one_by_one() -> None:
    script = (
        STREAM
        + """
CREATE VIEW A AS INITIALIZE A[i] AS SELECT x FROM S[i] UPDATE A[j] AS SELECT a.x FROM S[j] a, B[j-1] b PARTITION LENGTH 60;
CREATE VIEW B AS INITIALIZE B[i] AS SELECT x FROM A[i] UPDATE B[j] AS SELECT x FROM A[j] PARTITION LENGTH 60;"""
    )
    assert [size for _, _, size in groups_of(script, 5, 100, ["B"])] == [1] * 10
