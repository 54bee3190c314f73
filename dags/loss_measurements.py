"""The source of the network monitor: made-up measurements, the same ones for the same minute whoever asks, and when.

The first pair loses the packets of the paper's example on 2015-01-01 from 10:00 to 10:06. Its measurement of 10:02 arrives
late: it is left out until it has been delivered, by

    python loss_measurements.py deliver 2015-01-01T10:02

Any other late row can be delivered too, as a line of JSON in a file of the directory LOSS_MEASUREMENTS_DIR (default: the
directory loss_measurements of AIRFLOW_HOME). Whoever loads that minute again gets it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

PAIRS = (
    ("10.0.0.1", "10.0.0.2"),
    ("10.0.0.1", "10.0.0.3"),
    ("10.0.0.2", "10.0.0.4"),
    ("10.0.0.3", "10.0.0.4"),
)
PAPER_START = datetime(2015, 1, 1, 10, 0, tzinfo=UTC)
PAPER_LOSSES = (6, 12, 15, 24, 20, 16, 7)
LATE_MINUTE = datetime(2015, 1, 1, 10, 2, tzinfo=UTC)

MINUTE = timedelta(minutes=1)


def measure_loss(start: datetime, end: datetime) -> list[dict[str, Any]]:
    """The rows of M from start to end, with the late ones that have been delivered by now."""
    rows = []
    for minute in _minutes(start, end):
        rows += [row for row in _measure_minute(minute) if not _is_late(row)]
        rows += _read_delivered(minute)
    return rows


def measure_delay(start: datetime, end: datetime) -> list[dict[str, Any]]:
    """The rows of N from start to end."""
    return [
        {
            "measured_at": minute + timedelta(seconds=30 + number),
            "src": src,
            "dest": dest,
            "delay_ms": 5 + _random(f"delay {src} {dest} {minute}", 40),
        }
        for minute in _minutes(start, end)
        for number, (src, dest) in enumerate(PAIRS)
    ]


def deliver_late(minute: datetime, rows: list[dict[str, Any]] | None = None) -> Path:
    """Put late rows where the next load of their minute finds them: these, or the ones held back."""
    rows = [row for row in _measure_minute(minute) if _is_late(row)] if rows is None else rows
    file = _find_delivery(minute)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text("".join(json.dumps({**row, "ts": row["ts"].isoformat()}) + "\n" for row in rows))
    fresh.replace(file)
    return file


def _measure_minute(minute: datetime) -> list[dict[str, Any]]:
    return [
        {"ts": minute + timedelta(seconds=number), "src": src, "dest": dest, "loss": _find_loss(number, minute)}
        for number, (src, dest) in enumerate(PAIRS)
    ]


def _find_loss(number: int, minute: datetime) -> int:
    """Few lost packets, but every pair has its bad five minutes now and then."""
    since = (minute - PAPER_START) // MINUTE
    if number == 0 and 0 <= since < len(PAPER_LOSSES):
        return PAPER_LOSSES[since]
    has_trouble = (since // 5 + number) % 3 == 2
    chance = _random(f"loss {number} {minute}", 10)
    return 11 + chance if has_trouble else chance


def _is_late(row: dict[str, Any]) -> bool:
    return bool(row["ts"] == LATE_MINUTE) and (row["src"], row["dest"]) == PAIRS[0]


def _read_delivered(minute: datetime) -> list[dict[str, Any]]:
    file = _find_delivery(minute)
    if not file.exists():
        return []
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [{**row, "ts": datetime.fromisoformat(row["ts"])} for row in rows]


def _find_delivery(minute: datetime) -> Path:
    home = os.environ.get("AIRFLOW_HOME") or os.path.expanduser("~/airflow")
    directory = os.environ.get("LOSS_MEASUREMENTS_DIR") or os.path.join(home, "loss_measurements")
    return Path(directory, f"{minute:%Y%m%dT%H%M}.jsonl")


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    minute = start.replace(second=0, microsecond=0)
    while minute < end:
        yield minute
        minute += MINUTE


def _random(seed: str, below: int) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big") % below


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "deliver":
        sys.exit("usage: python loss_measurements.py deliver 2015-01-01T10:02")
    print(deliver_late(datetime.fromisoformat(sys.argv[2]).replace(tzinfo=UTC)))
