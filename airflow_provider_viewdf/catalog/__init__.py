"""The catalog, in SQLite or PostgreSQL: definitions, parts and their versions, stale ranges, batches and leases."""

from airflow_provider_viewdf.catalog.catalog import Catalog, open_catalog, upgrade_catalog
from airflow_provider_viewdf.catalog.defining import DefinitionChange
from airflow_provider_viewdf.catalog.reader import CatalogReader

__all__ = ["Catalog", "CatalogReader", "DefinitionChange", "open_catalog", "upgrade_catalog"]
