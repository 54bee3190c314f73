"""UNIQUE: no two rows of a part are alike in these columns, whichever batch brings them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from network import LOSSES, measurement, minute

from airflow_provider_viewdf.errors import RejectedRowsError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = (
    "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT, UNIQUE (src, dest)) PARTITION LENGTH 60;"
)
VIEW = """
CREATE VIEW View1 AS
  SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
  FROM M PATTERN [a, b, c, d+]
  WHERE a.loss > 10 AND b.loss > 10 AND c.loss > 10 AND d.loss > 10
  GROUP BY src, dest;
"""
FIRST = 23668440
REMEDY = 'Nothing was loaded; correct the rows, or load with on_error="quarantine" to set aside those of this batch.'


def row(part: int, src: str | None, loss: int, second: int = 0) -> dict[str, Any]:
    return {"ts": minute(part, second), "src": src, "dest": "z", "loss": loss}


def losses(warehouse: Warehouse) -> list[int]:
    return sorted(item.loss for item in warehouse.query("SELECT loss FROM M").collect())


def test_rows_of_one_batch_that_are_alike_are_refused_by_name_and_nothing_is_loaded(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    warehouse.apply(STREAM)
    with pytest.raises(RejectedRowsError) as refused:
        warehouse.load("M", [row(0, "a", 1), row(0, "a", 2, 5), row(1, "a", 3), row(1, None, 4), row(1, None, 5)])
    assert str(refused.value) == (
        f'M has UNIQUE (src, dest), but 2 rows of M[{FIRST}] (2015-01-01T10:00) have src = "a", dest = "z"; '
        f'2 rows of M[{FIRST + 1}] (2015-01-01T10:01) have src = null, dest = "z". {REMEDY}'
    )
    assert warehouse.existing_parts("M") == PartSet()
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_row_that_is_there_already_is_refused_but_its_own_batch_may_correct_it(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM)
    warehouse.load("M", [row(0, "a", 1), row(0, "b", 2)], batch_id="first")
    with pytest.raises(RejectedRowsError) as refused:
        warehouse.load("M", [row(0, "a", 3, 7), row(1, "a", 4)], batch_id="second")
    assert str(refused.value) == (
        f'M has UNIQUE (src, dest), but 2 rows of M[{FIRST}] (2015-01-01T10:00) have src = "a", dest = "z". {REMEDY}'
    )
    assert losses(warehouse) == [1, 2]
    warehouse.load("M", [row(0, "a", 5), row(0, "b", 2)], batch_id="first")
    assert losses(warehouse) == [2, 5]


def test_the_quarantine_takes_every_row_of_the_batch_that_is_alike_with_another(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM)
    warehouse.load("M", [row(0, "a", 1)], batch_id="first")
    rows = [row(0, "a", 2, 7), row(0, "b", 3), row(1, "c", 4), row(1, "c", 5, 1), row(1, "d", 6)]
    result = warehouse.load("M", rows, batch_id="second", on_error="quarantine")
    assert (result.rows, len(result.rejected)) == (2, 3)
    assert losses(warehouse) == [1, 3, 6]
    found = warehouse.query("SELECT reason, get_json_object(row, '$.loss') AS loss FROM M_quarantine").collect()
    assert sorted((item.loss, item.reason) for item in found) == [
        ("2", f"another row of M[{FIRST}] (2015-01-01T10:00) has the same src, dest"),
        ("4", f"another row of M[{FIRST + 1}] (2015-01-01T10:01) has the same src, dest"),
        ("5", f"another row of M[{FIRST + 1}] (2015-01-01T10:01) has the same src, dest"),
    ]
    again = warehouse.load("M", rows, batch_id="second", on_error="quarantine")
    assert (again.changed, again.rows) == (PartSet(), 2)


def test_a_pattern_over_a_unique_stream_is_one_outer_join_and_gives_the_numbers_of_the_paper(
    warehouse: Warehouse,
) -> None:
    warehouse.apply(STREAM + VIEW)
    late = measurement(2, LOSSES[2])
    rows = [measurement(number, loss) for number, loss in LOSSES.items() if number != 2]
    warehouse.load("M", rows, covers=(minute(0), minute(7)), batch_id="rows")
    warehouse.refresh()
    assert warehouse.query("SELECT * FROM View1").collect() == []
    warehouse.load("M", [late], batch_id="late")
    warehouse.refresh()
    found = warehouse.query("SELECT PART, ct, sum_loss FROM View1 ORDER BY PART").collect()
    assert [tuple(item) for item in found] == [(FIRST + 4, 4, 71), (FIRST + 5, 5, 87)]
    text = warehouse.explain("View1")
    assert "computed: by an outer join with the part before, because M has UNIQUE (src, dest)" in text
    assert warehouse.verify("View1").is_ok
