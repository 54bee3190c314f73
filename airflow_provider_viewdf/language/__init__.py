"""The language: from the text of a script to checked definitions, with the place in the text of whatever is wrong."""

from __future__ import annotations

from airflow_provider_viewdf.language.dialect import is_same_text
from airflow_provider_viewdf.language.ordering import order_views
from airflow_provider_viewdf.language.script import (
    expand_queries,
    parse_drops,
    parse_script,
    parse_stored_script,
    read_texts,
)
from airflow_provider_viewdf.language.window_syntax import has_window

__all__ = [
    "expand_queries",
    "has_window",
    "is_same_text",
    "order_views",
    "parse_drops",
    "parse_script",
    "parse_stored_script",
    "read_texts",
]
