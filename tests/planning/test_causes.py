"""What a change leads to: the parts against a search over every single part, and the tree as a person sees it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Bounds, Snapshot, plan_refresh
from airflow_provider_viewdf.planning.causes import explain_groups, find_impact, group_steps
from airflow_provider_viewdf.reports import PlannedParts
from airflow_provider_viewdf.versions import StaleRange

LAST = 20

SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT x FROM S[i]
  UPDATE Chain[j] AS SELECT a.x FROM S[j] a, Chain[j-1] b PARTITION LENGTH 60;
CREATE VIEW Third AS INITIALIZE Third[i] AS SELECT x FROM S[i]
  UPDATE Third[j] AS SELECT a.x FROM S[j] a, Third[j-3] b PARTITION LENGTH 60;
CREATE VIEW Window AS INITIALIZE Window[i] AS SELECT x FROM S[i-2 .. i]
  UPDATE Window[j] AS SELECT a.x FROM S[j-2 .. j] a PARTITION LENGTH 60;
CREATE VIEW Long AS INITIALIZE Long[i] AS SELECT x FROM Window[i*3 .. i*3+2]
  UPDATE Long[j] AS SELECT x FROM Third[j*3 .. j*3+2] PARTITION LENGTH 180;
CREATE VIEW Ping AS INITIALIZE Ping[i] AS SELECT x FROM S[i]
  UPDATE Ping[j] AS SELECT a.x FROM Pong[j-1] a, S[j] b PARTITION LENGTH 60;
CREATE VIEW Pong AS INITIALIZE Pong[i] AS SELECT x FROM Ping[i]
  UPDATE Pong[j] AS SELECT x FROM Ping[j] PARTITION LENGTH 60;
"""

DEFINITIONS: dict[str, Definition] = {fold(item.name): item for item in parse_script(SCRIPT)}


def reads_of(view: str, index: int) -> list[tuple[str, int]]:
    """What a part reads, with S beginning at 0; written out by hand."""
    s = ("S", index)
    if view == "Chain":
        return [s] if index == 0 else [s, ("Chain", index - 1)]
    if view == "Third":
        return [s] if index < 3 else [s, ("Third", index - 3)]
    if view == "Window":
        return [("S", index - 2), ("S", index - 1), s]
    if view == "Long":
        # Window begins at 2, so Long begins at 1, and Third at 0: always by UPDATE.
        return [("Third", index * 3 + offset) for offset in range(3)]
    if view == "Ping":
        return [s] if index == 0 else [("Pong", index - 1), s]
    assert view == "Pong"
    return [("Ping", index)]


EXISTING = {
    "S": range(LAST + 1),
    "Chain": range(LAST + 1),
    "Third": range(LAST + 1),
    "Window": range(2, LAST + 1),
    "Long": range(1, 7),
    "Ping": range(LAST + 1),
    "Pong": range(LAST + 1),
}


def search(table: str, changed: set[int]) -> dict[str, set[int]]:
    found = {(table, index) for index in changed}
    while True:
        more = {
            (view, index)
            for view, indexes in EXISTING.items()
            if view != "S"
            for index in indexes
            if (view, index) not in found and found & set(reads_of(view, index))
        }
        if not more:
            break
        found |= more
    found -= {(table, index) for index in changed}
    return {view: {index for name, index in found if name == view} for view in {name for name, _ in found}}


def snapshot_of(existing: dict[str, range], definitions: dict[str, Definition] | None = None) -> Snapshot:
    return Snapshot(
        definitions or DEFINITIONS, {fold(name): PartSet.of_indexes(parts) for name, parts in existing.items()}
    )


