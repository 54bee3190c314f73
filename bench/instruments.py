"""Looking into a refresh from outside: what the catalog takes, and what a refresh is without its digest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import _GeneratorContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.engine.engine import Engine
from airflow_provider_viewdf.versions import ContentDigest

if TYPE_CHECKING:
    from airflow_provider_viewdf.definitions import Column

_numbers = count(1)


@contextmanager
def without_digest() -> Iterator[None]:
    """Write parts without the pass that counts and hashes their rows. Each then counts as changed."""

    def write(engine: Engine, sql: str, columns: tuple[Column, ...], location: str) -> ContentDigest:
        engine.save(engine._select(sql, columns).write, location)
        return ContentDigest(1, next(_numbers), 0)

    with patch.object(Engine, "_write", write):
        yield


class Clock:
    """Adds up the time that passes inside some functions; what one of them calls counts for the inner one only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[str] = []
        self._since = 0.0

    def start(self, name: str) -> None:
        self._settle()
        self._inside.append(name)

    def stop(self) -> None:
        self._settle()
        self._inside.pop()

    def _settle(self) -> None:
        now = time.perf_counter()
        if self._inside:
            name = self._inside[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        self.start(name)
        try:
            yield
        finally:
            self.stop()

    @contextmanager
    def watching(self, name: str, owner: Any, *methods: str) -> Iterator[None]:
        """Count what passes inside these methods, or with blocks if that is what they return."""
        originals = {method: getattr(owner, method) for method in methods}
        for method, original in originals.items():
            setattr(owner, method, self._wrap(name, original))
        try:
            yield
        finally:
            for method, original in originals.items():
                setattr(owner, method, original)

    def _wrap(self, name: str, original: Any) -> Any:
        def called(*arguments: Any, **named: Any) -> Any:
            with self.running(name):
                answer = original(*arguments, **named)
            if isinstance(answer, _GeneratorContextManager):
                return self._entered(name, answer)
            return answer

        return called

    @contextmanager
    def _entered(self, name: str, block: Any) -> Iterator[Any]:
        with self.running(name), block as value:
            yield value


CATALOG_METHODS = (
    "snapshot",
    "publish",
    "mark_stale",
    "acquire_lease",
    "release_lease",
    "acquire_leases",
    "release_leases",
)


@contextmanager
def catalog_clock() -> Iterator[Clock]:
    clock = Clock()
    with clock.watching("catalog", Catalog, *CATALOG_METHODS):
        yield clock
