"""Processes that are slow: overtaken by a later try, taken for dead, or still writing while gc runs."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from spark import Sparks
from sqlalchemy import create_engine, event, text
from worker import AT_ONCE, Fault, Operation, Place, go_on, perform, start, wait_until_stopped
from world import CORRECT, FIRST, LATE, REFRESH, World, Worlds, states_along

from airflow_provider_viewdf.errors import CatalogError
from airflow_provider_viewdf.versions import Producer

Databases = pytest.mark.parametrize("database", ["sqlite", "postgresql"])


def stop_at(point: str, times: int = 1) -> Fault:
    return Fault(point, times, signal.SIGSTOP)


@pytest.fixture
def spark(open_spark: Sparks) -> Any:
    return open_spark("connect")


def make_world(worlds: Worlds, open_spark: Sparks, database: str = "sqlite") -> World:
    return worlds.copy("settled", database, open_spark.connect_url)


def let_time_pass(place: Place) -> None:
    """Let every lease be one that was not renewed for a long time."""
    url = place.catalog_url or f"sqlite:///{place.directory}/catalog.sqlite"
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE leases SET expires_at = '2015-01-01 00:00:00.000000'"))
    engine.dispose()


def load(batch: str, *rows: tuple[int, int, str, int]) -> Operation:
    return ("load", batch, rows, 0, 1)


def rows_of(world: World, batch: str) -> list[tuple[int, int]]:
    return sorted(
        (part, x) for part, rows in world.read_tables()["s"].items() for k, x in rows.elements() if k == batch
    )


@Databases
def test_of_two_tries_of_a_load_the_later_one_stays_though_the_older_one_finishes_last(
    database: str, worlds: Worlds, open_spark: Sparks, spark: Any, tmp_path: Path
) -> None:
    world = make_world(worlds, open_spark, database)
    first, second = (Producer("dag", "run", "load_S", number) for number in (1, 2))
    older = start(world.place, [load("t", (0, 1, "t", 1))], stop_at("load: moved"), str(tmp_path), first)
    wait_until_stopped(older)
    with world.place.open(spark, second) as warehouse:
        perform(warehouse, load("t", (1, 1, "t", 2)))
        assert go_on(older) == 1
        assert (tmp_path / "error").read_text() == (
            "The batch t of S was loaded by dag/run/load_S try 2, which is later than this try. Nothing was loaded."
        )
        assert rows_of(world, "t") == [(1, 2)]
        warehouse.gc(AT_ONCE)
        assert world.list_directories() == world.list_referenced()


@Databases
def test_of_two_loads_of_a_batch_at_once_all_rows_are_of_the_one_that_finishes_last(
    database: str, worlds: Worlds, open_spark: Sparks, spark: Any, tmp_path: Path
) -> None:
    # They touch different parts, so that no version tells the one of the other.
    world = make_world(worlds, open_spark, database)
    slow = start(world.place, [load("t", (0, 1, "t", 1))], stop_at("load: moved"), str(tmp_path))
    wait_until_stopped(slow)
    with world.place.open(spark) as warehouse:
        perform(warehouse, load("t", (1, 1, "t", 2)))
        assert rows_of(world, "t") == [(1, 2)]
        assert go_on(slow) == 0
        assert rows_of(world, "t") == [(0, 1)]
        warehouse.refresh()
        assert warehouse.verify().is_ok


def test_a_load_waits_for_one_that_has_come_too_late_and_tries_again(
    worlds: Worlds, open_spark: Sparks, spark: Any
) -> None:
    world = make_world(worlds, open_spark)
    with world.place.open(spark) as warehouse, ThreadPoolExecutor(1) as threads:
        catalog = warehouse._bench.catalog
        token = catalog.acquire_lease("load S", 0, "elsewhere:1:01234567", 100)
        assert token is not None
        waiting = threads.submit(perform, warehouse, CORRECT)
        assert wait([waiting], 5).done == set()
        world.check_answers(world.state)
        catalog.release_lease(token)
        waiting.result(120)
        warehouse.refresh()
        world.check_answers(states_along(world.state, [CORRECT])[-1])
        assert catalog.lease_holder("load S", 0) is None


def test_a_load_that_came_too_late_queues_up(worlds: Worlds, open_spark: Sparks, spark: Any, tmp_path: Path) -> None:
    world = make_world(worlds, open_spark)
    slow = start(world.place, [CORRECT], stop_at("load: moved"), str(tmp_path))
    wait_until_stopped(slow)
    with world.place.open(spark) as warehouse:
        perform(warehouse, LATE)
        perform(warehouse, ("load", "b", ((0, 7, "b", 7),), 1, 4))
        token = warehouse._bench.catalog.acquire_lease("load S", 0, "elsewhere:1:01234567", 100)
        assert token is not None
        assert slow.pid is not None
        os.kill(slow.pid, signal.SIGCONT)
        slow.join(5)
        assert slow.is_alive()
        assert rows_of(world, "a") == [(0, 1), (1, 2), (2, 3), (4, 4)]
        warehouse._bench.catalog.release_lease(token)
        slow.join(120)
        assert slow.exitcode == 0
        assert rows_of(world, "a") == [(0, 101), (1, 102), (3, 103), (5, 104)]
        assert rows_of(world, "b") == [(0, 7)]


@pytest.mark.parametrize("point", ["refresh: computed", "refresh many: moved"])
def test_an_older_refresh_that_finishes_last_changes_nothing(
    point: str, worlds: Worlds, open_spark: Sparks, spark: Any, tmp_path: Path
) -> None:
    world = make_world(worlds, open_spark)
    older = start(world.place, [CORRECT, REFRESH], stop_at(point), str(tmp_path))
    wait_until_stopped(older)
    let_time_pass(world.place)
    state = states_along(world.state, [CORRECT, LATE])[-1]
    with world.place.open(spark) as warehouse:
        perform(warehouse, LATE)
        warehouse.refresh()
        world.check_answers(state)
        before = world.look()
        assert go_on(older) == 0
        assert world.look() == before
        assert warehouse.refresh().steps == ()
        warehouse.gc(AT_ONCE)
        assert world.list_directories() == world.list_referenced()


@pytest.mark.parametrize(
    ("point", "operations"),
    [
        ("load: staged", [CORRECT]),
        ("load: moved", [CORRECT]),
        ("refresh many: computed", [CORRECT, REFRESH]),
        ("refresh: computed", [CORRECT, REFRESH]),
        ("roll up: written", [("roll up",)]),
    ],
)
def test_gc_leaves_alone_what_is_being_written_however_short_its_grace(
    point: str, operations: list[Operation], worlds: Worlds, open_spark: Sparks, spark: Any, tmp_path: Path
) -> None:
    world = make_world(worlds, open_spark)
    slow = start(world.place, operations, stop_at(point), str(tmp_path))
    wait_until_stopped(slow)
    with world.place.open(spark) as warehouse:
        assert warehouse.gc(AT_ONCE).orphans == 0
        assert go_on(slow) == 0
        warehouse.refresh()
        world.check_answers(states_along(world.state, operations)[-1])


@Databases
def test_a_writer_that_gc_took_for_dead_publishes_nothing(
    database: str, worlds: Worlds, open_spark: Sparks, spark: Any, tmp_path: Path
) -> None:
    world = make_world(worlds, open_spark, database)
    silent = start(world.place, [CORRECT], stop_at("load: moved", 4), str(tmp_path))
    wait_until_stopped(silent)
    let_time_pass(world.place)
    with world.place.open(spark) as warehouse:
        assert warehouse.gc(AT_ONCE).orphans == 4 + 1  # the parts, and the rows on their way
        assert go_on(silent) == 1
        assert (tmp_path / "error").read_text() == (
            "This process did not renew its lease for so long that gc may have removed the files it wrote. "
            "Nothing was published; do it again."
        )
        world.check_answers(world.state)
        perform(warehouse, CORRECT)
        warehouse.refresh()
        world.check_answers(states_along(world.state, [CORRECT])[-1])


def make_files_old(world: World) -> None:
    for path in world.root.rglob("*"):
        os.utime(path, (1_420_000_000, 1_420_000_000))


def test_files_of_newly_retired_helper_parts_stay_for_the_whole_grace_period(
    worlds: Worlds, open_spark: Sparks, spark: Any
) -> None:
    world = make_world(worlds, open_spark)
    helper = next(seen for seen in world.look() if seen.table.startswith("s_per") and seen.part == FIRST)
    make_files_old(world)
    with world.place.open(spark) as warehouse:
        older = warehouse.query(f"SELECT count(*) AS ct FROM {helper.table}[{FIRST}]")
        report = warehouse.gc(timedelta(hours=1))
        assert report.retired > 0
        assert report.paths == ()
        assert older.collect()[0].ct == 1
        assert helper.directory in warehouse.gc(AT_ONCE).paths
        assert world.list_directories() == world.list_referenced()


def test_a_replaced_version_stays_for_the_whole_grace_period_however_old_its_files(
    worlds: Worlds, open_spark: Sparks, spark: Any
) -> None:
    world = make_world(worlds, open_spark)
    with world.place.open(spark) as warehouse:
        older = warehouse.query("SELECT sum(x) AS total FROM S")
        perform(warehouse, CORRECT)
        make_files_old(world)
        assert warehouse.gc(timedelta(hours=1)).versions == 0
        assert older.collect()[0].total == 40


@Databases
@pytest.mark.parametrize("operation", [CORRECT, REFRESH, ("one by one",), ("roll up",)])
def test_files_stay_when_the_answer_to_a_commit_is_lost(
    operation: Operation, database: str, worlds: Worlds, open_spark: Sparks, spark: Any
) -> None:
    """The database has committed, but the connection broke before it could say so."""
    world = make_world(worlds, open_spark, database)
    with world.place.open(spark) as warehouse:
        if operation != CORRECT:
            perform(warehouse, CORRECT)
        before = world.look()
        known = ", ".join(f"'{seen.location}'" for seen in before)
        lost: list[int] = []

        def lose_answer(connection: Any) -> None:
            driver = connection.connection.driver_connection
            query = f"SELECT count(*) FROM part_versions WHERE replaced_at IS NULL AND location NOT IN ({known})"
            if not lost and driver.execute(query).fetchone()[0]:
                lost.append(1)
                driver.execute("COMMIT")
                driver.close()

        engine = warehouse._bench.catalog._database.engine
        event.listen(engine, "commit", lose_answer)
        # A load or refresh tries again by itself when a server went away, and finds what it did.
        goes_on = database == "postgresql" and operation != ("roll up",)
        with nullcontext() if goes_on else pytest.raises(CatalogError):
            perform(warehouse, operation)
        event.remove(engine, "commit", lose_answer)
        assert lost
        assert world.look() != before
        world.check_versions(states_along(world.state, [CORRECT]))
        perform(warehouse, operation)
        warehouse.refresh()
        world.check_answers(states_along(world.state, [CORRECT])[-1])