def union(groups: tuple[PlannedParts, ...]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for group in groups:
        for view, parts in group.by_view().items():
            found.setdefault(view, set()).update(parts)
    return found


def count(groups: tuple[PlannedParts, ...]) -> int:
    return sum(len(group.parts) + count(group.children) for group in groups)


@settings(max_examples=200, deadline=None)
@given(table=st.sampled_from(sorted(EXISTING)), indexes=st.sets(st.integers(0, LAST), min_size=1, max_size=4))
def test_impact_is_what_a_search_over_every_part_finds_and_names_each_part_once(table: str, indexes: set[int]) -> None:
    changed = indexes & set(EXISTING[table])
    groups = find_impact(snapshot_of(EXISTING), table, PartSet.of_indexes(changed))
    expected = search(table, changed)
    assert union(groups) == expected
    assert count(groups) == sum(len(parts) for parts in expected.values())


@settings(max_examples=100, deadline=None)
@given(index=st.integers(0, LAST))
def test_plan_of_a_refresh_has_the_same_parts_in_its_tree(index: int) -> None:
    snapshot = snapshot_of(EXISTING)
    stale: dict[str, tuple[StaleRange, ...]] = {}
    for item in Bounds(snapshot).stale_because("S", PartRange(index, index), f"late data in S[{index}]"):
        stale[fold(item.table)] = (*stale.get(fold(item.table), ()), item)
    asked = {fold(view): PartSet.of_indexes(parts) for view, parts in EXISTING.items() if view != "S"}
    steps = plan_refresh(Snapshot(DEFINITIONS, snapshot.existing, stale), asked).steps
    groups = group_steps(steps)
    assert union(groups) == search("S", {index})
    assert count(groups) == len(steps)


NETWORK = """
CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW Helper AS INITIALIZE Helper[i] AS SELECT x FROM M[i]
  UPDATE Helper[j] AS SELECT m.x FROM M[j] m, Helper[j-1] h PARTITION LENGTH 60;
CREATE VIEW View2 AS SELECT x FROM Helper;
"""
HELPERS = {fold(item.name): item for item in parse_script(NETWORK)}


def test_long_chain_is_one_line_with_its_range() -> None:
    parts = range(23667840, 23668441)
    snapshot = snapshot_of({"M": parts, "Helper": parts, "View2": parts}, HELPERS)
    groups = find_impact(snapshot, "M", PartSet.between(23667845, 23667845))
    assert explain_groups(groups, HELPERS) == [
        "Helper[23667845 .. 23668440], 596 parts, because M[23667845] changed  (2015-01-01T00:05 .. 2015-01-01T10:00)",
        "  View2[23667845 .. 23668440], 596 parts, because Helper[23667845 .. 23668440] changed  "
        "(2015-01-01T00:05 .. 2015-01-01T10:00)",
    ]


def test_few_parts_are_named_one_by_one_with_date_and_rule() -> None:
    parts = range(23668440, 23668442)
    snapshot = snapshot_of({"M": parts, "Helper": parts, "View2": parts}, HELPERS)
    groups = find_impact(snapshot, "m", PartSet.between(23668440, 23668440))
    assert explain_groups(groups, HELPERS, Bounds(snapshot).rule) == [
        "Helper[23668440]  2015-01-01T10:00  INITIALIZE  because M[23668440] changed",
        "Helper[23668441]  2015-01-01T10:01  UPDATE  because M[23668440] changed",
        "  View2[23668440]  2015-01-01T10:00  UPDATE  because Helper[23668440 .. 23668441] changed",
        "  View2[23668441]  2015-01-01T10:01  UPDATE  because Helper[23668440 .. 23668441] changed",
    ]


def test_loading_history_or_a_gap_is_supposed_to_bring_new_parts_and_other_rules() -> None:
    parts = range(101, 106)
    snapshot = Snapshot(
        HELPERS,
        {key: PartSet.of_indexes(parts) for key in HELPERS},
        initialized={"helper": PartSet.between(101, 101)},
    )
    history = explain_groups(find_impact(snapshot, "M", PartSet.between(100, 100)), HELPERS)
    assert [line.split("  (")[0] for line in history] == [
        "Helper[100 .. 105], 6 parts, because M[100] is loaded",
        "  View2[101 .. 105], 5 parts, because Helper[100 .. 105] changed",
        "View2[100], 1 part, because M[100] is loaded",
    ]
    with_gap = Snapshot(
        HELPERS,
        {
            "m": PartSet.of_indexes([100, 101, 103, 104]),
            "helper": PartSet.between(100, 101),
            "view2": PartSet.between(100, 101),
        },
        initialized={"helper": PartSet.between(100, 100)},
    )
    gap = explain_groups(find_impact(with_gap, "M", PartSet.between(102, 102)), HELPERS)
    assert [line.split("  (")[0] for line in gap] == [
        "Helper[102 .. 104], 3 parts, because M[102] is loaded",
        "View2[102 .. 104], 3 parts, because M[102] is loaded",
    ]


def test_views_of_a_graph_where_only_one_reads_its_own_past() -> None:
    day = 86400
    plain = "".join(
        f"CREATE VIEW {name} AS SELECT x FROM {source};"
        for name, source in {"d": "c", "e": "c", "f": "b", "g": "e NATURAL JOIN f"}.items()
    )
    script = (
        f"CREATE STREAM a (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH {day};"
        f"CREATE STREAM b (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH {day};"
        "CREATE VIEW c AS INITIALIZE c[i] AS SELECT a.x FROM a[i] a, b[i] b UPDATE c[j] AS SELECT a.x FROM a[j] a, b[j] b, "
        f"c[j-1] p PARTITION LENGTH {day}; {plain}"
    )
    definitions = {fold(item.name): item for item in parse_script(script)}
    days = range(100, 120)
    snapshot = snapshot_of(dict.fromkeys(("a", "b", "c", "d", "e", "f", "g"), days), definitions)
    found = {table: union(find_impact(snapshot, table, PartSet.between(112, 112))) for table in ("a", "b")}
    week = set(range(112, 120))
    assert found["a"] == {"c": week, "d": week, "e": week, "g": week}
    assert found["b"] == {"c": week, "d": week, "e": week, "g": week, "f": {112}}
