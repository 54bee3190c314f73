"""What changed, what was replaced, what is forgotten, and the figures of a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from catalog_samples import (
    NOON,
    content,
    current,
    define,
    define_m_and_v,
    noon_plus,
    numbers,
    publication,
    publish,
    record,
    stale,
)

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.errors import ConflictError, UsageError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import TableSummary


def publish_a_history(catalog: Catalog) -> None:
    """M[1] at 0 and again at 2, M[2] at 0 and kept at 3, V[1] at 1."""
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1), publication("M", 2))
    publish(catalog, publication("V", 1), minutes=1)
    publish(catalog, publication("M", 1, 2, replaces=1), minutes=2)
    publish(catalog, publication("M", 2, replaces=1), minutes=3)


def test_history_lists_every_version_oldest_first(catalog: Catalog) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        assert numbers(reader.version_history("m", 1)) == [("M", 1, 1), ("M", 1, 2)]
        assert numbers(reader.version_history("M", 2)) == [("M", 2, 1)]
        assert reader.version_history("M", 3) == []


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (0, [("M", 2, 1), ("V", 1, 1), ("M", 1, 2)]),
        (1, [("V", 1, 1), ("M", 1, 2)]),
        (1.5, [("M", 1, 2)]),
        (2, [("M", 1, 2)]),
        (2.5, []),
    ],
)
def test_changes_since_a_time_are_the_current_versions_made_from_then_on(
    catalog: Catalog, minutes: float, expected: list[tuple[str, int, int]]
) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        assert numbers(reader.changed_since(noon_plus(minutes))) == expected
        assert numbers(reader.changed_since(noon_plus(minutes), "m")) == [item for item in expected if item[0] == "M"]


def test_changes_are_asked_for_in_any_time_zone(catalog: Catalog) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        found = reader.changed_since(noon_plus(1.5).astimezone(timezone(timedelta(hours=-7))))
    assert numbers(found) == [("M", 1, 2)]
    assert found[0].created_at == noon_plus(2)


def test_time_without_a_zone_is_refused_when_reading(catalog: Catalog) -> None:
    sentence = (
        "datetime.datetime(2015, 1, 1, 0, 0) has no time zone; give an aware datetime such as "
        "datetime.datetime(2015, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)."
    )
    with catalog.snapshot() as reader:
        for ask in (reader.changed_since, reader.replaced_versions):
            with pytest.raises(UsageError) as caught:
                ask(datetime(2015, 1, 1))
            assert str(caught.value) == sentence


def test_changes_of_microseconds_are_told_apart(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    moment = NOON + timedelta(microseconds=1)
    catalog.publish([publication("M", 1)], generation=1, produced_by="cli", at=moment)
    with catalog.snapshot() as reader:
        assert numbers(reader.changed_since(moment)) == [("M", 1, 1)]
        assert reader.changed_since(moment + timedelta(microseconds=1)) == []


def test_replaced_versions_are_those_replaced_before_a_time(catalog: Catalog) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        assert reader.replaced_versions(noon_plus(2)) == []
        assert numbers(reader.replaced_versions(noon_plus(2.01))) == [("M", 1, 1)]


def test_forgotten_version_leaves_history_and_locations(catalog: Catalog) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        replaced = reader.replaced_versions(noon_plus(9))
        assert reader.known_locations() == {"M/1/content1", "M/1/content2", "M/2/content1", "V/1/content1"}
    catalog.forget_versions(replaced)
    with catalog.snapshot() as reader:
        assert reader.replaced_versions(noon_plus(9)) == []
        assert numbers(reader.version_history("M", 1)) == [("M", 1, 2)]
        assert reader.known_locations() == {"M/1/content2", "M/2/content1", "V/1/content1"}
    catalog.forget_versions(replaced)
    catalog.forget_versions([])


def test_current_version_cannot_be_forgotten_nor_any_with_it(catalog: Catalog) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        history = reader.version_history("M", 1)
    with pytest.raises(ConflictError) as caught:
        catalog.forget_versions(history)
    assert str(caught.value) == "Version 2 of M[1] is current and cannot be forgotten. Nothing was forgotten."
    with catalog.snapshot() as reader:
        assert reader.version_history("M", 1) == history


def test_numbers_of_forgotten_versions_do_not_come_back(catalog: Catalog) -> None:
    publish_a_history(catalog)
    with catalog.snapshot() as reader:
        catalog.forget_versions(reader.replaced_versions(noon_plus(9)))
    publish(catalog, publication("M", 1, 3, replaces=2))
    assert numbers(current(catalog, "M", PartSet.between(1, 1))) == [("M", 1, 3)]


def test_summary_counts_current_versions_only(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    first = replace(publication("V", 1), digest=content(1, rows=10))
    publish(catalog, first, publication("V", 2), publication("V", 5))
    publish(catalog, replace(publication("V", 1, 2, replaces=1), digest=content(2, rows=2**40)), minutes=7)
    publish(catalog, publication("M", 1, stale=[stale("V", 2, 3, "a"), stale("V", 1, 9, "b")]), minutes=8)
    with catalog.snapshot() as reader:
        assert reader.summary("v") == TableSummary(
            table="V",
            parts=PartSet.of_indexes([1, 2, 5]),
            rows=2**40 + 2,
            stale=PartSet.of_indexes([1, 2, 5]),
            last_updated=noon_plus(7),
            rejected_rows=0,
        )


def test_summary_of_a_table_without_parts_is_empty(catalog: Catalog) -> None:
    define(catalog, record("V"))
    with catalog.snapshot() as reader:
        assert reader.summary("V") == TableSummary("V", PartSet(), 0, PartSet(), None, 0)


def test_parts_at_the_far_ends_of_time_are_stored(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", -(2**61)), publication("M", 2**61))
    assert [item.index for item in current(catalog, "M", PartSet.everything())] == [-(2**61), 2**61]


def test_parts_of_an_earlier_definition_are_told_apart(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(
        catalog,
        publication("V", 1, rule="initialize"),
        publication("V", 2, rule="update"),
        publication("V", 3, rule="initialize", definition_digest="d2"),
    )
    with catalog.snapshot() as reader:
        assert [str(reader.parts_made_otherwise("v", digest)) for digest in ("d1", "d2", "d3")] == [
            "3",
            "1 .. 2",
            "1 .. 3",
        ]
        made = [str(reader.parts_made_by("V", "initialize", digest)) for digest in ("d1", "d2", None)]
        assert made == ["1", "3", "1, 3"]
    # Computed again by another definition, with the same rows: the version stays, and is that definition's from now on.
    publish(catalog, publication("V", 1, replaces=1, rule="initialize", definition_digest="d2"))
    with catalog.snapshot() as reader:
        assert str(reader.parts_made_otherwise("V", "d2")) == "2"
