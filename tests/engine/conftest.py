"""An engine on a warehouse of its own, for each kind of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_viewdf.engine.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(spark, str(tmp_path / "warehouse"))
    yield engine
    engine.release()
    assert spark.catalog.listTables() == []
