"""Spark at work: sessions, part files, and the engine that computes one part version at a time.

Importing this package imports no PySpark; the names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_viewdf.engine.engine import DimensionTable, Engine, InputTable, StreamPart
    from airflow_provider_viewdf.engine.part_files import PartFiles
    from airflow_provider_viewdf.engine.sessions import open_session

__all__ = ["DimensionTable", "Engine", "InputTable", "PartFiles", "StreamPart", "open_session"]

_MODULES = {
    "DimensionTable": "engine",
    "Engine": "engine",
    "InputTable": "engine",
    "StreamPart": "engine",
    "PartFiles": "part_files",
    "open_session": "sessions",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
