"""Fixtures that every folder of tests may use, and how two processes share the tests."""

from __future__ import annotations

from typing import Any

import pytest

pytest_plugins = ["object_stores", "postgres", "spark"]

# Whose tests take long. They come first, so that no process is left with a long file at the end.
LONG = ("tests/airflow/", "tests/warehouse/", "tests/faults/", "tests/engine/", "tests/cli/")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((place for place, folder in enumerate(LONG) if item.nodeid.startswith(folder)), len(LONG))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One process runs all tests that need the one Airflow; else, all tests of a file."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            return "tests/airflow" if file.startswith("tests/airflow/") else file

    # By itself it would begin with the files that have most tests.
    config.option.loadscopereorder = False
    return ByFile(config, log)
