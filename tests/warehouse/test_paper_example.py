from __future__ import annotations

from network import LOSSES, NETWORK, measurement, minute

from airflow_provider_viewdf.warehouse import Warehouse


def load_minutes(warehouse: Warehouse, without: int | None = None) -> None:
    for number, loss in LOSSES.items():
        rows = [] if number == without else [measurement(number, loss)]
        warehouse.load("M", rows, batch_id=f"minute {number}", covers=(minute(number), minute(number + 1)))


def view2(warehouse: Warehouse) -> list[tuple[int, int, int]]:
    rows = warehouse.query("SELECT minute(PART_TIMESTAMP) AS m, ct, sum_loss FROM View2 ORDER BY m").collect()
    return [tuple(row) for row in rows]


def test_the_late_row_of_10_02_makes_the_pattern_appear_at_10_04_and_10_05(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    load_minutes(warehouse, without=2)
    first = warehouse.refresh()
    assert len(first.steps) == 14
    assert not first.blocked
    assert view2(warehouse) == []

    warehouse.load("M", [measurement(2, 15)], batch_id="late")
    report = warehouse.refresh()
    assert view2(warehouse) == [(4, 4, 71), (5, 5, 87)]
    # 10:02 changes Helper from 10:02 to 10:05; at 10:06 Helper is empty as before, and that ends it.
    assert [f"{step.view} {step.time:%H:%M} {step.outcome}" for step in report.steps] == [
        "Helper 10:02 published",
        "View2 10:02 kept",
        "Helper 10:03 published",
        "View2 10:03 kept",
        "Helper 10:04 published",
        "View2 10:04 published",
        "Helper 10:05 published",
        "View2 10:05 published",
        "Helper 10:06 kept",
    ]
    assert warehouse.refresh().steps == ()
    assert warehouse.verify().is_ok


def test_a_filter_on_part_timestamp_reads_one_part(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    load_minutes(warehouse)
    warehouse.refresh()
    answer = warehouse.query("SELECT * FROM View2 WHERE PART_TIMESTAMP = '2015/01/01 10:04'")
    assert [tuple(row) for row in answer.collect()] == [("a", "b", 4, 71)]
    assert len({name.rsplit("/", 1)[0] for name in answer.inputFiles()}) == 1


def test_a_dry_run_says_the_steps_and_runs_none(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    load_minutes(warehouse)
    planned = warehouse.refresh(dry_run=True)
    assert {step.outcome for step in planned.steps} == {"planned"}
    assert [(step.view, step.index, step.rule) for step in planned.steps] == [
        (step.view, step.index, step.rule) for step in warehouse.refresh().steps
    ]


def test_the_same_batch_again_changes_nothing(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    load_minutes(warehouse)
    again = warehouse.load("M", [measurement(3, 24)], batch_id="minute 3", covers=(minute(3), minute(4)))
    assert not again.changed
    corrected = warehouse.load("M", [measurement(3, 2)], batch_id="minute 3", covers=(minute(3), minute(4)))
    assert len(corrected.changed) == 1
    rows = warehouse.query("SELECT loss FROM M WHERE PART_TIMESTAMP = '2015-01-01 10:03'").collect()
    assert [row.loss for row in rows] == [2]
