"""Retired versions: they stay current without their files, until the same content is published again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from catalog_samples import current, define_m_and_v, existing, numbers, publication, publish, stale, stale_of

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import ContentDigest, Move


def retired(catalog: Catalog, table: str) -> str:
    with catalog.snapshot() as reader:
        return str(reader.retired_parts(table))


def test_a_retired_version_stays_current_and_its_files_have_been_of_no_use_since_then(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("V", 2), publication("V", 3))
    began = datetime.now(UTC)
    assert catalog.retire_versions(current(catalog, "v", PartSet.between(1, 2))) == 2
    assert catalog.retire_versions([]) == 0
    assert (existing(catalog, "V"), retired(catalog, "V"), stale_of(catalog)) == ("1 .. 3", "1 .. 2", [])
    assert numbers(current(catalog, "V")) == [("V", 1, 1), ("V", 2, 1), ("V", 3, 1)]
    assert [item.is_retired for item in current(catalog, "V")] == [True, True, False]
    with catalog.snapshot() as reader:
        assert reader.retired_locations(began) == []
        assert reader.retired_locations(datetime.now(UTC) + timedelta(days=1)) == ["V/1/content1", "V/2/content1"]
        assert reader.locations_in_use(began) == {"V/1/content1", "V/2/content1", "V/3/content1"}


def test_a_version_that_was_replaced_or_moved_meanwhile_keeps_its_files(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("V", 2))
    before = current(catalog, "V")
    publish(catalog, publication("V", 1, 2, replaces=1))
    catalog.relocate([Move(before[1], "V/rolled/1_2-a#2")], generation=1)
    assert catalog.retire_versions(before) == 0
    assert [item.location for item in current(catalog, "V")] == ["V/1/content2", "V/rolled/1_2-a#2"]
    with catalog.snapshot() as reader:
        assert [item.location for item in reader.version_history("V", 1)] == ["V/1/content1", "V/1/content2"]


def test_the_same_content_again_brings_a_retired_version_back_and_makes_nothing_stale(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("V", 2))
    catalog.retire_versions(current(catalog, "V"))
    published = publish(catalog, publication("V", 1, replaces=1, stale=[stale("V", 2, 2)]))
    assert [(item.is_changed, item.version.location) for item in published] == [(False, "V/1/content1")]
    assert (retired(catalog, "V"), stale_of(catalog)) == ("2", [])
    assert [item.location for item in current(catalog, "V")] == ["V/1/content1", ""]


def test_other_content_replaces_a_retired_version(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("V", 2))
    catalog.retire_versions(current(catalog, "V"))
    publish(catalog, publication("V", 1, 5, replaces=1, stale=[stale("V", 2, 2)]))
    assert (retired(catalog, "V"), stale_of(catalog)) == ("2", [("V", "2", "late data in M")])
    assert numbers(current(catalog, "V")) == [("V", 1, 2), ("V", 2, 1)]


def test_a_part_without_rows_is_not_retired(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, replace(publication("V", 1), location="", digest=ContentDigest(0, 0, 0)))
    assert retired(catalog, "V") == ""
