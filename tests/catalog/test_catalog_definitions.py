"""Definitions: saving them, the generation, and what a change does to parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalog_samples import (
    NOON,
    batch_of,
    content,
    current,
    define,
    define_m_and_v,
    existing,
    noon_plus,
    numbers,
    publication,
    publish,
    record,
    stale,
    stale_of,
)

from airflow_provider_viewdf.catalog import Catalog, DefinitionChange
from airflow_provider_viewdf.errors import ConflictError, UnknownTableError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import DefinitionRecord

STALE_GENERATION = (
    "Definitions changed meanwhile: the catalog is at generation 1, this change is based on generation 0. "
    "Nothing was written; try again."
)


def definitions(catalog: Catalog) -> list[DefinitionRecord]:
    with catalog.snapshot() as reader:
        return reader.definitions()


def generation(catalog: Catalog) -> int:
    with catalog.snapshot() as reader:
        return reader.generation


def change(catalog: Catalog, *changes: DefinitionChange, based_on: int = 1) -> int:
    return catalog.save_definitions(changes, generation=based_on, produced_by="cli")


def test_new_catalog_is_empty(catalog: Catalog) -> None:
    assert generation(catalog) == 0
    assert definitions(catalog) == []
    assert existing(catalog, "M") == ""
    with catalog.snapshot() as reader:
        assert reader.changed_since(NOON) == []
        assert reader.batches("M") == []
        assert reader.rejected_rows("M") == []


def test_definition_comes_back_as_it_was_saved(catalog: Catalog) -> None:
    saved = replace(record("Helper", start_index=-5), helper_of="View2", text="CREATE VIEW Helper -- ü\n")
    assert catalog.save_definitions([DefinitionChange(saved, "keep")], generation=0, produced_by="dag/run/task") == 1
    assert definitions(catalog) == [replace(saved, produced_by="dag/run/task")]
    assert generation(catalog) == 1


def test_changed_definition_keeps_its_place_and_takes_the_new_spelling(catalog: Catalog) -> None:
    define(catalog, record("b"), record("a"), record("c"))
    define(catalog, record("B", digest="d2"), record("d"), generation=1)
    assert [(item.name, item.digest) for item in definitions(catalog)] == [
        ("B", "d2"),
        ("a", "d1"),
        ("c", "d1"),
        ("d", "d1"),
    ]


def test_saving_on_an_older_generation_is_a_conflict(catalog: Catalog) -> None:
    define(catalog, record("M"))
    with pytest.raises(ConflictError) as caught:
        define(catalog, record("V"), generation=0)
    assert str(caught.value) == STALE_GENERATION
    assert [item.name for item in definitions(catalog)] == ["M"]


def test_saving_nothing_keeps_the_generation(catalog: Catalog) -> None:
    assert define(catalog) == 0
    define(catalog, record("M"))
    with pytest.raises(ConflictError) as caught:
        define(catalog)
    assert str(caught.value) == STALE_GENERATION


def test_kept_parts_stay_as_they_are(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1))
    change(catalog, DefinitionChange(record("V", digest="d2"), "keep"))
    assert numbers(current(catalog, "V")) == [("V", 1, 1)]
    assert stale_of(catalog) == []


def test_stale_effect_makes_every_existing_part_stale(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in (1, 2, 7)))
    change(catalog, DefinitionChange(record("V", digest="d2"), "stale"))
    assert stale_of(catalog) == [("V", "1 .. 2", "definition changed"), ("V", "7", "definition changed")]


def test_stale_effect_on_a_view_without_parts_records_nothing(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    change(catalog, DefinitionChange(record("V", digest="d2"), "stale", (stale("Nowhere", 1, 2),)))
    assert stale_of(catalog) == []


def test_change_makes_parts_of_other_views_stale_where_they_exist(catalog: Catalog) -> None:
    define(catalog, record("V"), record("W"))
    publish(catalog, *(publication("W", index) for index in (1, 2, 4)))
    change(catalog, DefinitionChange(record("V", digest="d2"), "keep", (stale("w", 2, 9, "V was defined anew"),)))
    assert stale_of(catalog) == [("W", "2", "V was defined anew"), ("W", "4", "V was defined anew")]


def test_dropped_parts_no_longer_exist_but_wait_for_gc(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    batch = batch_of("M", "b1", PartSet.between(1, 2), [(1, content(1))])
    publish(catalog, publication("M", 1), publication("M", 2), batch=batch)
    publish(catalog, publication("V", 1), publication("M", 2, 2, replaces=1, stale=[stale("V", 1, 1)]), minutes=1)
    change(catalog, DefinitionChange(record("M", "stream", digest="d2"), "drop"))
    assert existing(catalog, "M") == ""
    assert current(catalog, "M") == []
    with catalog.snapshot() as reader:
        assert reader.batches("M") == []
        assert reader.batches_of_parts("M", PartSet.everything()) == {}
        assert reader.changed_since(NOON, "M") == []
        assert reader.summary("M").rows == 0
        assert reader.known_locations() == {"M/1/content1", "M/2/content1", "M/2/content2", "V/1/content1"}
        assert numbers(reader.replaced_versions(noon_plus(60 * 24 * 365 * 100))) == [
            ("M", 1, 1),
            ("M", 2, 1),
            ("M", 2, 2),
        ]
    assert stale_of(catalog) == [("V", "1", "late data in M")]


def test_dropping_a_view_drops_its_stale_ranges(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("M", 1, stale=[stale("V", 1, 1)]))
    change(catalog, DefinitionChange(record("V", digest="d2"), "drop", (stale("V", 1, 1, "never"),)))
    assert stale_of(catalog) == []


def test_part_that_is_published_after_a_drop_gets_a_number_it_never_had(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1))
    dropped = change(catalog, DefinitionChange(record("V", digest="d2"), "drop"))
    with catalog.snapshot() as reader:
        catalog.forget_versions(reader.replaced_versions(noon_plus(60 * 24 * 365 * 100)))
    with pytest.raises(ConflictError) as caught:
        publish(catalog, publication("V", 1, replaces=1), generation=dropped)
    assert str(caught.value) == (
        "V[1] was expected to have version 1, but has none: someone else published it meanwhile. "
        "Nothing was written; try again."
    )
    published = publish(catalog, publication("V", 1), generation=dropped)
    assert [(item.version.version, item.is_changed) for item in published] == [(2, True)]


def test_start_of_a_view_can_be_set_and_taken_back(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    assert catalog.set_start("v", 17, generation=1) == 2
    assert [(item.name, item.start_index) for item in definitions(catalog)] == [("M", None), ("V", 17)]
    assert catalog.set_start("V", None, generation=2) == 3
    assert [item.start_index for item in definitions(catalog)] == [None, None]


def test_start_of_an_unknown_view_is_refused(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(UnknownTableError) as caught:
        catalog.set_start("Nowhere", 17, generation=1)
    assert str(caught.value) == "Nothing is defined with the name Nowhere."
    assert generation(catalog) == 1


def test_start_set_on_an_older_generation_is_a_conflict(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(ConflictError) as caught:
        catalog.set_start("V", 17, generation=0)
    assert str(caught.value) == STALE_GENERATION
