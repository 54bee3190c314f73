"""Many parts at once against one by one, over random schedules of loads, corrections, late rows and refreshes."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from network import minute

from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440
MINUTES = 12

SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k STRING, x INT) PARTITION LENGTH 60;
CREATE VIEW Grouped AS SELECT k, sum(x) AS total, count(*) AS ct FROM S GROUP BY k;
CREATE VIEW Numbered AS SELECT k, row_number() OVER (PARTITION BY k ORDER BY ts, x) AS rn FROM S;
CREATE VIEW Clocked AS SELECT k, now() AS made, PART AS p FROM S;
CREATE VIEW Compared AS SELECT k, x FROM S WHERE x >= (SELECT avg(x) FROM S);
CREATE VIEW Change AS INITIALIZE Change[i] AS SELECT k, 0 AS x FROM S[i]
  UPDATE Change[j] AS SELECT b.k, b.x - a.x FROM S[j-1] a JOIN S[j] b ON a.k = b.k PARTITION LENGTH 60;
CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT k, count(*) AS ct FROM S[i] GROUP BY k
  UPDATE Chain[j] AS SELECT s.k, count(*) + max(coalesce(c.ct, 0)) FROM S[j] s LEFT JOIN Chain[j-1] c ON s.k = c.k GROUP BY s.k
  PARTITION LENGTH 60;
CREATE VIEW Above AS SELECT k FROM Chain WHERE ct > 1;
CREATE VIEW Twos AS INITIALIZE Twos[i] AS SELECT k, count(*) AS ct FROM S[i*2 .. i*2+1] GROUP BY k
  UPDATE Twos[j] AS SELECT k, count(*) FROM S[j*2 .. j*2+1] GROUP BY k PARTITION LENGTH 120;
CREATE VIEW Back AS INITIALIZE Back[i] AS SELECT s.k, t.ct FROM S[i] s JOIN Twos[i/2] t USING (k)
  UPDATE Back[j] AS SELECT s.k, t.ct FROM S[j] s JOIN Twos[j/2] t USING (k) PARTITION LENGTH 60;
CREATE VIEW Filling AS INITIALIZE Filling[i] AS SELECT k, count(*) AS ct FROM S[i-2 .. i PARTIAL] GROUP BY k
  UPDATE Filling[j] AS SELECT k, count(*) FROM S[j-2 .. j PARTIAL] GROUP BY k PARTITION LENGTH 60;
"""
VIEWS = ("Grouped", "Numbered", "Clocked", "Compared", "Change", "Chain", "Above", "Twos", "Back", "Filling")


def make_schedule(choose: random.Random) -> list[Any]:
    """Loads and refreshes in any order; what is loaded under a name for the second time corrects the first."""
    events: list[Any] = []
    for _ in range(choose.randint(4, 8)):
        if choose.random() < 0.6:
            first = choose.randrange(MINUTES)
            last = choose.randrange(first, MINUTES) + 1
            rows = [
                {
                    "ts": minute(choose.randrange(first, last), second),
                    "k": choose.choice("ab"),
                    "x": choose.randrange(5),
                }
                for second in range(choose.randint(0, 12))
            ]
            events.append(("load", choose.choice("pqr"), rows, first, last))
        else:
            first = choose.randrange(MINUTES)
            views = choose.sample(VIEWS, choose.randint(1, 4))
            events.append(("refresh", views, first, choose.randrange(first, MINUTES) + 1))
    return [*events, ("refresh", None, 0, MINUTES)]


def follow(folder: Path, spark: Any, schedule: list[Any], limit: int) -> dict[str, Any]:
    """What a warehouse has after a schedule: each part's rows, all of its versions, and what is stale."""
    with Warehouse.open(folder, spark=spark) as warehouse:
        warehouse.apply(SCRIPT)
        steps = []
        for kind, what, *details in schedule:
            if kind == "load":
                rows, first, last = details
                warehouse.load("S", rows, batch_id=what, covers=(minute(first), minute(last)))
            else:
                first, last = details
                report = warehouse.refresh(what, minute(first), minute(last), batch_limit=limit)
                steps.append(
                    sorted((s.view, s.index, s.rule, s.outcome, s.rows, s.version, s.inputs) for s in report.steps)
                )
        found: dict[str, Any] = {"steps": steps}
        for name in VIEWS:
            length = timedelta(minutes=2 if name == "Twos" else 1)
            first = FIRST // 2 if name == "Twos" else FIRST
            found[name] = (
                Counter(map(str, warehouse.query(f"SELECT *, PART AS of_part FROM {name}").collect())),
                {
                    index: [
                        (v.version, v.digest, v.inputs, v.inputs_digest, v.rule)
                        for v in warehouse.version_history(name, minute(0) + (index - first) * length)
                    ]
                    for index in warehouse.existing_parts(name)
                },
                str(warehouse.status(name)[0].stale),
            )
        return found


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(12))
def test_any_schedule_gives_the_same_versions_many_at_once_and_one_by_one(
    seed: int, tmp_path: Path, spark: Any
) -> None:
    schedule = make_schedule(random.Random(seed))
    one = follow(tmp_path / "one", spark, schedule, 1)
    for limit in (3, 100):
        many = follow(tmp_path / f"many{limit}", spark, schedule, limit)
        for what in one:
            assert many[what] == one[what], (seed, limit, what, schedule)
