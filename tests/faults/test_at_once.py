"""Several processes load, refresh, roll up, clean up and ask at the same time: nothing is torn, lost, doubled or waits for ever."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from history import Diary, Load, Read, check_history, find_loads, find_reads, read_diaries
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from spark import Sparks
from worker import AT_ONCE, Place, minute, prepare, run_apart
from world import FIRST, Worlds

from airflow_provider_viewdf.parts import PartSet

PARTS = 3
SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k STRING, x INT) PARTITION LENGTH 60;
CREATE VIEW Copy AS SELECT k, x FROM S;
CREATE VIEW Chain AS
  INITIALIZE Chain[i] AS SELECT k, CAST(sum(x) AS BIGINT) AS total FROM Copy[i] GROUP BY k
  UPDATE Chain[j] AS
    SELECT k, CAST(sum(total) AS BIGINT) FROM (
      SELECT k, CAST(x AS BIGINT) AS total FROM Copy[j] UNION ALL SELECT k, total FROM Chain[j-1]) GROUP BY k
  PARTITION LENGTH 60;
"""
EVERYTHING = " UNION ALL ".join(
    f"SELECT '{table}' AS t, PART AS p, k, CAST({column} AS BIGINT) AS n FROM {table}"
    for table, column in (("S", "x"), ("Copy", "x"), ("Chain", "total"))
)
# What Spark says of a file that gc took away from under a query.
GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "FileNotFoundException", "does not exist")

Task = tuple[str, int]  # what, and how often

ALL_DONE = "all-done"

# Done again and again for as long as the others are at work.
MEANWHILE = ("gc", "roll up", "read")


def work(place: Place, scratch: str, diary: str, who: str, what: str, times: int) -> None:
    prepare(place, scratch)
    with place.open() as warehouse:
        notes = Diary(diary, who)
        number = 0
        while number < times or (what in MEANWHILE and not Path(diary, ALL_DONE).exists()):
            number += 1
            began = time.monotonic()
            if what in ("load", "reload"):
                rows = [{"ts": minute(part, 1), "k": who, "x": number} for part in range(PARTS)]
                for _ in range(2 if what == "reload" else 1):
                    warehouse.load("S", rows, batch_id=who, covers=(minute(0), minute(PARTS)))
                notes.note("loaded", number=number, began=began)
            elif what == "refresh":
                warehouse.refresh()
            elif what == "clear":
                # As a cleared task does: its own part, and what else is stale.
                part = PartSet.of_indexes([FIRST + number % PARTS])
                warehouse.refresh(parts={"Chain": part}, also_stale=True)
            elif what == "gc":
                warehouse.gc(AT_ONCE)
                read(warehouse, notes)
            elif what == "roll up":
                warehouse.roll_up(span="10 minutes", older_than="0 minutes")
            else:
                read(warehouse, notes)
            notes.note("did", what=what, seconds=time.monotonic() - began)


def read(warehouse: Any, notes: Diary) -> None:
    """Ask until there is an answer: with no grace period at all, gc may take files away from a query that runs."""
    while True:
        began = time.monotonic()
        try:
            answer = warehouse.query(EVERYTHING).collect()
        except Exception as error:
            if not any(word in str(error) for word in GONE):
                raise
            notes.note("gone", why=str(error)[:200])
            continue
        notes.note("read", began=began, rows=[[row.t, row.p - FIRST, row.k, row.n] for row in answer])
        return


