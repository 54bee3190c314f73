"""Publishing: compare and swap, early cutoff, extents, and what becomes stale."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from catalog_samples import (
    NOON,
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
from airflow_provider_viewdf.catalog.staleness import FULL
from airflow_provider_viewdf.errors import ConflictError, UnknownTableError, UsageError
from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartSet
from airflow_provider_viewdf.versions import InputRange, PartVersion, Published


def inputs_digest(catalog: Catalog, *ranges: InputRange) -> str:
    with catalog.snapshot() as reader:
        return reader.read_inputs(ranges)[1]


def test_published_part_is_current_with_everything_it_was_made_from(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 4))
    digest = inputs_digest(catalog, InputRange("M", 0, 4))
    offered = publication("V", 4, 7, inputs=[InputRange("M", 0, 4)], inputs_digest=digest, rule="update")
    published = publish(catalog, offered, minutes=1)
    expected = PartVersion(
        table="V",
        index=4,
        version=1,
        location="V/4/content7",
        digest=content(7),
        definition_digest="d1",
        inputs=(InputRange("M", 0, 4),),
        inputs_digest=digest,
        rule="update",
        created_at=noon_plus(1),
        produced_by="cli",
    )
    assert published == [Published(expected, is_changed=True, stale=())]
    assert current(catalog, "V") == [expected]
    assert expected.rows == 1


def test_tables_are_named_in_any_case_and_answered_as_written(catalog: Catalog) -> None:
    define(catalog, record("Helper"))
    publish(catalog, publication("HELPER", 1))
    assert numbers(current(catalog, "helper")) == [("Helper", 1, 1)]
    with catalog.snapshot() as reader:
        assert (
            reader.read_inputs([InputRange("hELPER", 0, 9)])[1] == reader.read_inputs([InputRange("Helper", 1, 1)])[1]
        )


def test_publishing_into_an_unknown_table_is_refused(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(UnknownTableError) as caught:
        publish(catalog, publication("M", 1), publication("Nowhere", 1))
    assert str(caught.value) == "Nothing is defined with the name Nowhere."
    assert existing(catalog, "M") == ""


def test_part_that_another_published_first_is_a_conflict(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 5))
    with pytest.raises(ConflictError) as caught:
        publish(catalog, publication("M", 4), publication("m", 5, 2))
    assert str(caught.value) == (
        "M[5] was expected to have no version, but has version 1: someone else published it meanwhile. "
        "Nothing was written; try again."
    )
    assert existing(catalog, "M") == "5"


def test_replacing_a_version_that_is_not_current_is_a_conflict(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 5))
    publish(catalog, publication("M", 5, 2, replaces=1))
    with pytest.raises(ConflictError) as caught:
        publish(catalog, publication("M", 5, 3, replaces=1))
    assert str(caught.value) == (
        "M[5] was expected to have version 1, but has version 2: someone else published it meanwhile. "
        "Nothing was written; try again."
    )


def test_replacing_a_part_that_does_not_exist_is_a_conflict(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(ConflictError) as caught:
        publish(catalog, publication("M", 5, replaces=1))
    assert str(caught.value) == (
        "M[5] was expected to have version 1, but has none: someone else published it meanwhile. "
        "Nothing was written; try again."
    )


def test_part_made_from_inputs_that_changed_is_a_conflict(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 4), publication("M", 5))
    read = [InputRange("M", 4, 5), InputRange("V", 4, 4)]
    digest = inputs_digest(catalog, *read)
    publish(catalog, publication("M", 4, 2, replaces=1))
    with pytest.raises(ConflictError) as caught:
        publish(catalog, publication("V", 5, inputs=read, inputs_digest=digest))
    assert str(caught.value) == (
        "V[5] was made from M[4 .. 5], V[4], of which something changed meanwhile. Nothing was written; try again."
    )
    assert existing(catalog, "V") == ""


@pytest.mark.parametrize("arrived", [3, 6])
def test_input_part_that_did_not_exist_when_it_was_read_is_a_conflict(catalog: Catalog, arrived: int) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 4))
    read = [InputRange("M", 3, 6)]
    digest = inputs_digest(catalog, *read)
    publish(catalog, publication("M", arrived))
    with pytest.raises(ConflictError):
        publish(catalog, publication("V", 5, inputs=read, inputs_digest=digest))


def test_definitions_that_changed_meanwhile_are_a_conflict(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    define(catalog, record("W"), generation=1)
    with pytest.raises(ConflictError) as caught:
        publish(catalog, publication("M", 5), generation=1)
    assert str(caught.value) == (
        "Definitions changed meanwhile: the catalog is at generation 2, this change is based on generation 1. "
        "Nothing was written; try again."
    )
    assert existing(catalog, "M") == ""


def test_publications_of_one_call_see_those_before_them(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1))
    read = [InputRange("M", 1, 2)]
    before = inputs_digest(catalog, *read)
    publish(catalog, publication("M", 2))
    after = inputs_digest(catalog, *read)
    assert before != after

    define(catalog, record("N", "stream"), record("X"), generation=1)
    publish(catalog, publication("N", 1), generation=2)
    read = [InputRange("N", 1, 2)]
    renamed = inputs_digest(catalog, InputRange("N", 1, 1))
    with pytest.raises(ConflictError):
        publish(catalog, publication("N", 2), publication("X", 2, inputs=read, inputs_digest=renamed), generation=2)
    publish(catalog, publication("X", 2, inputs=read, inputs_digest=renamed), publication("N", 2), generation=2)
    assert existing(catalog, "X") == "2"


def test_same_content_keeps_the_version_and_records_what_it_is_made_from_now(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 4), publication("V", 4, rule="initialize", stale=[stale("V", 4, 9)]))
    first = current(catalog, "V")[0]
    read = (InputRange("M", 4, 4),)
    digest = inputs_digest(catalog, *read)
    offered = publication("V", 4, replaces=1, inputs=read, inputs_digest=digest, rule="update", definition_digest="d2")
    offered = replace(offered, location="V/4/elsewhere", stale=(stale("V", 0, 9),))
    published = publish(catalog, offered, minutes=5)
    kept = replace(first, inputs=read, inputs_digest=digest, rule="update", definition_digest="d2")
    assert published == [Published(kept, is_changed=False, stale=())]
    assert current(catalog, "V") == [kept]
    assert kept.created_at == NOON
    with catalog.snapshot() as reader:
        assert reader.version_history("V", 4) == [kept]
        assert reader.known_locations() == {"M/4/content1", "V/4/content1"}


def test_kept_part_is_no_longer_stale(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in range(3, 7)))
    publish(catalog, publication("M", 3, stale=[stale("V", 3, 6)]))
    publish(catalog, publication("V", 5, replaces=1))
    assert stale_of(catalog) == [("V", "3 .. 4", "late data in M"), ("V", "6", "late data in M")]


def test_version_published_twice_in_one_call_ends_with_the_second(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    published = publish(catalog, publication("M", 1), publication("M", 1, 2, replaces=1))
    assert [item.version.version for item in published] == [1, 2]
    assert numbers(current(catalog, "M")) == [("M", 1, 2)]
    with catalog.snapshot() as reader:
        assert numbers(reader.replaced_versions(noon_plus(1))) == [("M", 1, 1)]


def test_version_kept_in_the_call_that_made_it_has_the_later_inputs(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1, rule="initialize"), publication("V", 1, replaces=1, rule="update"))
    assert [(item.version, item.rule) for item in current(catalog, "V")] == [(1, "update")]


def test_content_that_comes_back_is_a_new_version(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1, 1))
    publish(catalog, publication("M", 1, 2, replaces=1))
    publish(catalog, publication("M", 1, 1, replaces=2))
    assert numbers(current(catalog, "M")) == [("M", 1, 3)]


def test_parts_merge_into_extents_from_both_sides(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    for index, expected in [(5, "5"), (7, "5, 7"), (9, "5, 7, 9"), (6, "5 .. 7, 9"), (8, "5 .. 9"), (-1, "-1, 5 .. 9")]:
        publish(catalog, publication("M", index))
        assert existing(catalog, "M") == expected
    assert existing(catalog, "V") == ""


def test_part_without_rows_exists(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    empty = replace(publication("M", 3), digest=content(0, rows=0), location="")
    assert publish(catalog, empty)[0].is_changed
    assert existing(catalog, "M") == "3"
    with catalog.snapshot() as reader:
        assert reader.known_locations() == set()


def test_dependents_become_stale_only_where_they_exist(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in (1, 2, 4, 5, 9)))
    published = publish(catalog, publication("M", 2, stale=[stale("v", 2, 8, "late data in M[2]")]))
    assert published[0].stale == (stale("V", 2, 2, "late data in M[2]"), stale("V", 4, 5, "late data in M[2]"))
    assert stale_of(catalog, "v") == [("V", "2", "late data in M[2]"), ("V", "4 .. 5", "late data in M[2]")]
    assert stale_of(catalog, "M") == []


def test_ranges_without_end_are_cut_to_what_exists(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", -3), publication("V", 8))
    publish(catalog, publication("M", 2, stale=[stale("V", EARLIEST, LATEST)]))
    assert stale_of(catalog) == [("V", "-3", "late data in M"), ("V", "8", "late data in M")]


def test_parts_published_earlier_in_the_same_call_become_stale(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("M", 1, stale=[stale("V", 1, 9)]), publication("V", 3))
    assert stale_of(catalog) == [("V", "1", "late data in M")]


def test_part_published_after_its_input_in_the_same_call_is_not_stale(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1))
    publish(catalog, publication("M", 1, stale=[stale("V", 1, 1)]), publication("V", 1, 2, replaces=1))
    assert stale_of(catalog) == []


def test_part_does_not_make_itself_stale(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("V", 1), publication("V", 2))
    publish(catalog, publication("V", 1, 2, replaces=1, stale=[stale("V", 1, 2, "V[1] changed")]))
    assert stale_of(catalog) == [("V", "2", "V[1] changed")]


def test_ranges_of_one_reason_merge_and_of_two_overlap(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in range(10)))
    publish(catalog, publication("M", 1, stale=[stale("V", 1, 3, "a"), stale("V", 4, 5, "a"), stale("V", 3, 8, "b")]))
    publish(catalog, publication("M", 2, stale=[stale("V", 0, 0, "a")]))
    assert stale_of(catalog) == [("V", "0 .. 5", "a"), ("V", "3 .. 8", "b")]
    publish(catalog, publication("V", 4, 2, replaces=1))
    assert stale_of(catalog) == [("V", "0 .. 3", "a"), ("V", "3", "b"), ("V", "5", "a"), ("V", "5 .. 8", "b")]


def test_stale_ranges_stay_few_however_many_reasons_come(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in range(10)))
    late = [stale("V", 0, 8, f"reason {number:04}") for number in range(FULL + 50)]
    publish(catalog, publication("M", 1, stale=[*late, stale("V", 5, 9, "the last")]))
    found = stale_of(catalog)
    assert len(found) == FULL + 1
    assert found[-1] == ("V", "9", "the last")


def test_stale_range_of_a_name_that_nothing_defines_is_left_out(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    assert publish(catalog, publication("M", 1, stale=[stale("Gone", 1, 1)]))[0].stale == ()
    assert stale_of(catalog) == []


def test_publishing_nothing_writes_nothing_but_checks_the_generation(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    assert publish(catalog) == []
    with pytest.raises(ConflictError):
        publish(catalog, generation=0)


def test_time_without_a_zone_is_refused(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    naive = datetime(2015, 1, 1)
    with pytest.raises(UsageError) as caught:
        catalog.publish([publication("M", 1)], generation=1, produced_by="cli", at=naive)
    assert str(caught.value) == (
        "datetime.datetime(2015, 1, 1, 0, 0) has no time zone; give an aware datetime such as "
        "datetime.datetime(2015, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)."
    )
    broken = DefinitionChange(replace(record("W"), updated_at=naive), "keep")
    with pytest.raises(UsageError, match="has no time zone"):
        catalog.save_definitions([broken], generation=1, produced_by="cli")


def test_current_versions_of_scattered_parts_come_in_order(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("M", index) for index in range(-300, 300)))
    wanted = PartSet.of_indexes(range(-500, 500, 3))
    assert [item.index for item in current(catalog, "M", wanted)] == [i for i in range(-500, 500, 3) if -300 <= i < 300]
    assert current(catalog, "M", PartSet()) == []
    assert len(current(catalog, "M", PartSet.everything())) == 600


def test_inputs_are_read_once_each_and_sorted_by_table(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication(table, index) for table in "VM" for index in range(5)))
    ranges = [InputRange("V", 2, 3), InputRange("M", 1, 2), InputRange("m", 2, 3), InputRange("M", 9, 9)]
    with catalog.snapshot() as reader:
        found, digest = reader.read_inputs(ranges)
        assert numbers(found) == [("M", 1, 1), ("M", 2, 1), ("M", 3, 1), ("V", 2, 1), ("V", 3, 1)]
        assert reader.read_inputs([InputRange("M", 1, 3), InputRange("V", 2, 3)]) == (found, digest)
        assert reader.read_inputs([]) == ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


def test_parts_are_told_apart_by_the_rule_of_their_current_version(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index, rule="initialize") for index in (1, 2, 5)))
    publish(catalog, publication("V", 2, 2, replaces=1, rule="update"), publication("V", 6, rule="update"))
    with catalog.snapshot() as reader:
        assert str(reader.parts_made_by("v", "initialize")) == "1, 5"
        assert str(reader.parts_made_by("V", "update")) == "2, 6"
        assert str(reader.parts_made_by("M", "update")) == ""
