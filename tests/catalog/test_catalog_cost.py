"""What is asked of the database: as much as a question touches, not as much as is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from catalog_samples import current, define_m_and_v, existing, publication, publish, stale, stale_of
from sqlalchemy import event

from airflow_provider_viewdf.catalog import Catalog, open_catalog
from airflow_provider_viewdf.catalog.extents import read_extents
from airflow_provider_viewdf.parts import LATEST, PartRange, PartSet


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
