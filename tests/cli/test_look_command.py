"""`viewdf look`: what it says, and what status shows afterwards. No Spark is started for either."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_viewdf.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.setenv("VIEWDF_WAREHOUSE", str(tmp_path / "wh"))

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["viewdf", *arguments])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, re.sub(r"\(\d+\.\d s\)", "(x s)", captured.err)

    return call


def test_look_says_what_it_found(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "e.sql"
    script.write_text(
        "CREATE STREAM E (ts TIMESTAMP ORDERED, v INT) PARTITION LENGTH '1 hour' "
        f"LOCATION '{tmp_path}/lake/{{yyyy-MM-dd}}/{{HH}}' FORMAT csv"
    )
    assert run("apply", str(script))[0] == 0
    for number in (10, 12):
        place = tmp_path / "lake" / "2015-01-01" / f"{number}"
        place.mkdir(parents=True)
        (place / "a.csv").write_text("ts,v\n")

    assert run("look", "E") == (1, "", "No part of E is registered yet; say from when on to look for its files.\n")
    assert run("look", "E", "--from", "2015-01-01T10:00", "--to", "2015-01-01T13:00") == (
        0,
        "",
        "E: 3 parts looked at, 2 files; 2 registered, 0 changed, 1 missing (x s)\n"
        "E: registered: 2015-01-01T10:00, 2015-01-01T12:00\n"
        "E: missing: 2015-01-01T11:00\n",
    )
    (tmp_path / "lake" / "2015-01-01" / "10" / "late.csv").write_text("ts,v\n")
    (tmp_path / "lake" / "2015-01-01" / "12" / "a.csv").unlink()
    assert run("look", "e", "--to", "2015-01-01T13:00") == (
        0,
        "",
        "E: 3 parts looked at, 2 files; 0 registered, 1 changed, 2 missing (x s)\n"
        "E: changed: 2015-01-01T10:00\n"
        "E: missing: 2015-01-01T11:00\n"
        "E: gone, still registered as it was: 2015-01-01T12:00\n",
    )
    out = run("status", "E")[1]
    assert f"E: 3 files, 15 bytes at {tmp_path}/lake/{{yyyy-MM-dd}}/{{HH}}; their rows are not counted" in out
    assert " external " in out
    assert run("load", "E", str(script))[2].startswith("E is external: its rows are in the files at ")


def test_a_query_over_a_file_that_does_not_fit_names_it(
    run: Run, tmp_path: Path, open_spark: Callable[[str], Any]
) -> None:
    open_spark("classic")
    script = tmp_path / "e.sql"
    script.write_text(
        "CREATE STREAM E (ts TIMESTAMP ORDERED, v INT) PARTITION LENGTH '1 day' LOCATION 'in/{yyyy-MM-dd}' FORMAT csv"
    )
    run("apply", str(script))
    place = tmp_path / "wh" / "in" / "2015-01-01"
    place.mkdir(parents=True)
    (place / "a.csv").write_text("ts,v\n2015-01-01 10:00:00,many\n")
    run("look", "E", "--from", "2015-01-01", "--to", "2015-01-02")

    code, out, err = run("query", "SELECT v FROM E")

    assert (code, out) == (1, "")
    assert err == (
        f"Encountered error while reading file file://{place}/a.csv. Malformed records are detected in record parsing: [null].\n"
    )
