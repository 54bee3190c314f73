"""Columns that a view keeps for itself: its own past has them, and nobody else."""

from __future__ import annotations

import pytest
from network import measurement, minute
from window_oracle import FIRST

from airflow_provider_viewdf.errors import DefinitionError, ViewDFError
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;\n"
MEAN = """
CREATE VIEW Mean AS
  INITIALIZE Mean[i] AS
    SELECT sum(loss) / count(*) AS mean, sum(loss) AS __own_total, count(*) AS __OWN_n FROM M[i]
  UPDATE Mean[j] AS
    SELECT (p.__own_total + n.total) / (p.__own_n + n.n), p.__own_total + n.total, p.__own_n + n.n
    FROM Mean[j-1] AS p CROSS JOIN (SELECT sum(loss) AS total, count(*) AS n FROM M[j]) AS n
  PARTITION LENGTH 60;
"""
READERS = """
CREATE VIEW All_columns AS SELECT * FROM Mean;
CREATE VIEW By_window AS SELECT max(mean) AS most FROM Mean [WINDOW 2 minutes];
CREATE VIEW By_pattern AS SELECT last(b.mean) AS mean FROM Mean PATTERN [a, b] WHERE b.mean > a.mean;
"""


def test_a_view_reads_columns_of_its_own_in_its_past_and_nobody_else_sees_them(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM + MEAN + READERS)
    warehouse.load("M", [measurement(number, loss) for number, loss in enumerate([4, 8, 3, 9])])
    warehouse.refresh()
    means = [4.0, 6.0, 5.0, 6.0]
    for name in ("Mean", "All_columns"):
        found = warehouse.query(f"SELECT * FROM {name} ORDER BY PART")
        assert (name, found.columns, [row[0] for row in found.collect()]) == (name, ["mean"], means)
        assert warehouse.status(name)[0].columns == (("mean", "double"),)
    assert [row[0] for row in warehouse.query("SELECT most FROM By_window ORDER BY PART").collect()] == [6.0, 6.0, 6.0]
    assert [tuple(row) for row in warehouse.query("SELECT PART, mean FROM By_pattern ORDER BY PART").collect()] == [
        (FIRST + 1, 6.0),
        (FIRST + 3, 6.0),
    ]
    assert warehouse.verify().is_ok
    warehouse.load("M", [measurement(1, 0)], batch_id="late")
    warehouse.refresh()
    assert [row[0] for row in warehouse.query("SELECT mean FROM All_columns ORDER BY PART").collect()] == [
        4.0,
        4.0,
        3.75,
        4.8,
    ]
    assert warehouse.verify().is_ok


def test_a_query_for_a_column_of_a_views_own_is_refused(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM + MEAN)
    warehouse.load("M", [measurement(0, 1)])
    warehouse.refresh()
    with pytest.raises(ViewDFError) as caught:
        warehouse.query("SELECT __own_total FROM Mean")
    assert "__own_total" in str(caught.value)
    with pytest.raises(DefinitionError) as refused:
        warehouse.apply("CREATE VIEW Other AS SELECT __own_n FROM Mean")
    assert "__own_n" in str(refused.value)
    assert [item.name for item in warehouse.status()] == ["M", "Mean"]


def test_a_view_whose_columns_are_all_its_own_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(DefinitionError) as caught:
        warehouse.apply(STREAM + "CREATE VIEW V AS SELECT src AS __own_src FROM M")
    assert caught.value.reason == (
        "V has no column that others can see, since the names of all begin with __own_; give one of them another name with AS."
    )
    with pytest.raises(DefinitionError) as reserved:
        warehouse.apply(STREAM + "CREATE VIEW V AS SELECT src AS __src, loss FROM M")
    assert "cannot have a column named __src" in str(reserved.value)
    assert warehouse.status() == []


def test_a_window_that_does_not_show_its_keys_keeps_them_for_itself(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM
        + "CREATE VIEW V AS SELECT dest, sum(loss) AS total FROM M [WINDOW 2 minutes] GROUP BY src, dest "
        + "WITH (strategy = 'delta')"
    )
    losses = [("a", 0, 4), ("b", 0, 1), ("a", 1, 5), ("b", 2, 7)]
    rows = [{"ts": minute(part), "src": src, "dest": "x", "loss": loss} for src, part, loss in losses]
    warehouse.load("M", rows, covers=(minute(0), minute(4)))
    warehouse.refresh()
    found = warehouse.query("SELECT PART, * FROM V ORDER BY PART, total")
    assert [(row[0] - FIRST, row[1], row[2]) for row in found.collect()] == [
        (1, "x", 1),
        (1, "x", 9),
        (2, "x", 5),
        (2, "x", 7),
        (3, "x", 7),
    ]
    assert warehouse.verify().is_ok
