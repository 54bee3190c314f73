"""How large parts are: what the choice of a window's strategy asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.parts import PartSet

# The newest parts tell what to expect, and reading so few costs nothing.
SAMPLE = 20


def measure_parts(reader: CatalogReader, definitions: Mapping[str, Definition]) -> dict[str, Definition]:
    """The definitions with the average number of rows of their newest parts."""
    return {key: replace(item, rows_per_part=_average_rows(reader, item)) for key, item in definitions.items()}


def _average_rows(reader: CatalogReader, definition: Definition) -> float:
    existing = reader.existing_parts(definition.name) if definition.is_partitioned else PartSet()
    if not existing:
        return 0.0
    newest = PartSet.between(existing.last - SAMPLE + 1, existing.last)
    versions = reader.current_versions(definition.name, newest)
    return sum(version.rows for version in versions) / len(versions) if versions else 0.0
