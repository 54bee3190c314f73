"""What may be archived, and what becomes of a plan when something is."""

from __future__ import annotations

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Agenda, Bounds, Snapshot, find_computable
from airflow_provider_viewdf.planning.retention import Retention, find_retention
from airflow_provider_viewdf.versions import StaleRange

STREAM = "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60 RETAIN '5 minutes';"
PLAIN = "CREATE VIEW V AS SELECT x FROM S;"
CHAIN = """CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT x FROM S[i]
  UPDATE Chain[j] AS SELECT a.x FROM S[j] a, Chain[j-1] b PARTITION LENGTH 60;"""


def define(script: str) -> dict[str, Definition]:
    return {item.name.lower(): item for item in parse_script(script)}


def snapshot(script: str, *, archived: dict[str, int] | None = None, **existing: int) -> Snapshot:
    parts = {name: PartSet.between(0, last) for name, last in existing.items()}
    return Snapshot(define(script), parts, initialized={"chain": PartSet.between(0, 0)}, archived=archived or {})


def retention(state: Snapshot, name: str = "s") -> Retention | None:
    return find_retention(state, Bounds(state), name)


def test_the_newest_parts_that_cover_the_length_are_kept() -> None:
    assert retention(snapshot(STREAM, s=9)) == Retention(5)
    assert retention(snapshot(STREAM.replace("5 minutes", "61 seconds"), s=9)) == Retention(8)
    assert retention(snapshot(STREAM.replace("5 minutes", "1 second"), s=9)) == Retention(9)
    assert retention(snapshot(STREAM, s=4)) is None
    assert retention(snapshot(STREAM.replace("RETAIN '5 minutes'", ""), s=9)) is None
    assert retention(snapshot(STREAM, archived={"s": 5}, s=9)) is None


def test_parts_that_are_due_hold_what_they_read() -> None:
    held = retention(snapshot(STREAM + PLAIN, s=9, v=1))
    assert held == Retention(2, "V[2] (1970-01-01T00:02) is yet to read S[2] (1970-01-01T00:02)")
    assert retention(snapshot(STREAM + PLAIN, s=9, v=9)) == Retention(5)


def test_a_constant_reference_holds_its_part_for_ever() -> None:
    script = (
        STREAM
        + """CREATE VIEW V AS INITIALIZE V[i] AS SELECT x FROM S[i]
      UPDATE V[j] AS SELECT a.x FROM S[j] a, S[3] b PARTITION LENGTH 60;"""
    )
    held = retention(snapshot(script, s=9, v=9))
    assert held is not None
    assert held.before == 3


def test_archived_parts_change_neither_the_first_part_nor_the_rules() -> None:
    state = snapshot(STREAM + CHAIN, archived={"s": 5}, s=10, chain=9)
    agenda = Agenda(state, {"chain": PartSet.between(0, 10)})
    step = agenda.next()
    assert step is not None
    assert (step.index, step.rule, step.reason) == (10, "update", "new")
    agenda.assume_changed(step)
    assert agenda.next() is None
    assert agenda.blocked == ()


def test_an_archived_part_of_a_view_is_neither_due_nor_stale() -> None:
    stale = {"v": (StaleRange("V", PartRange(0, 9), "definition changed"),)}
    state = Snapshot(
        define(STREAM + PLAIN), {"s": PartSet.between(0, 9), "v": PartSet.between(0, 9)}, stale, archived={"v": 7}
    )
    agenda = Agenda(state, {"v": PartSet.between(0, 9)})
    assert [step.index for step in agenda.next_group(100)] == [7, 8, 9]
    assert [(item.view, str(item.parts)) for item in agenda.archived] == [("V", "0 .. 6")]


def test_a_step_that_reads_archived_parts_is_blocked_with_that_reason() -> None:
    state = snapshot(STREAM + PLAIN, archived={"s": 2}, s=3)
    agenda = Agenda(state, {"v": PartSet.between(0, 3)})
    assert [step.index for step in agenda.next_group(100)] == [2, 3]
    assert [(str(item.parts), item.reason, item.missing) for item in agenda.blocked] == [
        ("0 .. 1", "reads archived parts of S: S keeps its parts for 5 minutes (RETAIN)", ())
    ]


def test_what_can_be_computed_is_found_up_to_a_limit() -> None:
    state = Snapshot(define(STREAM + PLAIN), {"s": PartSet.of_indexes([0, 1, 2, 5, 6])})
    assert str(find_computable(state, "V", PartSet.between(0, 9), 100)) == "0 .. 2, 5 .. 6"
    assert str(find_computable(state, "V", PartSet.between(1, 9), 3)) == "1 .. 2, 5"
    assert find_computable(state, "V", PartSet.between(0, 9), 0) == PartSet()
