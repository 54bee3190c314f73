"""Leases: be the only one at work on something, and take the place of who was and is no more."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.errors import CatalogUnavailableError

logger = logging.getLogger("airflow_provider_viewdf")

LEASE_SECONDS = 60.0
LEASE_POLL_SECONDS = 0.2


@contextmanager
def hold_lease(catalog: Catalog, view: str, index: int) -> Iterator[None]:
    """Be the only one at work on a part; wait until that is so. Ends by itself if this process dies."""
    token = acquire_lease(catalog, view, index, name_owner())
    with renewing(catalog, [token], f"{view}[{index}]"):
        yield


@contextmanager
def hold_leases(catalog: Catalog, view: str, indexes: Sequence[int]) -> Iterator[set[int]]:
    """Be the only one at work on these parts: wait for the first, and take of the others those that nobody has.

    Whoever waits holds nothing, so no two can wait for each other.
    """
    owner = name_owner()
    tokens = {indexes[0]: acquire_lease(catalog, view, indexes[0], owner)}
    tokens |= catalog.acquire_leases(view, indexes[1:], owner, LEASE_SECONDS)
    for index, holder in catalog.lease_holders(view, [index for index in indexes if index not in tokens]).items():
        if is_dead(holder):
            token = catalog.acquire_lease(view, index, owner, LEASE_SECONDS, instead_of=holder)
            tokens |= {} if token is None else {index: token}
    with renewing(catalog, list(tokens.values()), f"{len(tokens)} parts of {view}"):
        yield set(tokens)


@contextmanager
def renewing(catalog: Catalog, tokens: Sequence[str], what: str) -> Iterator[None]:
    """Keep leases from expiring, and release them at the end."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            try:
                catalog.renew_leases(tokens, LEASE_SECONDS)
            except Exception as error:
                # Its loss is no reason to stop: whatever is published is checked for what others did meanwhile.
                logger.warning("The lease of %s could not be renewed: %s", what, error)

    thread = threading.Thread(target=renew, name=f"lease of {what}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        try:
            catalog.release_leases(tokens)
        except CatalogUnavailableError as error:
            # It ends by itself. What went wrong before must not be hidden by this.
            logger.warning("The lease of %s could not be released: %s", what, error)


def acquire_lease(catalog: Catalog, view: str, index: int, owner: str) -> str:
    """Wait for the lease of a part: its token."""
    has_told = False
    while True:
        token = catalog.acquire_lease(view, index, owner, LEASE_SECONDS)
        if token is not None:
            return token
        holder = catalog.lease_holders(view, [index]).get(index)
        if holder is not None and is_dead(holder):
            token = catalog.acquire_lease(view, index, owner, LEASE_SECONDS, instead_of=holder)
            if token is not None:
                return token
        if not has_told:
            logger.info("%s[%s] is being worked on by %s; waiting.", view, index, holder)
            has_told = True
        time.sleep(LEASE_POLL_SECONDS)


def name_owner() -> str:
    """Who holds a lease: a process of a machine, and which of its leases."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def is_dead(owner: str) -> bool:
    """Whether a lease's owner was a process of this machine that is no more."""
    host, _, rest = owner.partition(":")
    process = rest.partition(":")[0]
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