def run_together(tasks: Sequence[Task], database: str, worlds: Worlds, open_spark: Sparks, folder: Path) -> None:
    empty = worlds.make_empty(database)
    place = Place(empty.place.directory, empty.place.catalog_url, open_spark.connect_url)
    diary = folder / "diary"
    diary.mkdir(exist_ok=True)
    for old in diary.iterdir():
        old.unlink()
    with place.open(open_spark("connect")) as warehouse:
        warehouse.apply(SCRIPT)
        processes = {
            f"{what} {number}": run_apart(work, place, str(folder), str(diary), f"{what} {number}", what, times)
            for number, (what, times) in enumerate(tasks)
        }
        deadline = time.monotonic() + 60 + 20 * sum(times for _, times in tasks)
        for process, (what, _) in zip(processes.values(), tasks):
            if what not in MEANWHILE:
                process.join(max(0, deadline - time.monotonic()))
        (diary / ALL_DONE).touch()
        for process in processes.values():
            process.join(max(0, deadline + 60 - time.monotonic()))
        ended = {who: process.exitcode for who, process in processes.items()}
        for process in processes.values():
            process.kill()
            process.join()
        # Who has not ended waits for somebody for ever.
        assert ended == dict.fromkeys(processes, 0)
        warehouse.refresh()
        read(warehouse, Diary(str(diary), "the end"))
        assert warehouse.refresh().steps == ()
        warehouse.gc(AT_ONCE)
        read(warehouse, Diary(str(diary), "after gc"))
        assert warehouse.verify().is_ok
    events = read_diaries(diary)
    loads, reads = find_loads(events), find_reads(events)
    check_history(loads, reads, PARTS)
    newest = {load.loader: max(item.number for item in loads if item.loader == load.loader) for load in loads}
    expected = {("S", part, who, number) for who, number in newest.items() for part in range(PARTS)}
    expected |= {("Copy", *item[1:]) for item in expected}
    expected |= {("Chain", part, who, number * (part + 1)) for who, number in newest.items() for part in range(PARTS)}
    for last in (item for item in reads if item.reader in ("the end", "after gc")):
        assert set(last.rows) == expected
    worlds.remove(empty)


TASKS = [("load", 2), ("reload", 2), ("refresh", 2), ("clear", 2), ("gc", 1), ("read", 1)]


@pytest.mark.timeout(900)
def test_processes_at_once_see_one_state_and_lose_nothing(worlds: Worlds, open_spark: Sparks, tmp_path: Path) -> None:
    run_together(TASKS, "sqlite", worlds, open_spark, tmp_path)


crowds = st.tuples(
    st.lists(st.tuples(st.sampled_from(["load", "reload"]), st.integers(1, 5)), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["refresh", "clear", "refresh", "gc", "roll up", "read"]), st.integers(1, 6)),
        min_size=2,
        max_size=5,
    ),
)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@settings(
    max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@example(crowd=(TASKS, [("roll up", 6)]), database="postgresql")
@example(crowd=(TASKS, [("roll up", 6)]), database="sqlite")
@given(crowd=crowds, database=st.sampled_from(["sqlite", "postgresql"]))
def test_any_crowd_of_processes_sees_one_state_and_loses_nothing(
    crowd: tuple[list[Task], list[Task]], database: str, worlds: Worlds, open_spark: Sparks, tmp_path: Path
) -> None:
    run_together([*crowd[0], *crowd[1]], database, worlds, open_spark, tmp_path)


def read_of(rows: Sequence[tuple[str, int, str, int]], began: float = 5, ended: float = 6) -> Read:
    return Read("r", began, ended, tuple(rows))


ONE = [("S", part, "a", 1) for part in range(PARTS)]
TWO = [("S", part, "a", 2) for part in range(PARTS)]
LOADS = [Load("a", 1, 0, 1), Load("a", 2, 4, 7)]


def test_a_history_in_which_all_is_well_is_accepted() -> None:
    check_history(LOADS, [read_of(ONE), read_of([*TWO, ("Copy", 0, "a", 2), ("Chain", 1, "a", 2)], 6, 7)], PARTS)


@pytest.mark.parametrize(
    ("reads", "sentence"),
    [
        ([read_of([*ONE[:2], TWO[2]])], "r saw pieces of the loads [1, 2] of a"),
        ([read_of(ONE[:2])], "r saw pieces of the loads [0, 1] of a"),
        ([read_of([*ONE, ONE[0]])], "r saw two rows of a in S[0]"),
        ([read_of([*ONE, ("Copy", 1, "a", 2)])], "r saw Copy[1] ahead of S[1]"),
        ([read_of([*ONE, ("Copy", 0, "a", 1), ("Chain", 1, "a", 2)])], "r saw Chain[1] ahead of what it is made from"),
        ([read_of(TWO), read_of(ONE, 8, 9)], "r saw ('S', 0, 'a') go back from 2 to 1"),
        ([read_of(ONE, 8, 9)], "r saw load 1 of a, not one of 2 to 2"),
        ([read_of(TWO, 2, 3)], "r saw load 2 of a, not one of 1 to 1"),
    ],
)
def test_a_history_in_which_something_is_torn_or_lost_is_refused(reads: list[Read], sentence: str) -> None:
    with pytest.raises(AssertionError) as raised:
        check_history(LOADS, reads, PARTS)
    assert str(raised.value).splitlines()[0] == sentence
