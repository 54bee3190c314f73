"""Fixtures that every folder of tests may use, and how two processes share the tests."""

from __future__ import annotations

from typing import Any

import pytest

pytest_plugins = ["object_stores", "postgres", "spark"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One process runs all tests that need the one Airflow; else, all tests of a file."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            return "tests/airflow" if file.startswith("tests/airflow/") else file

    return ByFile(config, log)
