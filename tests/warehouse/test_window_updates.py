"""How window views are kept up to date: what an update reads, and how far late rows reach."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from network import measurement, minute
from window_oracle import FIRST

from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.reports import RefreshReport
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;\n"


def test_figure_1_1_of_the_thesis_420_plus_7_minus_5_is_422(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM + "CREATE VIEW View1 AS SELECT src, dest, sum(loss) AS loss FROM M [WINDOW 5 minutes] GROUP BY src, dest"
    )
    # 9:00 to 9:59 of the figure are five minutes here; the oldest part has a loss of 5, the new one of 7.
    warehouse.load("M", [measurement(number, loss) for number, loss in enumerate([5, 100, 115, 105, 95])])
    warehouse.refresh()
    warehouse.load("M", [measurement(5, 7)])
    report = warehouse.refresh(["View1"])
    assert [tuple(row) for row in warehouse.query("SELECT PART, loss FROM View1 ORDER BY PART").collect()] == [
        (FIRST + 4, 420),
        (FIRST + 5, 422),
    ]
    assert [(step.view, step.rule, step.inputs) for step in report.steps] == [
        ("M_per_1_minute_by_dest_src", "update", (f"M[{FIRST + 5}] v1",)),
        (
            "View1",
            "update",
            (
                f"M_per_1_minute_by_dest_src[{FIRST}] v1",
                f"M_per_1_minute_by_dest_src[{FIRST + 5}] v1",
                f"View1[{FIRST + 4}] v1",
            ),
        ),
    ]


def count_steps(report: RefreshReport, outcome: str) -> Counter[str]:
    return Counter(step.view for step in report.steps if step.outcome == outcome)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("having", "published", "kept"),
    [("", {"V": 10}, {"V": 1}), ("HAVING sum(loss) > 0", {"V_state": 10, "V": 10}, {"V_state": 1})],
)
def test_a_late_row_50_parts_back_changes_10_parts_of_a_delta_and_stops(
    open_spark: Callable[[str], Any], tmp_path: Any, having: str, published: dict[str, int], kept: dict[str, int]
) -> None:
    with Warehouse.open(tmp_path / "wh", spark=open_spark("classic")) as warehouse:
        warehouse.apply(
            STREAM + f"CREATE VIEW V AS SELECT src, sum(loss) AS total FROM M [WINDOW 10 minutes] GROUP BY src {having}"
        )
        warehouse.load("M", [measurement(number, number) for number in range(62)], batch_id="on time")
        warehouse.refresh()
        warehouse.load("M", [measurement(11, 1000)], batch_id="late")
        report = warehouse.refresh()
    partials = "M_per_1_minute_by_src"
    assert count_steps(report, "published") == {partials: 1, **published}
    assert count_steps(report, "kept") == kept


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("width", "blocks"), [(10, {}), (20, {"M_per_1_minute_by_src_block8": 8})])
def test_a_late_row_50_parts_back_changes_one_window_of_a_dyadic_view_and_stops(
    open_spark: Callable[[str], Any], tmp_path: Any, width: int, blocks: dict[str, int]
) -> None:
    with Warehouse.open(tmp_path / "wh", spark=open_spark("classic")) as warehouse:
        warehouse.apply(
            STREAM + f"CREATE VIEW V AS SELECT src, max(loss) AS most FROM M [WINDOW {width} minutes] GROUP BY src "
            "WITH (strategy = 'dyadic')"
        )
        warehouse.load("M", [measurement(number, number) for number in range(72)], batch_id="on time")
        # Nothing is chained to the past, so a few parts around what changes, and the newest, tell as much as all.
        span = PartSet.between(FIRST + 20, FIRST + 43) | PartSet.between(FIRST + 70, FIRST + 71)
        warehouse.refresh(parts={"V": span})
        warehouse.load("M", [measurement(21, 1000)], batch_id="late")
        report = warehouse.refresh(parts={"V": span})
    # A window of 10 has a single block of eight, which is not worth making; one of 20 has two, and reads four parts more.
    assert count_steps(report, "published") == {"M_per_1_minute_by_src": 1, **blocks, "V": width}
    assert count_steps(report, "kept") == {}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("fanout", "width", "sizes"), [(8, 18, {8}), (2, 11, {2, 4})])
def test_windows_made_of_blocks_of_several_sizes_have_what_their_rows_say(
    open_spark: Callable[[str], Any],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    fanout: int,
    width: int,
    sizes: set[int],
) -> None:
    monkeypatch.setattr("airflow_provider_viewdf.translate.window.dyadic.FANOUT", fanout)
    choose = random.Random(fanout)
    parts = range(30)
    rows = [(part, choose.choice("abc"), choose.randint(-50, 50)) for part in parts for _ in range(2)]
    late = [(choose.choice(parts), choose.choice("abcd"), choose.choice([-99, 99])) for _ in range(4)]
    with Warehouse.open(tmp_path / "wh", spark=open_spark("classic")) as warehouse:
        warehouse.apply(
            STREAM + "CREATE VIEW V AS SELECT src, max(loss) AS most, min(loss) AS least, count(*) AS n "
            f"FROM M [WINDOW {width} minutes] GROUP BY src WITH (strategy = 'dyadic')"
        )
        assert {item.name.rpartition("block")[2] for item in warehouse.definitions() if "block" in item.name} == {
            str(size) for size in sizes
        }
        for batch, some in (("on time", rows), ("late", late)):
            loaded = [{"ts": minute(part), "src": src, "dest": "x", "loss": loss} for part, src, loss in some]
            warehouse.load("M", loaded, batch_id=batch)
            warehouse.refresh()
        found = warehouse.query("SELECT PART, src, most, least, n FROM V").collect()
    expected = []
    for end in range(width - 1, len(parts)):
        for src in "abcd":
            inside = [loss for part, other, loss in rows + late if other == src and end - width < part <= end]
            if inside:
                expected.append((FIRST + end, src, max(inside), min(inside), len(inside)))
    assert sorted(tuple(row) for row in found) == expected


@pytest.mark.parametrize("strategy", ["delta", "merge"])
def test_groups_leave_the_window_and_come_back_whatever_their_sum(warehouse: Warehouse, strategy: str) -> None:
    warehouse.apply(
        STREAM
        + "CREATE VIEW V AS SELECT src, sum(loss) AS total, count(*) AS n FROM M [WINDOW 2 minutes] GROUP BY src "
        f"WITH (strategy = '{strategy}')"
    )
    losses = [("a", 0, 4), ("a", 0, -4), ("b", 0, None), ("b", 1, 1), ("a", 3, 0), ("b", 4, -1)]
    rows = [{"ts": minute(part, 5), "src": src, "dest": "x", "loss": loss} for src, part, loss in losses]
    warehouse.load("M", rows, covers=(minute(0), minute(6)))
    warehouse.refresh()
    found = warehouse.query("SELECT PART, src, total, n FROM V ORDER BY PART, src").collect()
    assert [(row[0] - FIRST, *row[1:]) for row in found] == [
        (1, "a", 0, 2),
        (1, "b", 1, 2),
        (2, "b", 1, 1),
        (3, "a", 0, 1),
        (4, "a", 0, 1),
        (4, "b", -1, 1),
        (5, "b", -1, 1),
    ]
    assert warehouse.verify().is_ok


def test_a_window_over_a_view_and_another_window_applied_later(open_spark: Callable[[str], Any], tmp_path: Any) -> None:
    with Warehouse.open(tmp_path / "wh", spark=open_spark("classic")) as warehouse:
        warehouse.apply(
            STREAM + "CREATE VIEW Pairs AS SELECT a.src, b.loss FROM M a JOIN M b ON a.src = b.src;"
            "CREATE VIEW V AS SELECT src, sum(CAST(loss AS BIGINT)) AS total FROM Pairs [WINDOW 4 minutes] GROUP BY src"
        )
        warehouse.load("M", [measurement(number, number) for number in range(6)])
        warehouse.refresh()
        script = "CREATE VIEW X AS SELECT src, max(loss) AS most FROM Pairs [WINDOW 2 minutes] GROUP BY src WITH (strategy = 'merge')"
        warehouse.apply(script)
        report = warehouse.refresh()
        assert {step.view for step in report.steps} == {"X", "Pairs_per_1_minute_by_src_more2"}
        assert [tuple(row) for row in warehouse.query("SELECT total FROM V ORDER BY PART").collect()] == [
            (6,),
            (10,),
            (14,),
        ]
        assert [row[0] for row in warehouse.query("SELECT most FROM X ORDER BY PART").collect()] == [1, 2, 3, 4, 5]
        warehouse.apply(script)
        assert warehouse.refresh().steps == ()
        assert "Strategy delta: all aggregates are of exact numbers" in warehouse.explain("V")
