"""Processes are killed at every point of their work, and at any time; afterwards nothing is lost, doubled, torn or left over."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spark import Sparks
from worker import Fault, Operation, Place, perform, start
from world import CORRECT, EMPTY, EXTRA, LATE, REFRESH, State, World, Worlds, states_along

import airflow_provider_viewdf
from airflow_provider_viewdf.fail_points import POINTS

GC: Operation = ("gc",)
WAIT_SECONDS = 120


@dataclass(frozen=True)
class Job:
    """Work that comes by a point, and the world it begins with."""

    operations: tuple[Operation, ...]
    world: str = "settled"


LOAD = Job((CORRECT,))
UPDATE = Job((CORRECT, REFRESH))
CLEAN_UP = Job((GC,), "littered")
EVERYTHING = Job((CORRECT, LATE, REFRESH, ("look",), ("roll up",), ("retire",), GC))

# By point: the work that comes by it, and how often.
JOBS: dict[str, tuple[Job, int]] = {
    "load: staged": (LOAD, 1),
    "load: written": (LOAD, 1),
    "load: moved": (LOAD, 4),
    "load: published": (LOAD, 1),
    "declare empty: recorded": (Job((EMPTY,)), 1),
    "look: listed": (Job((("look",),)), 1),
    "look: published": (Job((("look",),)), 1),
    "refresh: leased": (UPDATE, 3),
    "refresh: computed": (UPDATE, 3),
    "refresh: published": (UPDATE, 3),
    "refresh many: leased": (UPDATE, 3),
    "refresh many: computed": (UPDATE, 3),
    "refresh many: moved": (UPDATE, 3),
    "refresh many: published": (UPDATE, 3),
    "publish: in the transaction": (UPDATE, 3),
    "publish: committed": (UPDATE, 3),
    "apply: saved": (Job((("apply", EXTRA),)), 1),
    "roll up: written": (Job((("roll up",),)), 3),
    "roll up: moved": (Job((("roll up",),)), 3),
    "retire: archived": (Job((("retire",),)), 1),
    "gc: helpers retired": (CLEAN_UP, 1),
    "gc: directory removed": (CLEAN_UP, 3),
    "gc: versions forgotten": (CLEAN_UP, 1),
    "gc: places forgotten": (CLEAN_UP, 1),
    "gc: writers ended": (CLEAN_UP, 1),
    "gc: orphan removed": (CLEAN_UP, 3),
    "migrate: begun": (Job((("migrate",),), "empty"), 1),
    "migrate: tables made": (Job((("migrate",),), "empty"), 1),
    "migrate: committed": (Job((("migrate",),), "empty"), 1),
}

# The sample: every point once, and one more; each on one of the databases, a few with a Spark of their own.
DATABASES = ("sqlite", "postgresql")
CLASSIC = ("load: moved", "refresh: computed")
SAMPLE = [
    *(
        (point, JOBS[point][1] // 2 + 1, DATABASES[number % 2], "classic" if point in CLASSIC else "connect")
        for number, point in enumerate(JOBS)
    ),
    ("publish: in the transaction", 1, "sqlite", "connect"),
]
EVERY_TIME = [
    (point, times, database, "connect")
    for point, (_, most) in JOBS.items()
    for times in range(1, most + 1)
    for database in DATABASES
]
EVERY_POINT_CLASSIC = [
    (point, 1, database, "classic")
    for point, (job, _) in JOBS.items()
    if job.world != "empty"
    for database in DATABASES
]
RANDOM_KILLS = {"connect": 180, "classic": 30}
SOAKED = [*EVERY_TIME, *EVERY_POINT_CLASSIC]


def test_the_harness_comes_by_every_point_of_the_code() -> None:
    source = Path(airflow_provider_viewdf.__file__).parent
    reached = {name for path in source.rglob("*.py") for name in re.findall(r'\breach\("([^"]+)"\)', path.read_text())}
    assert reached == set(POINTS) == set(JOBS)
    assert {case[0] for case in SAMPLE} == set(JOBS)
    assert len(SAMPLE) == 30
    assert len(SOAKED) + len(DATABASES) * sum(RANDOM_KILLS.values()) >= 500


def kill_at(point: str, times: int, place: Place, job: Job, scratch: Path) -> None:
    process = start(place, job.operations, Fault(point, times), str(scratch))
    process.join(WAIT_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == -signal.SIGKILL, f"the work ended with {process.exitcode} before the point was reached"


def check_after(world: World, operations: Sequence[Operation], spark: Any) -> None:
    """What must be true after a process died at this work, and after someone else did it again."""
    states = states_along(world.state, operations)
    world.check_versions(states)
    with world.place.open(spark) as warehouse:
        for operation in operations:
            perform(warehouse, operation)
        warehouse.refresh()
        world.check_answers(states[-1])
        assert warehouse.refresh().steps == ()
        clean_up(world, warehouse)
        world.check_answers(states[-1])
        assert world.ask_catalog("SELECT owner FROM leases WHERE table_key LIKE 'writer %'") == []


def clean_up(world: World, warehouse: Any) -> None:
    """What is there is what is referenced. The server may still be at work for who died, so it may take a while."""
    perform(warehouse, GC)
    deadline = time.monotonic() + WAIT_SECONDS
    while world.list_directories() != world.list_referenced() and time.monotonic() < deadline:
        assert world.list_referenced() <= world.list_directories()
        perform(warehouse, GC)
    assert world.list_directories() == world.list_referenced()


def check_migrated(world: World, spark: Any) -> None:
    with world.place.open(spark) as warehouse:
        assert warehouse.definitions() == []
        warehouse.apply("CREATE STREAM T (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60")
    assert world.ask_catalog("SELECT count(*) FROM catalog_version") == [(1,)]


def crash_and_check(
    point: str, times: int, database: str, kind: str, worlds: Worlds, open_spark: Sparks, scratch: Path
) -> None:
    job = JOBS[point][0]
    remote = open_spark.connect_url if kind == "connect" else ""
    spark = open_spark("connect")
    if job.world == "empty":
        world = worlds.make_empty(database)
        kill_at(point, times, world.place, job, scratch)
        check_migrated(world, spark)
    else:
        world = worlds.copy(job.world, database, remote)
        kill_at(point, times, world.place, job, scratch)
        check_after(world, job.operations, spark)
    worlds.remove(world)


@pytest.mark.parametrize(("point", "times", "database", "kind"), SAMPLE)
def test_after_a_kill_everything_is_whole_and_can_go_on(
    point: str, times: int, database: str, kind: str, worlds: Worlds, open_spark: Sparks, tmp_path: Path
) -> None:
    crash_and_check(point, times, database, kind, worlds, open_spark, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize(("point", "times", "database", "kind"), SOAKED)
def test_after_each_of_many_kills_everything_is_whole_and_can_go_on(
    point: str, times: int, database: str, kind: str, worlds: Worlds, open_spark: Sparks, tmp_path: Path
) -> None:
    crash_and_check(point, times, database, kind, worlds, open_spark, tmp_path)


def run_to_the_end(place: Place, operations: Sequence[Operation], scratch: Path) -> float:
    """How many seconds the work takes when nobody kills it."""
    started = time.monotonic()
    process = start(place, operations, None, str(scratch))
    process.join()
    assert process.exitcode == 0
    return time.monotonic() - started


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("kind", RANDOM_KILLS)
def test_after_kills_at_any_time_everything_is_whole_and_can_go_on(
    kind: str, database: str, worlds: Worlds, open_spark: Sparks, tmp_path: Path
) -> None:
    spark = open_spark("connect")
    remote = open_spark.connect_url if kind == "connect" else ""
    whole = worlds.copy("settled", database, remote)
    longest = run_to_the_end(whole.place, EVERYTHING.operations, tmp_path)
    chance = random.Random(20150101)
    kills = 0
    while kills < RANDOM_KILLS[kind]:
        world = worlds.copy("settled", database, remote)
        # A few times in a row, as whoever takes over may die too.
        for _ in range(chance.choice([1, 1, 2, 3])):
            process = start(world.place, EVERYTHING.operations, None, str(tmp_path))
            process.join(chance.uniform(0, longest))
            process.kill()
            process.join()
            kills += process.exitcode == -signal.SIGKILL
        check_after(world, EVERYTHING.operations, spark)
        worlds.remove(world)


def test_the_check_finds_a_part_that_is_lost_torn_or_left_over(worlds: Worlds) -> None:
    world = worlds.copy("settled", "sqlite")
    world.check_versions([world.state])
    world.check_answers(world.state)
    before = world.list_directories()
    assert world.list_referenced() < before  # a version was replaced
    with pytest.raises(AssertionError):
        world.check_versions([State({**world.state.batches, "a": ()}, world.state.existing)])
    chain = next(seen for seen in world.look() if seen.table == "chain" and seen.rows)
    for file in (world.root / chain.directory).glob("*.parquet"):
        file.unlink()
    with pytest.raises(AssertionError):
        world.check_versions([world.state])
    (world.root / "S" / "1" / "v1").mkdir(parents=True)
    assert world.list_directories() - before == {"S/1/v1"}
