"""The network monitor of the paper's section 2, and the rows of its example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NETWORK = """
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;

CREATE VIEW Helper AS
  INITIALIZE Helper[i] AS
    SELECT src, dest, 1 AS ct, CAST(loss AS BIGINT) AS sum_loss FROM M[i] WHERE loss > 10
  UPDATE Helper[j] AS
    SELECT m.src, m.dest, COALESCE(h.ct, 0) + 1, COALESCE(h.sum_loss, 0) + m.loss
    FROM M[j] AS m LEFT JOIN Helper[j-1] AS h ON m.src = h.src AND m.dest = h.dest
    WHERE m.loss > 10
  PARTITION LENGTH 60;

CREATE VIEW View2 AS
  INITIALIZE View2[i] AS SELECT src, dest, ct, sum_loss FROM Helper[i] WHERE ct >= 4
  UPDATE View2[j] AS SELECT src, dest, ct, sum_loss FROM Helper[j] WHERE ct >= 4
  PARTITION LENGTH 60;
"""

LOSSES = {0: 6, 1: 12, 2: 15, 3: 24, 4: 20, 5: 16, 6: 7}


def minute(number: int, second: int = 0) -> datetime:
    return datetime(2015, 1, 1, 10, tzinfo=UTC) + timedelta(minutes=number, seconds=second)


def measurement(number: int, loss: int) -> dict[str, Any]:
    return {"ts": minute(number, 30), "src": "a", "dest": "b", "loss": loss}
