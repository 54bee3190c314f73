"""One Spark for an experiment, and a directory that is gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_viewdf.engine.sessions import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2


def open_spark() -> SparkSession:
    """The classic Spark of this process, the same for all experiments."""
    return open_session(master=f"local[{CORES}]")


@contextmanager
def bench_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="viewdf-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
