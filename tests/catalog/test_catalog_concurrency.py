"""Many threads and processes at one catalog, and a crash in the middle."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from catalog_samples import (
    batch_of,
    content,
    current,
    define_m_and_v,
    existing,
    numbers,
    publication,
    publish,
    stale,
    stale_of,
)
from sqlalchemy import event

from airflow_provider_viewdf.catalog import Catalog, open_catalog
from airflow_provider_viewdf.errors import ConflictError
from airflow_provider_viewdf.parts import PartSet

PROCESSES = multiprocessing.get_context("fork")
CONFLICT = (
    "M[5] was expected to have no version, but has version 1: someone else published it meanwhile. "
    "Nothing was written; try again."
)


def try_to_publish(catalog: Catalog, number: int) -> str:
    try:
        publish(catalog, publication("M", 5, number))
    except ConflictError as error:
        return str(error)
    return "published"


def run_in_processes(target: Any, *arguments: tuple[Any, ...]) -> list[int | None]:
    """Run a function in a process per argument tuple: their exit codes."""
    processes = [PROCESSES.Process(target=target, args=given) for given in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def test_of_threads_that_publish_one_part_exactly_one_wins(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    together = Barrier(8)

    def attempt(number: int) -> str:
        together.wait(60)
        return try_to_publish(catalog, number)

    with ThreadPoolExecutor(8) as threads:
        outcomes = sorted(threads.map(attempt, range(8)))
    assert outcomes == [CONFLICT] * 7 + ["published"]
    assert numbers(current(catalog, "M")) == [("M", 5, 1)]


def attempt_in_process(url: str, together: Any, number: int, outcomes: Any) -> None:
    catalog = open_catalog(url)
    together.wait(60)
    outcomes.put(try_to_publish(catalog, number))
    catalog.close()


def test_of_processes_that_publish_one_part_exactly_one_wins(catalog: Catalog, catalog_url: str) -> None:
    define_m_and_v(catalog)
    together, outcomes = PROCESSES.Barrier(4), PROCESSES.Queue()
    codes = run_in_processes(attempt_in_process, *((catalog_url, together, number, outcomes) for number in range(4)))
    assert codes == [0, 0, 0, 0]
    assert sorted(outcomes.get(timeout=60) for _ in range(4)) == [CONFLICT] * 3 + ["published"]
    assert numbers(current(catalog, "M")) == [("M", 5, 1)]


def count_up(catalog: Catalog, table: str, times: int) -> None:
    """Replace part 1 of a table with the next content until this has succeeded so often."""
    done = 0
    while done < times:
        present = current(catalog, table, PartSet.between(1, 1))[0]
        try:
            publish(catalog, publication(table, 1, present.digest.high + 1, replaces=present.version))
        except ConflictError:
            continue
        done += 1


def test_no_update_is_lost_among_threads(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1, 0))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: count_up(catalog, "M", 5), range(4)))
    assert [(item.version, item.digest) for item in current(catalog, "M")] == [(21, content(20))]


def test_writers_of_different_parts_all_succeed(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda index: publish(catalog, publication("M", index)), range(40)))
    assert existing(catalog, "M") == "0 .. 39"


def test_many_threads_publish_while_each_holds_a_snapshot(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    together = Barrier(20)

    def attempt(index: int) -> None:
        with catalog.snapshot() as reader:
            together.wait(60)
            publish(catalog, publication("M", index))
            assert not reader.existing_parts("M")

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(attempt, range(20)))
    assert existing(catalog, "M") == "0 .. 19"


def test_forked_process_uses_connections_of_its_own(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    codes = run_in_processes(count_up_in_fork, (catalog, "M"), (catalog, "V"))
    assert codes == [0, 0]
    assert [item.version for table in "MV" for item in current(catalog, table)] == [6, 6]


def count_up_in_fork(catalog: Catalog, table: str) -> None:
    publish(catalog, publication(table, 1, 0))
    count_up(catalog, table, 5)


def test_catalog_that_many_processes_open_at_once_is_made_once(catalog_url: str) -> None:
    together = PROCESSES.Barrier(4)
    assert run_in_processes(open_at_once, *([(catalog_url, together)] * 4)) == [0, 0, 0, 0]


def open_at_once(url: str, together: Any) -> None:
    together.wait(60)
    open_catalog(url).close()


def test_reader_sees_one_state_whatever_others_write(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1), publication("V", 1), batch=batch_of("M", "a", PartSet.between(1, 1)))
    with catalog.snapshot() as reader:
        assert reader.generation == 1
        publish(
            catalog,
            publication("M", 1, 2, replaces=1, stale=[stale("V", 1, 1)]),
            publication("M", 2),
            batch=batch_of("M", "b", PartSet.between(1, 2)),
        )
        catalog.set_start("V", 1, generation=1)
        assert numbers(reader.current_versions("M")) == [("M", 1, 1)]
        assert str(reader.existing_parts("M")) == "1"
        assert reader.stale_ranges() == []
        assert [item.batch_id for item in reader.batches("M")] == ["a"]
        assert [item.start_index for item in reader.definitions()] == [None, None]
    with catalog.snapshot() as reader:
        assert reader.generation == 2
        assert numbers(reader.current_versions("M")) == [("M", 1, 2), ("M", 2, 1)]
        assert str(reader.existing_parts("M")) == "1 .. 2"
        assert len(reader.stale_ranges()) == 1
        assert [item.batch_id for item in reader.batches("M")] == ["a", "b"]


def publish_and_die(url: str) -> None:
    catalog = open_catalog(url)

    @event.listens_for(catalog._database.engine, "commit")
    def die(_connection: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    publish(
        catalog,
        publication("M", 1, 2, replaces=1, stale=[stale("V", 1, 1)]),
        publication("M", 2),
        batch=batch_of("M", "b", PartSet.between(1, 2)),
    )


def test_crash_before_the_commit_leaves_nothing(catalog: Catalog, catalog_url: str) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1), publication("V", 1))
    assert run_in_processes(publish_and_die, (catalog_url,)) == [-signal.SIGKILL]
    assert numbers(current(catalog, "M")) == [("M", 1, 1)]
    assert existing(catalog, "M") == "1"
    assert stale_of(catalog) == []
    with catalog.snapshot() as reader:
        assert reader.batches("M") == []
        assert reader.known_locations() == {"M/1/content1", "V/1/content1"}
    publish(catalog, publication("M", 1, 2, replaces=1))
    assert numbers(current(catalog, "M")) == [("M", 1, 2)]


def test_sqlite_file_survives_the_crash_of_a_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    catalog = open_catalog(url)
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1), publication("V", 1))
    catalog.close()
    assert run_in_processes(publish_and_die, (url,)) == [-signal.SIGKILL]
    again = open_catalog(url)
    assert numbers(current(again, "M")) == [("M", 1, 1)]
    again.close()
