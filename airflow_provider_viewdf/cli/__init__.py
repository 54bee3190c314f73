"""The command line: `viewdf`."""

from airflow_provider_viewdf.cli.commands import main

__all__ = ["main"]
