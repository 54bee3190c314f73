"""Whatever is written, replaced and removed, and whenever somebody looks: the catalog has what the last look saw."""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.lake import Lake, hour, row

from airflow_provider_viewdf.warehouse import Warehouse

NUMBERS = st.integers(10, 12)
NAMES = st.sampled_from(["a", "b"])
STEPS = st.one_of(
    st.tuples(st.just("write"), NUMBERS, NAMES),
    st.tuples(st.just("delete"), NUMBERS, NAMES),
    st.tuples(st.just("mark"), NUMBERS, st.booleans()),
    st.tuples(st.just("declare"), NUMBERS, st.none()),
    st.tuples(st.just("look"), NUMBERS, st.integers(0, 2)),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, max_size=25), st.booleans())
def test_the_catalog_has_what_the_last_look_saw(steps: list[tuple[str, int, Any]], has_marker: bool) -> None:
    with tempfile.TemporaryDirectory() as place, Warehouse.open(Path(place, "wh")) as wh:
        lake = Lake(str(Path(place, "lake")))
        wh.apply(lake.define("COMPLETE WHEN '_SUCCESS'" if has_marker else ""))
        files: dict[int, dict[str, int]] = {number: {} for number in (9, 10, 11, 12, 13)}
        marked: set[int] = set()
        registered: dict[int, dict[str, int]] = {}
        versions: dict[int, int] = {}

        def register(number: int, found: dict[str, int]) -> None:
            if registered.get(number) != found:
                registered[number] = dict(found)
                versions[number] = versions.get(number, 0) + 1

        for clock, (action, number, detail) in enumerate(steps, 1):
            if action == "write":
                file = lake.write(number, [row(number, "k", clock)], detail)
                os.utime(file, (clock, clock))
                files[number][f"{detail}.csv"] = clock
            elif action == "delete" and f"{detail}.csv" in files[number]:
                lake.delete(number, f"{detail}.csv")
                del files[number][f"{detail}.csv"]
            elif action == "mark" and has_marker and detail != (number in marked):
                if detail:
                    lake.write_text(number, "_SUCCESS")
                else:
                    lake.delete(number, "_SUCCESS")
                marked ^= {number}
            elif action == "declare":
                wh.declare_empty("E", hour(number), "test")
                if number not in registered or not files[number]:
                    register(number, {})
            elif action == "look":
                result = wh.look("E", hour(number), lookback=detail)
                for seen in range(max(9, number - detail), number + 1):
                    if (seen in marked) if has_marker else files[seen]:
                        register(seen, files[seen])
                assert not result.missing & (result.registered | result.changed)
        stored = {
            int((version.index * 3600 - hour(0).timestamp()) // 3600): version
            for version in wh.changed_since(hour(0) - timedelta(days=20000))
        }
        assert {number: sorted(item.name for item in version.files) for number, version in stored.items()} == {
            number: sorted(found) for number, found in registered.items()
        }
        assert {number: version.version for number, version in stored.items()} == versions
