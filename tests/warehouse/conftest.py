from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_viewdf.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path, spark: Any) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "wh", spark=spark) as opened:
        yield opened
