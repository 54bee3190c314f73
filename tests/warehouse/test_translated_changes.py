"""Changing and dropping views of pattern and window queries, whose helper views go along with them."""

from __future__ import annotations

import pytest
from network import measurement

from airflow_provider_viewdf.errors import ChangedDefinitionError, DefinitionError, StillReadError
from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440  # 10:00
STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;"
P = "CREATE VIEW P AS SELECT src, count(*) AS ct FROM M PATTERN [a+] WHERE a.loss > 10 GROUP BY src;"
W = "CREATE VIEW W AS SELECT src, sum(loss) AS total FROM M [WINDOW 3 minutes] GROUP BY src;"
X = "CREATE VIEW X AS SELECT src, sum(loss) AS total, count(*) AS n FROM M [WINDOW 4 minutes] GROUP BY src;"


def test_helper_views_follow_the_choice_for_their_view_and_go_with_it(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM + P + W + X)
    warehouse.load("M", [measurement(number, 12 + number) for number in range(5)])
    warehouse.refresh()
    helpers = {item.name: item.owners for item in warehouse.definitions() if item.helper_of}
    [runs] = [name for name, owners in helpers.items() if owners == ("P",)]
    [shared] = [name for name, owners in helpers.items() if set(owners) == {"W", "X"}]

    with pytest.raises(DefinitionError) as by_hand:
        warehouse.apply(f"DROP VIEW {runs}")
    assert by_hand.value.reason == f"{runs} is a helper view of P and goes when nothing needs it any more; drop P."
    with pytest.raises(StillReadError) as read:
        warehouse.apply("DROP STREAM M")
    assert str(read.value).startswith("M cannot be dropped, since P, W and X would read it still;")
    changed = P.replace("> 10", "> 13")
    with pytest.raises(ChangedDefinitionError) as refused:
        warehouse.apply(changed)
    assert str(refused.value).startswith("P is already defined differently and has parts;")
    assert f"\n  {runs}[{FIRST} .. {FIRST + 4}], 5 parts, because definition changed" in str(refused.value)

    # The state of the helper view goes on: four rows of the old pattern, and one of the new.
    warehouse.apply(changed, changed="forward")
    assert warehouse.refresh().steps == ()
    warehouse.load("M", [measurement(5, 30)])
    warehouse.refresh()
    report = warehouse.verify()
    assert (report.is_ok, [name for name, _ in report.left_out]) == (True, [runs])

    warehouse.apply("DROP VIEW W")
    assert {item.name: item.owners for item in warehouse.definitions()}[shared] == ("X",)
    warehouse.apply("DROP VIEW X; DROP VIEW P")
    assert [item.name for item in warehouse.definitions()] == ["M"]


@pytest.mark.parametrize("having", ["", "HAVING sum(loss) > 0"])
def test_a_window_does_not_go_on_from_the_state_of_another(warehouse: Warehouse, having: str) -> None:
    window = f"CREATE VIEW W AS SELECT src, sum(loss) AS total FROM M [WINDOW 4 minutes] GROUP BY src {having};"
    warehouse.apply(STREAM + window)
    warehouse.load("M", [measurement(number, 1 + number) for number in range(6)])
    warehouse.refresh()
    state = "W_state, a helper view of W," if having else "W"
    for changed in (window.replace("4 minutes", "5 minutes"), window.replace("GROUP", "WHERE loss > 2 GROUP")):
        with pytest.raises(ChangedDefinitionError) as refused:
            warehouse.apply(changed, changed="forward")
        assert str(refused.value) == (
            f"{state} goes on from the state of its last part, which is that of another window or of other rows, so its old "
            'parts cannot stay. Restate every part with changed="restate" (viewdf apply --restate), or define a view of another '
            "name; nothing was changed."
        )
    warehouse.apply("CREATE VIEW Twice AS SELECT 2 * total AS total FROM W")
    warehouse.refresh()
    warehouse.apply(window.replace("4 minutes", "5 minutes"), changed="restate")
    warehouse.refresh()
    # A window of five minutes has no fourth part, and neither has what reads it.
    assert [row[0] for row in warehouse.query("SELECT total FROM W ORDER BY PART").collect()] == [15, 20]
    assert [row[0] for row in warehouse.query("SELECT total FROM Twice ORDER BY PART").collect()] == [30, 40]
    assert warehouse.verify().is_ok
