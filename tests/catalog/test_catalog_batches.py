"""Load batches: what they covered and brought, and how a corrected one replaces an earlier one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalog_samples import batch_of, content, define, define_m_and_v, existing, publication, publish, record

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.errors import ConflictError, UnknownTableError
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.versions import Batch, ContentDigest, LateCount, RejectedRow


def batch(catalog: Catalog, table: str, batch_id: str) -> Batch | None:
    with catalog.snapshot() as reader:
        return reader.batch(table, batch_id)


def test_batch_comes_back_as_it_was_recorded(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    recorded = replace(
        batch_of("M", "run 1", PartSet.of([PartRange(-3, 2), PartRange(7, 9)]), [(1, content(1)), (8, content(2, 5))]),
        rejected=(
            RejectedRow("in.csv", 7, "loss is no number", "1,x"),
            RejectedRow("in.csv", 3, "no time", "2,,ü"),
        ),
    )
    publish(catalog, publication("M", 1), batch=recorded)
    assert batch(catalog, "m", "run 1") == recorded
    assert recorded.rows == 6
    with catalog.snapshot() as reader:
        assert reader.batches("M") == [recorded]
        assert reader.rejected_rows("m") == [("run 1", row) for row in recorded.rejected]
        assert reader.summary("M").rejected_rows == 2


def test_unknown_batch_is_none(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    assert batch(catalog, "M", "never") is None


def test_batches_of_two_tables_may_have_one_id(catalog: Catalog) -> None:
    define(catalog, record("M", "stream"), record("N", "stream"))
    publish(catalog, batch=batch_of("M", "b", PartSet.between(1, 1)))
    publish(catalog, batch=batch_of("N", "b", PartSet.between(2, 2)))
    found = [batch(catalog, table, "b") for table in ("M", "N")]
    assert [(item.table, str(item.covers)) for item in found if item] == [("M", "1"), ("N", "2")]


def test_batches_come_in_the_order_of_loading(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    for batch_id, minutes in [("z", 1), ("b", 3), ("a", 3), ("c", 2)]:
        publish(catalog, batch=batch_of("M", batch_id, PartSet(), minutes=minutes))
    with catalog.snapshot() as reader:
        assert [item.batch_id for item in reader.batches("M")] == ["z", "c", "a", "b"]


def test_corrected_batch_replaces_everything_of_the_earlier_one(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    rejected = (RejectedRow("in.csv", 7, "loss is no number", "1,x"),)
    first = batch_of("M", "b", PartSet.between(1, 5), [(1, content(1)), (2, content(2))])
    publish(catalog, batch=replace(first, rejected=rejected))
    publish(catalog, batch=batch_of("M", "other", PartSet.between(1, 1), [(1, content(9))]))
    second = batch_of("M", "b", PartSet.between(2, 3), [(2, content(2)), (3, content(3))], minutes=4)
    publish(catalog, batch=second)
    assert batch(catalog, "M", "b") == second
    with catalog.snapshot() as reader:
        assert reader.rejected_rows("M") == []
        assert reader.batches_of_parts("M", PartSet.everything()) == {
            1: {"other": content(9)},
            2: {"b": content(2)},
            3: {"b": content(3)},
        }


def test_digests_of_batches_are_answered_for_the_asked_parts(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    many = PartSet.of_indexes(range(0, 1000, 4))
    publish(catalog, batch=batch_of("M", "a", many, [(index, content(index + 1)) for index in many]))
    publish(catalog, batch=batch_of("M", "b", many, [(8, content(5))]))
    with catalog.snapshot() as reader:
        assert reader.batches_of_parts("m", PartSet.of_indexes([4, 5, 8])) == {
            4: {"a": content(5)},
            8: {"a": content(9), "b": content(5)},
        }
        assert list(reader.batches_of_parts("M", many)) == list(many)
        assert reader.batches_of_parts("M", PartSet()) == {}


def test_covered_parts_without_rows_are_not_recorded_as_brought(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    given = batch_of("M", "b", PartSet.between(1, 2), [(1, content(1)), (2, ContentDigest())])
    publish(catalog, publication("M", 1), publication("M", 2), batch=given)
    found = batch(catalog, "M", "b")
    assert found is not None
    assert [part.index for part in found.parts] == [1]
    assert existing(catalog, "M") == "1 .. 2"


def test_declared_empty_parts_say_why(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    declared = batch_of("M", "empty", PartSet.between(4, 4), because="the router was off")
    empty = replace(publication("M", 4), digest=ContentDigest(), location="")
    publish(catalog, empty, batch=declared)
    assert batch(catalog, "M", "empty") == declared
    assert existing(catalog, "M") == "4"


def test_conflict_leaves_the_batch_unrecorded(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(ConflictError):
        publish(catalog, publication("M", 1, replaces=3), batch=batch_of("M", "b", PartSet.between(1, 1)))
    assert batch(catalog, "M", "b") is None


def test_batch_of_an_unknown_table_is_refused(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(UnknownTableError) as caught:
        publish(catalog, batch=batch_of("Nowhere", "b", PartSet.between(1, 1)))
    assert str(caught.value) == "Nothing is defined with the name Nowhere."


def test_text_that_no_database_can_store_is_replaced_by_question_marks(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    strange = replace(batch_of("M", "b\x00", PartSet()), rejected=(RejectedRow("in.csv", 1, "bad \udcff", "a\x00b"),))
    publish(catalog, batch=strange)
    publish(catalog, batch=strange)
    found = batch(catalog, "M", "b\x00")
    assert found is not None
    assert (found.batch_id, found.rejected) == ("b?", (RejectedRow("in.csv", 1, "bad ?", "a?b"),))


def test_late_rows_are_counted_per_batch_and_summed_up(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    late = replace(batch_of("M", "a", PartSet.between(1, 1)), late=LateCount(taken=3, quarantined=2, ignored=1))
    late = replace(late, measured_against=-7)
    publish(catalog, batch=late)
    publish(catalog, batch=replace(batch_of("M", "b", PartSet.between(2, 2)), late=LateCount(ignored=4)))
    assert batch(catalog, "M", "a") == late
    with catalog.snapshot() as reader:
        assert reader.summary("M").late == LateCount(3, 2, 5)
        assert reader.summary("V").late == LateCount()
    publish(catalog, batch=replace(late, late=LateCount()))
    with catalog.snapshot() as reader:
        assert reader.summary("M").late == LateCount(ignored=4)


def test_newest_part_of_other_batches_is_the_last_that_they_cover_or_have_rows_for(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, batch=batch_of("M", "a", PartSet.between(1, 5)))
    with catalog.snapshot() as reader:
        assert (reader.newest_part("m", "a"), reader.newest_part("M", "b")) == (None, 5)
    publish(catalog, batch=batch_of("M", "b", PartSet.between(2, 3), [(8, content(1))]))
    with catalog.snapshot() as reader:
        assert (reader.newest_part("M", "a"), reader.newest_part("M", "b")) == (8, 5)


def test_a_batch_that_someone_else_loaded_meanwhile_is_not_replaced_unseen(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    first = batch_of("M", "b", PartSet.between(1, 1), [(1, content(1))])
    second = batch_of("M", "b", PartSet.between(2, 2), [(2, content(2))], minutes=1)
    publish(catalog, publication("M", 1), batch=first)
    # It touches another part, so that no version is in the way.
    with pytest.raises(ConflictError) as raised:
        catalog.publish([publication("M", 2, 2)], generation=1, produced_by="cli", batch=second, batch_before=None)
    assert str(raised.value) == (
        "The batch b of M was loaded by someone else meanwhile. Nothing was written; try again."
    )
    assert (batch(catalog, "M", "b"), existing(catalog, "M")) == (first, "1")
    catalog.publish([publication("M", 2, 2)], generation=1, produced_by="cli", batch=second, batch_before=first)
    assert batch(catalog, "M", "b") == second
