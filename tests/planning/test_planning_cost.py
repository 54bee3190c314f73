"""What planning costs, counted in calls of functions: as much as the steps it takes, however many views there are."""

from __future__ import annotations

import cProfile
import pstats

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.planning import Agenda, Snapshot
from airflow_provider_viewdf.versions import StaleRange

STREAM = "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;"
CHAIN = """
CREATE VIEW Chain{n} AS INITIALIZE Chain{n}[i] AS SELECT x FROM S[i]
  UPDATE Chain{n}[j] AS SELECT a.x FROM S[j] a, Chain{n}[j-1] b PARTITION LENGTH 60;
CREATE VIEW Over{n} AS INITIALIZE Over{n}[i] AS SELECT x FROM Chain{n}[i]
  UPDATE Over{n}[j] AS SELECT a.x FROM Chain{n}[j] a, Chain{n}[j-10] b PARTITION LENGTH 60;
"""


def count_calls(chains: int, parts: int, late: int) -> tuple[int, int]:
    """A late part of S, `late` parts before the end: how many steps follow from it, and how many calls plan them."""
    script = STREAM + "".join(CHAIN.format(n=n) for n in range(chains))
    definitions = {item.name.lower(): item for item in parse_script(script)}
    existing = {name: PartSet.between(0, parts - 1) for name in definitions}
    first = PartRange(parts - late, parts - late)
    stale = {f"chain{n}": (StaleRange(f"Chain{n}", first, "late data in S"),) for n in range(chains)}
    initialized = {name: PartSet.between(0, 9) for name in definitions if name.startswith("over")}
    profile = cProfile.Profile()
    profile.enable()
    agenda = Agenda(
        Snapshot(definitions, existing, stale, initialized),
        {name: PartSet.between(0, parts - 1) for name in definitions if name != "s"},
    )
    steps = 0
    while group := agenda.next_group(100):
        for step in group:
            agenda.assume_changed(step)
        steps += len(group)
    profile.disable()
    return steps, pstats.Stats(profile).total_calls


def test_four_times_the_views_take_four_times_the_planning() -> None:
    few_steps, few_calls = count_calls(chains=3, parts=1000, late=40)
    many_steps, many_calls = count_calls(chains=12, parts=1000, late=40)
    assert (few_steps, many_steps) == (3 * 80, 12 * 80)
    assert many_calls < 1.5 * 4 * few_calls


def test_parts_that_nothing_touches_cost_no_planning() -> None:
    few_steps, few_calls = count_calls(chains=2, parts=1000, late=40)
    many_steps, many_calls = count_calls(chains=2, parts=1_000_000, late=40)
    assert many_steps == few_steps
    assert many_calls < 1.1 * few_calls
