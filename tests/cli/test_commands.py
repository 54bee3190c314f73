from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_viewdf.cli import main

SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW V AS SELECT src, sum(loss) AS total FROM M GROUP BY src;
"""

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
        return code, captured.out, captured.err

    return call


def test_the_commands_from_script_to_answer(run: Run, tmp_path: Path, open_spark: Callable[[str], Any]) -> None:
    open_spark("classic")
    script, rows = tmp_path / "views.sql", tmp_path / "in.csv"
    script.write_text(SCRIPT)
    rows.write_text("ts,src,loss\n2015-01-01 10:00:05,a,1\n2015-01-01 10:00:06,a,2\n2015-01-01 10:02:00,b,5\n")

    assert run("apply", str(script))[0] == 0
    code, out, err = run("load", "M", str(rows), "--batch-id", "one")
    assert (code, out) == (0, "")
    assert err.startswith("3 rows into M, 3 of 3 parts changed (batch one, ")

    code, out, err = run("refresh", "--dry-run")
    assert out.splitlines()[0] == "V[23668440]  2015-01-01T10:00  UPDATE  because new"
    closing = run("refresh", "--from", "2015-01-01T10:00", "--to", "2015-01-01T10:03")[2].splitlines()[-1]
    assert re.fullmatch(r"3 parts published, 0 kept \(\d+\.\d s, \d+\.\d parts/s\)", closing)

    code, out, err = run("query", "SELECT src, total, PART_TIMESTAMP AS at FROM V ORDER BY src", "--format", "json")
    assert json.loads(out) == [
        {"src": "a", "total": 3, "at": "2015-01-01T10:00:00Z"},
        {"src": "b", "total": 5, "at": "2015-01-01T10:02:00Z"},
    ]
    assert run("query", "SELECT total FROM V['2015-01-01 10:02']", "--format", "csv")[1] == "total\n5\n"

    assert run("declare-empty", "M", "--at", "2015-01-01T10:03", "--why", "router down")[0] == 0
    out = run("status", "M")[1]
    assert "M: 2015-01-01T10:03 declared empty by cli: router down" in out
    assert "V[23668442] (2015-01-01T10:02)" in run("explain", "V")[1]
    assert run("verify")[2].startswith("3 parts compared, 0 differ (")
    assert run("gc")[2] == "0 replaced versions and 0 left-over directories removed\n"
    code, _, err = run("roll-up", "--span", "2 minutes", "--older-than", "0 seconds")
    assert code == 0
    assert err.splitlines()[-1].startswith("0 parts rolled up into 0 file sets (")
    script.write_text(SCRIPT.replace("LENGTH 60;", "LENGTH 60 RETAIN '1 minute';"))
    assert run("apply", str(script))[0] == 0
    assert run("refresh")[0] == 0
    assert run("retire")[2].splitlines() == [
        "M[23668440 .. 23668442] (2015-01-01T10:00 .. 2015-01-01T10:02) archived",
        "3 parts archived; gc removes their files",
    ]
    assert "M: archived 2015-01-01T10:00 .. 2015-01-01T10:02" in run("status", "M")[1]
    assert run("refresh", "--batch-limit", "0")[0] == 2
    assert run("migrate")[2].startswith("The catalog is at ")


def test_repair_computes_a_damaged_part_again_and_names_the_batch_of_lost_rows(
    run: Run, tmp_path: Path, open_spark: Callable[[str], Any]
) -> None:
    open_spark("classic")
    script, rows = tmp_path / "views.sql", tmp_path / "in.csv"
    script.write_text(SCRIPT)
    rows.write_text("ts,src,loss\n2015-01-01 10:00:05,a,1\n")
    for arguments in (("apply", str(script)), ("load", "M", str(rows), "--batch-id", "one"), ("refresh",)):
        assert run(*arguments)[0] == 0
    assert run("repair")[2].startswith("2 parts checked, 0 damaged (")

    for file in (tmp_path / "wh/V").rglob("*.parquet"):
        file.write_bytes(b"not what was written")
    code, out, _ = run("repair", "--dry-run")
    assert (code, out.splitlines()[0].endswith(": found")) == (1, True)
    code, out, err = run("repair", "V")
    assert (code, out.splitlines()[0].endswith(": restored")) == (0, True)
    assert err.splitlines()[-1].startswith("1 parts checked, 1 damaged (")
    assert run("query", "SELECT total FROM V", "--format", "csv")[1] == "total\n1\n"

    for file in (tmp_path / "wh/M").rglob("*.parquet"):
        file.unlink()
    code, out, _ = run("repair", "M")
    assert (code, out.splitlines()[0].endswith(f": load again: batch one ({rows})")) == (1, True)
    assert run("load", "M", str(rows), "--batch-id", "one")[0] == 0
    assert run("repair")[0] == 0
    assert run("verify")[0] == 0


def test_compile_needs_no_warehouse(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIEWDF_WAREHOUSE")
    script = tmp_path / "views.sql"
    script.write_text(SCRIPT)
    code, out, _ = run("compile", str(script), "--at", "2015-01-01T10:00")
    assert code == 0
    assert "FROM M_23668440" in out


def test_a_mistake_is_one_sentence_on_stderr_and_exit_1(run: Run, tmp_path: Path) -> None:
    assert run("status", "Nowhere") == (
        1,
        "",
        "Nothing is defined with the name Nowhere; there is: nothing yet.\n",
    )
    missing = tmp_path / "none.sql"
    assert run("apply", str(missing)) == (1, "", f"{missing} cannot be read: No such file or directory.\n")


def test_wrong_usage_is_exit_2(run: Run) -> None:
    assert run("load", "M")[0] == 2
    assert run("load", "M", "in.csv", "--from", "2015-01-01")[0] == 2
    assert run("nonsense")[0] == 2


def test_help_lists_every_command(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    for command in [
        "apply",
        "load",
        "refresh",
        "query",
        "status",
        "explain",
        "impact",
        "compile",
        "verify",
        "declare-empty",
        "gc",
        "repair",
        "roll-up",
        "retire",
        "migrate",
    ]:
        assert f"  {command} " in out
