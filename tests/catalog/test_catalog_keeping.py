"""Where the rows of parts lie, and for how long they are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from catalog_samples import define_m_and_v, existing, publication, publish, stale, stale_of

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.errors import ConflictError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import ARCHIVED, Move, PartVersion

LATER = datetime.now(UTC) + timedelta(days=1)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def current(catalog: Catalog, table: str) -> list[PartVersion]:
    with catalog.snapshot() as reader:
        return reader.current_versions(table)


def locations(catalog: Catalog, table: str) -> dict[int, str]:
    return {item.index: item.location for item in current(catalog, table)}


def retired(catalog: Catalog, before: datetime = LATER) -> list[str]:
    with catalog.snapshot() as reader:
        return reader.retired_locations(before)


def test_a_version_lies_elsewhere_and_is_the_same_version(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1), publication("M", 2))
    before = current(catalog, "M")
    assert catalog.relocate([Move(item, f"M/rolled/1_2-a#{item.index}") for item in before], generation=1) == 2
    assert locations(catalog, "M") == {1: "M/rolled/1_2-a#1", 2: "M/rolled/1_2-a#2"}
    assert [(item.version, item.digest, item.created_at) for item in current(catalog, "M")] == [
        (item.version, item.digest, item.created_at) for item in before
    ]
    assert retired(catalog) == ["M/1/content1", "M/2/content1"]
    assert retired(catalog, LONG_AGO) == []
    with catalog.snapshot() as reader:
        assert reader.known_locations() == {"M/rolled/1_2-a", "M/1/content1", "M/2/content1"}
        assert reader.locations_in_use(LATER) == {"M/rolled/1_2-a"}
    catalog.forget_retired(["M/1/content1"])
    assert retired(catalog) == ["M/2/content1"]


def test_a_version_that_was_replaced_meanwhile_stays_where_it_is(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, publication("M", 1), publication("M", 2))
    before = current(catalog, "M")
    publish(catalog, publication("M", 1, 2, replaces=1))
    assert catalog.relocate([Move(item, f"M/rolled/1_2-a#{item.index}") for item in before], generation=1) == 1
    assert locations(catalog, "M") == {1: "M/1/content2", 2: "M/rolled/1_2-a#2"}


def test_a_place_based_on_older_definitions_is_refused(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    with pytest.raises(ConflictError):
        catalog.relocate([], generation=0)


def test_archived_parts_exist_are_not_stale_and_have_no_rows(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("V", index) for index in range(5)))
    publish(catalog, publication("M", 1, stale=[stale("V", 0, 4)]))
    catalog.archive("V", 2, generation=1, produced_by="cli")
    assert existing(catalog, "V") == "0 .. 4"
    assert stale_of(catalog, "V") == [("V", "2 .. 4", "late data in M")]
    assert locations(catalog, "V") == {
        0: ARCHIVED,
        1: ARCHIVED,
        2: "V/2/content1",
        3: "V/3/content1",
        4: "V/4/content1",
    }
    assert retired(catalog) == ["V/0/content1", "V/1/content1"]
    with catalog.snapshot() as reader:
        assert (reader.archived_before("v"), reader.archived_before("M")) == (2, None)
        assert reader.summary("V").rows == 3
    publish(catalog, publication("M", 1, 2, replaces=1, stale=[stale("V", 0, 4, "again")]))
    assert ("V", "2 .. 4", "again") in stale_of(catalog, "V")
    assert not any(parts.startswith("0") for _, parts, _ in stale_of(catalog, "V"))


def test_archiving_never_turns_back(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("M", index) for index in range(5)))
    catalog.archive("M", 3, generation=1, produced_by="cli")
    catalog.archive("M", 1, generation=1, produced_by="cli")
    with catalog.snapshot() as reader:
        assert reader.archived_before("M") == 3
        assert reader.summary("M").rows == 2
    catalog.archive("M", 4, generation=1, produced_by="cli")
    with catalog.snapshot() as reader:
        assert reader.summary("M").rows == 1


def test_an_archived_part_cannot_be_published(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    publish(catalog, *(publication("M", index) for index in range(3)))
    catalog.archive("M", 2, generation=1, produced_by="cli")
    with pytest.raises(ConflictError) as raised:
        publish(catalog, publication("M", 1, 2, replaces=1))
    assert str(raised.value) == "M[1] was archived meanwhile. Nothing was written."


def test_leases_of_many_parts_leave_out_what_others_hold(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    assert catalog.acquire_lease("V", 2, "other", 60) is not None
    tokens = catalog.acquire_leases("V", [1, 2, 3], "me", 60)
    assert set(tokens) == {1, 3}
    catalog.renew_leases(list(tokens.values()), 60)
    assert catalog.lease_holder("V", 3) == "me"
    catalog.release_leases(list(tokens.values()))
    assert [catalog.lease_holder("V", index) for index in (1, 2, 3)] == [None, "other", None]
    assert PartSet.of_indexes(tokens) == PartSet.of_indexes([1, 3])
