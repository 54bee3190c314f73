"""Fixtures that every folder of tests may use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest_plugins = ["object_stores", "postgres", "spark"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """What one process runs when several share the tests: all that need the one Airflow, or else the tests of one file."""
    airflow = Path(__file__).parent / "airflow"
    for item in items:
        group = "airflow" if item.path.is_relative_to(airflow) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
