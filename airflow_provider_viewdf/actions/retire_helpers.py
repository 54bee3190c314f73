"""Retire helper parts: those of window views that no update will read, unless rows come later than RETAIN allows.

A retired part stays in the catalog with its digest, and loses its files (after the grace period, from now on). Should something read it
after all, it is computed again from what it was made of.
"""

from __future__ import annotations

from airflow_provider_viewdf.actions.workbench import Known, Workbench, read_snapshot
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import EARLIEST, PartSet
from airflow_provider_viewdf.planning.helper_retention import find_horizons
from airflow_provider_viewdf.versions import ARCHIVED


def retire_helper_parts(bench: Workbench) -> int:
    """How many parts were retired."""
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        helpers = _window_helpers(known)
        if not helpers:
            return 0
        horizons = find_horizons(read_snapshot(reader, known, known.definitions), helpers)
        versions = [
            version
            for key, horizon in horizons.items()
            for version in reader.current_versions(key, PartSet.between(EARLIEST, horizon - 1))
            if version.location not in ("", ARCHIVED)
        ]
    return bench.catalog.retire_versions(versions)


def _window_helpers(known: Known) -> set[str]:
    """The helper views of windows; those of patterns hold matches that began any time ago."""
    owners = {
        key
        for key, item in known.definitions.items()
        if item.translation is not None and dict(item.translation.choices).get("strategy")
    }
    return {
        key
        for key, item in known.definitions.items()
        if item.owners and all(fold(owner) in owners for owner in item.owners)
    }
