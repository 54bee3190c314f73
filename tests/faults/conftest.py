from __future__ import annotations

import pytest
from postgres import PostgresServer
from spark import Sparks
from world import Worlds


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory, open_spark: Sparks, postgres_server: PostgresServer) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("worlds"), open_spark("connect"), postgres_server)
