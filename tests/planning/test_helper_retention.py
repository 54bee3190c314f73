"""Which helper parts a window still needs."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning import Snapshot
from airflow_provider_viewdf.planning.helper_retention import find_horizons


@pytest.mark.parametrize(
    ("strategy", "horizons"),
    [
        # Rows may be 5 parts late, so V[95] may be computed again: it reads that many parts, and the state the one before.
        ("merge", {"s_per_1_minute": 76}),
        ("delta", {"s_per_1_minute": 75, "v_state": 94}),
        ("prefix", {"s_per_1_minute": 75, "s_per_1_minute_total": 74}),
        ("dyadic", {"s_per_1_minute": 76, "s_per_1_minute_block8": 87}),
    ],
)
def test_what_the_references_and_the_lateness_allow_to_be_read_is_kept(strategy: str, horizons: dict[str, int]) -> None:
    definitions = {
        item.name.lower(): item
        for item in parse_script(
            "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60; CREATE VIEW V AS "
            "SELECT sum(x) AS x FROM S [WINDOW 20 minutes] HAVING count(*) > 0 "
            f"WITH (strategy = '{strategy}') RETAIN '5 minutes'"
        )
    }
    helpers = {key for key, item in definitions.items() if item.helper_of}
    snapshot = Snapshot(definitions, {"v": PartSet.between(20, 100)})
    assert find_horizons(snapshot, helpers) == horizons


def test_a_window_that_has_no_parts_yet_keeps_everything() -> None:
    definitions = {
        item.name.lower(): item
        for item in parse_script(
            "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60; CREATE VIEW V AS "
            "SELECT sum(x) AS x FROM S [WINDOW 10 minutes] HAVING count(*) > 0; CREATE VIEW W AS SELECT sum(x) AS x FROM S [WINDOW 5 minutes]"
        )
    }
    helpers = {key for key, item in definitions.items() if item.helper_of}
    assert set(find_horizons(Snapshot(definitions, {"v": PartSet.between(20, 100_000)}), helpers)) == {"v_state"}


def test_a_state_that_could_not_be_made_again_from_archived_parts_is_kept() -> None:
    definitions = {
        item.name.lower(): item
        for item in parse_script(
            "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60 RETAIN '50 minutes'; CREATE VIEW V AS "
            "SELECT sum(x) AS x FROM S [WINDOW 10 minutes] HAVING count(*) > 0 WITH (strategy = 'delta') RETAIN '5 minutes'"
        )
    }
    helpers = {key for key, item in definitions.items() if item.helper_of}
    existing = {"s": PartSet.between(11, 100), "v": PartSet.between(20, 100)}
    # Rows of any part that S has may come, so the state before each of them is kept, and what that subtracts.
    assert find_horizons(Snapshot(definitions, existing), helpers) == {"s_per_1_minute": 1, "v_state": 10}
    archived = Snapshot(definitions, existing, archived={"s": 51})
    assert find_horizons(archived, helpers) == {"s_per_1_minute": 41, "v_state": 50}
