"""Helper parts that gc retires, rows that come later than that, and views that begin in the middle of their stream."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from network import measurement, minute
from window_oracle import FIRST

from airflow_provider_viewdf.errors import MissingPartError
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;\n"
PARTIALS = "M_per_1_minute_by_src"


def totals(warehouse: Warehouse, view: str) -> dict[int, int]:
    return {row[0] - FIRST: row[1] for row in warehouse.query(f"SELECT PART, total FROM {view}").collect()}


def windows(losses: dict[int, int], width: int, first: int) -> dict[int, int]:
    return {
        end: sum(losses[part] for part in range(max(end - width + 1, 0), end + 1))
        for end in range(first, max(losses) + 1)
    }


@pytest.mark.parametrize(
    ("before", "states"),
    [
        # V[5] may have to be computed again: from V_state[5], which reads V_state[4] and parts 3 to 5.
        ("RETAIN '1 hour'", [("V_state", 1)]),
        # Without RETAIN, V has its states itself, and they stay, though RETAIN is written later.
        ("", []),
    ],
)
def test_gc_retires_helper_parts_and_rows_that_come_later_bring_them_back(
    open_spark: Callable[[str], Any], tmp_path: Any, before: str, states: list[tuple[str, int]]
) -> None:
    losses = {number: number + 1 for number in range(8)}
    with Warehouse.open(tmp_path / "wh", spark=open_spark("classic")) as warehouse:
        window = (
            "CREATE VIEW V AS SELECT src, sum(loss) AS total FROM M [WINDOW 2 minutes] GROUP BY src "
            "WITH (strategy = 'delta') "
        )
        warehouse.apply(STREAM + window + before)
        warehouse.load("M", [measurement(number, loss) for number, loss in losses.items()], batch_id="on time")
        warehouse.refresh()
        warehouse.apply(window + "RETAIN '2 minutes'")
        assert warehouse.refresh().steps == ()
        assert warehouse.gc(timedelta(seconds=-60)).retired == 3 + 3 * len(states)
        assert warehouse.gc(timedelta(seconds=-60)).retired == 0
        assert sorted(path.name for path in (tmp_path / "wh" / PARTIALS).iterdir()) == [
            str(FIRST + n) for n in range(3, 8)
        ]
        assert warehouse.refresh().steps == ()
        with pytest.raises(MissingPartError) as caught:
            warehouse.query(f"SELECT * FROM {PARTIALS}[{FIRST + 2}]")
        assert str(caught.value) == (
            f"The query reads {PARTIALS}[{FIRST + 2}] (2015-01-01T10:02), of which gc has removed the rows, as nothing will "
            "read them soon; query V instead, or let V RETAIN more."
        )
        warehouse.load("M", [measurement(6, 100)], batch_id="late")
        losses[6] += 100
        assert {step.reason for step in warehouse.refresh().steps if "retired" in step.reason} == set()
        assert totals(warehouse, "V") == windows(losses, 2, 1)
        warehouse.load("M", [measurement(2, 1000)], batch_id="very late")
        losses[2] += 1000
        report = warehouse.refresh()
        assert totals(warehouse, "V") == windows(losses, 2, 1)
        assert {
            (step.view, step.index - FIRST) for step in report.steps if step.reason == "retired, and read again"
        } == {
            (PARTIALS, 0),
            (PARTIALS, 1),
            *states,
        }
        assert warehouse.verify().is_ok


@pytest.mark.parametrize("strategy", ["delta", "prefix", "merge"])
def test_a_view_that_begins_in_the_middle_of_its_stream_has_whole_windows_at_once(
    open_spark: Callable[[str], Any], tmp_path: Any, strategy: str
) -> None:
    losses = {number: number + 1 for number in range(7)}
    with Warehouse.open(tmp_path / "wh", spark=open_spark("classic")) as warehouse:
        query = f"SELECT sum(loss) AS total FROM M [WINDOW 2 minutes PARTIAL] WITH (strategy = '{strategy}')"
        warehouse.apply(
            f"{STREAM} CREATE VIEW V AS {query}; CREATE VIEW X AS {query} STARTING '2015-01-01T10:03'", start=minute(4)
        )
        warehouse.load("M", [measurement(number, loss) for number, loss in losses.items()])
        warehouse.refresh()
        assert totals(warehouse, "V") == windows(losses, 2, 4)
        assert totals(warehouse, "X") == windows(losses, 2, 3)
