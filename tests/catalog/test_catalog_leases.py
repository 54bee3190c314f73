"""Leases: taken once, renewed, released, and taken over once they have expired."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from catalog_samples import current, define_m_and_v, publication

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.errors import LostFilesError
from airflow_provider_viewdf.versions import Move, Writer


def test_leased_part_is_refused_to_others(catalog: Catalog) -> None:
    token = catalog.acquire_lease("V", 5, "one", 60)
    assert token
    assert catalog.acquire_lease("v", 5, "two", 60) is None
    assert catalog.lease_holder("v", 5) == "one"


def test_other_parts_and_tables_are_free(catalog: Catalog) -> None:
    tokens = {
        catalog.acquire_lease("V", 5, "one", 60),
        catalog.acquire_lease("V", 6, "two", 60),
        catalog.acquire_lease("W", 5, "three", 60),
    }
    assert len(tokens) == 3
    assert None not in tokens
    assert catalog.lease_holder("V", 7) is None


def test_released_lease_is_free(catalog: Catalog) -> None:
    token = catalog.acquire_lease("V", 5, "one", 60)
    assert token
    catalog.release_lease(token)
    catalog.release_lease(token)
    assert catalog.lease_holder("V", 5) is None
    assert not catalog.renew_lease(token, 60)
    assert catalog.acquire_lease("V", 5, "two", 60)


def test_expired_lease_has_no_holder_and_is_taken_over(catalog: Catalog) -> None:
    old = catalog.acquire_lease("V", 5, "one", 0)
    assert old
    assert catalog.lease_holder("V", 5) is None
    new = catalog.acquire_lease("V", 5, "two", 60)
    assert new
    assert new != old
    assert not catalog.renew_lease(old, 60)
    catalog.release_lease(old)
    assert catalog.lease_holder("V", 5) == "two"


def test_expired_lease_that_nobody_took_can_be_renewed(catalog: Catalog) -> None:
    token = catalog.acquire_lease("V", 5, "one", 0)
    assert token
    assert catalog.renew_lease(token, 60)
    assert catalog.lease_holder("V", 5) == "one"
    assert catalog.acquire_lease("V", 5, "two", 60) is None


def test_renewing_counts_from_now(catalog: Catalog) -> None:
    token = catalog.acquire_lease("V", 5, "one", 60)
    assert token
    assert catalog.renew_lease(token, 0)
    assert catalog.lease_holder("V", 5) is None


def test_owner_who_asks_again_gets_a_new_token_and_the_old_one_ends(catalog: Catalog) -> None:
    old = catalog.acquire_lease("V", 5, "one", 60)
    new = catalog.acquire_lease("V", 5, "one", 60)
    assert old is not None
    assert new is not None
    assert old != new
    assert not catalog.renew_lease(old, 60)
    assert catalog.renew_lease(new, 60)


def test_of_many_threads_one_gets_the_lease(catalog: Catalog) -> None:
    with ThreadPoolExecutor(8) as threads:
        tokens = list(threads.map(lambda number: catalog.acquire_lease("V", 5, f"owner {number}", 60), range(24)))
    assert sum(token is not None for token in tokens) == 1


def test_of_those_who_take_the_place_of_a_dead_owner_one_gets_it(catalog: Catalog) -> None:
    assert catalog.acquire_lease("V", 5, "dead", 60)
    assert catalog.acquire_lease("V", 5, "one", 60, instead_of="dead")
    assert catalog.acquire_lease("V", 5, "two", 60, instead_of="dead") is None
    assert catalog.lease_holder("V", 5) == "one"


def test_those_who_lease_many_parts_in_any_order_do_not_lock_each_other_out(catalog: Catalog) -> None:
    def lease_and_release(number: int) -> None:
        order = Random(number)
        for _ in range(30):
            indexes = order.sample(range(20), 20)
            tokens = list(catalog.acquire_leases("V", indexes, f"owner {number}", 60).values())
            order.shuffle(tokens)
            catalog.renew_leases(tokens, 60)
            catalog.release_leases(tokens)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lease_and_release, range(4)))
    assert catalog.lease_holders("V", range(20)) == {}


def test_a_writer_whose_lease_was_ended_publishes_nothing(catalog: Catalog) -> None:
    define_m_and_v(catalog)
    token = catalog.acquire_writer("0123456789ab", "host:1:a", 0)
    assert catalog.writers() == [Writer("0123456789ab", token, "host:1:a", is_expired=True)]
    # Expired, but nobody has ended it: its files are there.
    catalog.publish([publication("M", 1)], generation=1, produced_by="cli", writer=token)
    catalog.release_leases([token])
    with pytest.raises(LostFilesError) as raised:
        catalog.publish([publication("M", 2)], generation=1, produced_by="cli", writer=token)
    assert str(raised.value) == (
        "This process did not renew its lease for so long that gc may have removed the files it wrote. "
        "Nothing was published; do it again."
    )
    with pytest.raises(LostFilesError):
        catalog.relocate([Move(current(catalog, "M")[0], "M/rolled/1_1-a#1")], generation=1, writer=token)
    assert [item.location for item in current(catalog, "M")] == ["M/1/content1"]
    assert catalog.writers() == []


def test_lease_from_a_clock_that_was_hours_ahead_blocks_nobody(catalog: Catalog) -> None:
    # Taken at a time that is, by the clock of now, an hour off.
    assert catalog.acquire_lease("V", 5, "one", 3_600)
    token = catalog.acquire_lease("V", 5, "two", 60)
    assert token
    assert catalog.lease_holder("V", 5) == "two"
