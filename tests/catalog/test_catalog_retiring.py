"""Retired versions: they stay current without their files, until the same content is published again."""

from __future__ import annotations

from dataclasses import replace

from catalog_samples import current, define_m_and_v, existing, numbers, publication, publish, stale, stale_of

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import ContentDigest


def retired(catalog: Catalog, table: str) -> str:
    with catalog.snapshot() as reader:
        return str(reader.retired_parts(table))


def test_a_retired_version_stays_current_and_only_its_files_are_unknown(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("V", 2), publication("V", 3))
    catalog.retire_versions(current(catalog, "v", PartSet.between(1, 2)))
    catalog.retire_versions([])
    assert (existing(catalog, "V"), retired(catalog, "V"), stale_of(catalog)) == ("1 .. 3", "1 .. 2", [])
    assert numbers(current(catalog, "V")) == [("V", 1, 1), ("V", 2, 1), ("V", 3, 1)]
    assert [item.is_retired for item in current(catalog, "V")] == [True, True, False]
    with catalog.snapshot() as reader:
        assert reader.known_locations() - {""} == {"V/3/content1"}


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
