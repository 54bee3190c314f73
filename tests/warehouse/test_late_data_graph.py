"""What late data recomputes, with answers known beforehand: a graph of seven views, gaps, and one view only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from network import NETWORK, measurement, minute

from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import RefreshReport
from airflow_provider_viewdf.warehouse import Warehouse

TODAY = datetime(2015, 1, 20, tzinfo=UTC)
DAY = timedelta(days=1)
TODAYS_PART = 16455  # days since 1970
DAYS = range(-8, 0)

GRAPH = """
CREATE STREAM source_a (ts TIMESTAMP ORDERED, x BIGINT) PARTITION LENGTH '1 day';
CREATE STREAM source_b (ts TIMESTAMP ORDERED, x BIGINT) PARTITION LENGTH '1 day';
CREATE VIEW a AS SELECT x FROM source_a;
CREATE VIEW b AS SELECT x FROM source_b;
CREATE VIEW c AS
  INITIALIZE c[i] AS SELECT a.x + b.x AS x FROM a[i] CROSS JOIN b[i]
  UPDATE c[j] AS SELECT a.x + b.x + c.x FROM a[j] CROSS JOIN b[j] CROSS JOIN c[j-1] AS c
  PARTITION LENGTH '1 day';
CREATE VIEW d AS SELECT 10 * x AS x FROM c;
CREATE VIEW e AS SELECT 100 * x AS x FROM c;
CREATE VIEW f AS SELECT 1000 * x AS x FROM b;
CREATE VIEW g AS SELECT e.x + f.x AS x FROM e CROSS JOIN f;
"""


def load_day(warehouse: Warehouse, table: str, day: int, x: int) -> None:
    start = TODAY + day * DAY
    warehouse.load(table, [{"ts": start, "x": x}], batch_id=f"{table} {day}", covers=(start, start + DAY))


def compute_graph(a: Mapping[int, int], b: Mapping[int, int]) -> dict[str, dict[int, int]]:
    """All views from scratch, in plain Python."""
    c = {day: sum(a[other] + b[other] for other in DAYS if other <= day) for day in DAYS}
    return {
        "a": dict(a),
        "b": dict(b),
        "c": c,
        "d": {day: 10 * c[day] for day in DAYS},
        "e": {day: 100 * c[day] for day in DAYS},
        "f": {day: 1000 * b[day] for day in DAYS},
        "g": {day: 100 * c[day] + 1000 * b[day] for day in DAYS},
    }


def read_graph(warehouse: Warehouse) -> dict[str, dict[int, int]]:
    query = " UNION ALL ".join(f"SELECT '{view}' AS view, PART, x FROM {view}" for view in "abcdefg")
    found: dict[str, dict[int, int]] = {}
    for row in warehouse.query(query).collect():
        found.setdefault(row["view"], {})[row["PART"] - TODAYS_PART] = row["x"]
    return found


def list_steps(report: RefreshReport) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for step in report.steps:
        found.setdefault(step.view, []).append(step.index - TODAYS_PART)
    return found


def test_a_restated_day_reaches_exactly_the_parts_that_it_changes(warehouse: Warehouse) -> None:
    warehouse.apply(GRAPH)
    for table in ("source_a", "source_b"):
        rows = [{"ts": TODAY + day * DAY, "x": 50 + day} for day in DAYS if day != -7]
        warehouse.load(table, rows, batch_id=f"{table} history", covers=(TODAY + DAYS[0] * DAY, TODAY))
        load_day(warehouse, table, -7, 43)
    warehouse.refresh()
    numbers = {day: 50 + day for day in DAYS}

    # With the same sum, c is what it was, and nothing follows from it. g runs because of f.
    load_day(warehouse, "source_a", -7, 44)
    load_day(warehouse, "source_b", -7, 42)
    report = warehouse.refresh()
    assert list_steps(report) == {"a": [-7], "b": [-7], "c": [-7], "f": [-7], "g": [-7]}
    assert [step.view for step in report.kept] == ["c"]
    assert read_graph(warehouse) == compute_graph(numbers | {-7: 44}, numbers | {-7: 42})

    # With another sum, c changes until yesterday, and so does all that reads c; a, b and f have no past to change.
    load_day(warehouse, "source_a", -7, 1)
    load_day(warehouse, "source_b", -7, 2)
    report = warehouse.refresh()
    week = list(range(-7, 0))
    assert list_steps(report) == {"a": [-7], "b": [-7], "f": [-7], "c": week, "d": week, "e": week, "g": week}
    assert not report.kept
    assert read_graph(warehouse) == compute_graph(numbers | {-7: 1}, numbers | {-7: 2})


def test_filling_a_gap_before_existing_parts_recomputes_the_later_ones(warehouse: Warehouse) -> None:
    first = 23668440
    warehouse.apply(NETWORK)
    losses = {0: 12, 1: 15, 2: 24, 3: 20, 4: 16}
    for number in (3, 4):
        warehouse.load("M", [measurement(number, losses[number])])
    warehouse.refresh()
    assert warehouse.existing_parts("Helper") == PartSet.between(first + 3, first + 4)

    for number in (2, 0):
        warehouse.load("M", [measurement(number, losses[number])])
    # Minute 1 is still missing: what is after it waits, and nothing is made from half a history.
    report = warehouse.refresh()
    assert [(step.view, step.index - first) for step in report.steps if step.view == "Helper"] == [("Helper", 0)]
    warehouse.load("M", [measurement(1, losses[1])])
    report = warehouse.refresh()

    assert [step.index - first for step in report.steps if step.view == "Helper"] == [1, 2, 3, 4]
    rows = warehouse.query("SELECT PART, ct, sum_loss FROM Helper ORDER BY PART").collect()
    assert [tuple(row) for row in rows] == [
        (first, 1, 12),
        (first + 1, 2, 27),
        (first + 2, 3, 51),
        (first + 3, 4, 71),
        (first + 4, 5, 87),
    ]
    view2 = warehouse.query("SELECT PART, ct FROM View2 ORDER BY PART").collect()
    assert [tuple(row) for row in view2] == [(first + 3, 4), (first + 4, 5)]


def measure_all(warehouse: Warehouse, numbers: range) -> None:
    rows: list[dict[str, Any]] = [measurement(number, 12) for number in numbers]
    warehouse.load("M", rows, batch_id=f"{numbers}", covers=(minute(numbers[0]), minute(numbers[-1] + 1)))


def test_only_these_leaves_the_views_of_others_alone(warehouse: Warehouse) -> None:
    first = 23668440
    warehouse.apply(NETWORK)
    measure_all(warehouse, range(3))
    asked = {"View2": PartSet.between(first + 1, first + 1)}

    early = warehouse.refresh(parts=asked, only_these=True)
    assert not early.steps
    assert [(item.view, str(item.parts), item.reason) for item in early.blocked] == [
        ("View2", f"{first + 1}", f"waits for Helper[{first + 1}] (2015-01-01T10:01)")
    ]
    warehouse.refresh(["Helper"])
    # It was asked for, so it is due although nobody asks again.
    late = warehouse.refresh(parts={"View2": PartSet()}, also_stale=True, only_these=True)
    assert [(step.view, step.index, step.reason) for step in late.steps] == [("View2", first + 1, "new")]


def test_the_next_due_part_is_the_next_that_a_refresh_would_compute(warehouse: Warehouse) -> None:
    first = 23668440
    warehouse.apply(NETWORK)
    measure_all(warehouse, range(5))
    warehouse.refresh()
    assert warehouse.find_next_due("Helper", first) is None

    warehouse.load("M", [{**measurement(2, 30), "src": "z"}], batch_id="late")
    assert warehouse.find_next_due("Helper", first) == first + 2
    assert warehouse.find_next_due("View2", first) == first + 2  # through Helper
    assert warehouse.find_next_due("View2", first + 2) == first + 3  # if Helper changes
    warehouse.refresh(parts={"Helper": PartSet.between(first + 2, first + 2)})
    assert warehouse.find_next_due("Helper", first + 2) == first + 3
    warehouse.refresh(parts={"Helper": PartSet.between(first + 3, first + 3)})
    # The late pair has nothing in minute 3: it is as it was, and so is all that follows.
    assert warehouse.find_next_due("Helper", first + 2) is None
    warehouse.refresh()
    assert warehouse.find_next_due("View2", first) is None
