"""What is asked of the database: as much as a question touches, not as much as is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog_samples import (
    batch_of,
    content,
    current,
    define_m_and_v,
    existing,
    noon_plus,
    publication,
    publish,
    stale,
    stale_of,
)
from sqlalchemy import event

from airflow_provider_viewdf.catalog import Catalog, open_catalog
from airflow_provider_viewdf.catalog.batches import count_late_rows
from airflow_provider_viewdf.catalog.extents import read_extents
from airflow_provider_viewdf.parts import LATEST, PartRange, PartSet
from airflow_provider_viewdf.versions import LateCount


@contextmanager
def recorded_statements(catalog: Catalog) -> Iterator[list[str]]:
    statements: list[str] = []

    def remember(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    engine = catalog._database.engine
    event.listen(engine, "before_cursor_execute", remember)
    yield statements
    event.remove(engine, "before_cursor_execute", remember)


def test_existing_and_stale_parts_are_read_from_ranges_not_from_parts(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in range(2000)))
    publish(catalog, publication("M", 1, stale=[stale("V", 500, LATEST)]))
    with recorded_statements(catalog) as statements:
        assert existing(catalog, "V") == "0 .. 1999"
        assert stale_of(catalog, "V") == [("V", "500 .. 1999", "late data in M")]
    assert [item for item in statements if "part_versions" in item or "parts" in item.split()] == []


def test_publishing_many_parts_takes_no_more_statements_than_few(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    counts = []
    for start, count in [(0, 10), (100, 3000)]:
        late = [stale("V", start, start + count)]
        with recorded_statements(catalog) as statements:
            publish(catalog, *(publication("M", start + number, stale=late) for number in range(count)))
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_scattered_parts_are_searched_one_by_one(tmp_path: Path) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path}/catalog.db")
    define_m_and_v(catalog)
    publish(catalog, *(publication("M", index) for index in range(100)))
    with recorded_statements(catalog) as statements:
        assert len(current(catalog, "M", PartSet.of_indexes([1, 50, 99]))) == 3
    query = next(item for item in statements if "JOIN parts" in item)
    catalog.close()
    connection = sqlite3.connect(tmp_path / "catalog.db")
    values = ("m", 1, 1, "m", 50, 50, "m", 99, 99)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    connection.close()
    assert sum("part_index>? AND part_index<?" in line for line in plan) == 3
    assert [line for line in plan if line.startswith("SCAN")] == []


def test_extents_around_a_range_are_found_among_many_gaps(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("M", index) for index in range(0, 600, 2)))
    with catalog._database.reading() as connection:
        for low, high, expected in [
            (300, 302, "300, 302"),
            (301, 301, ""),
            (299, 301, "300"),
            (-9, 1, "0"),
            (597, 900, "598"),
            (-9, -3, ""),
            (700, 900, ""),
        ]:
            assert str(read_extents(connection, "m", PartRange(low, high))) == expected
    publish(catalog, publication("M", 301))
    assert "300 .. 302" in existing(catalog, "M")


@contextmanager
def counted_work(catalog: Catalog) -> Iterator[list[int]]:
    """How much SQLite's virtual machine does, in tens of its instructions."""
    done = [0]

    def count() -> int:
        done[0] += 1
        return 0

    def attach(connection: Any, *_: Any) -> None:
        connection.set_progress_handler(count, 10)

    engine = catalog._database.engine
    event.listen(engine, "checkout", attach)
    yield done
    event.remove(engine, "checkout", attach)


def load_parts(catalog: Catalog, count: int) -> None:
    """Parts of M, each with a batch of its own, and as many of V. The last part of V is retired; the first of M is late."""
    for index in range(count):
        batch = batch_of("M", f"b{index}", PartSet.between(index, index), [(index, content(1))], minutes=index)
        publish(catalog, publication("M", index), batch=batch, minutes=index)
    publish(catalog, *(publication("V", index) for index in range(count)), minutes=count)
    catalog.retire_versions(current(catalog, "V", PartSet.between(count - 1, count - 1)))
    late = replace(batch_of("M", "late", PartSet.between(0, 0), minutes=count), late=LateCount(taken=3))
    publish(catalog, batch=late, minutes=count)
    publish(
        catalog, batch=batch_of("M", "none", PartSet.between(1, 1), because="holiday", minutes=count), minutes=count
    )
    with catalog._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")


RARE: dict[str, Any] = {
    "retired parts": lambda reader, end: str(reader.retired_parts("V")) == str(end - 1),
    "declared empty": lambda reader, _: [item.batch_id for item in reader.batches_declared_empty("M")] == ["none"],
    "late rows": lambda reader, _: count_late_rows(reader._connection, "m").taken == 3,
    "newest part": lambda reader, end: reader.newest_part("M", "late") == end - 1,
    "changed since": lambda reader, end: len(reader.changed_since(noon_plus(end - 1), "M")) == 1,
    "changed since, anywhere": lambda reader, end: reader.changed_since(noon_plus(end + 1)) == [],
    "earlier definition": lambda reader, _: not reader.parts_made_otherwise("V", "d2", noon_plus(0)),
    "summary": lambda reader, end: reader.summary("M").rows == end,
    "replaced": lambda reader, end: reader.replaced_versions(noon_plus(end)) == [],
}


def test_what_is_rare_is_found_without_a_look_at_the_rest(tmp_path: Path) -> None:
    work: dict[str, list[int]] = {name: [] for name in RARE}
    for count in (200, 2000):
        catalog = open_catalog(f"sqlite:///{tmp_path}/catalog{count}.db")
        define_m_and_v(catalog)
        load_parts(catalog, count)
        for name, find in RARE.items():
            with counted_work(catalog) as done, catalog.snapshot() as reader:
                assert find(reader, count), name
            work[name].append(done[0])
        catalog.close()
    assert {name: counts for name, counts in work.items() if counts[1] > counts[0] + 10} == {}
