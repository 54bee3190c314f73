"""Servers that an experiment starts for itself, and ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

if TYPE_CHECKING:
    from postgres import PostgresServer


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """The PostgreSQL of the tests."""
    from postgres import start_postgres

    server = start_postgres()
    try:
        yield server
    finally:
        server.stop()
