"""What has to be loaded before parts can be computed: all of it, also what is needed through a view's own past."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning import Agenda, Snapshot

SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW Chain AS INITIALIZE Chain[i] AS SELECT x FROM S[i]
  UPDATE Chain[j] AS SELECT a.x FROM S[j] a, Chain[j-1] b PARTITION LENGTH 60;
CREATE VIEW Third AS INITIALIZE Third[i] AS SELECT x FROM S[i]
  UPDATE Third[j] AS SELECT a.x FROM S[j] a, Third[j-3] b PARTITION LENGTH 60;
CREATE VIEW Over AS SELECT x FROM Chain;
"""


@pytest.mark.parametrize(
    ("view", "asked", "missing"),
    [
        ("chain", 9, [8, 9]),
        ("over", 9, [8, 9]),
        ("chain", 1_000_000, range(8, 1_000_001)),
        ("third", 12, [9, 12]),
        ("third", 8, [8]),
    ],
)
def test_every_part_that_has_to_be_loaded_is_listed(view: str, asked: int, missing: list[int]) -> None:
    definitions = {item.name.lower(): item for item in parse_script(SCRIPT)}
    done = PartSet.between(0, 7)
    existing = dict.fromkeys(("s", "chain", "third", "over"), done)
    agenda = Agenda(Snapshot(definitions, existing), {view: PartSet.between(asked, asked)})

    assert agenda.next() is None
    (blocked,) = agenda.blocked
    assert dict(blocked.missing) == {"S": PartSet.of_indexes(missing)}
