"""The commands that show what would be done: impact, refresh --dry-run, apply --dry-run; and late rows in status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_viewdf.cli import main

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, loss INT) PARTITION LENGTH 60 LATE ROWS QUARANTINE AFTER '2 days';"
SCRIPT = (
    STREAM + "CREATE VIEW Helper AS INITIALIZE Helper[i] AS SELECT sum(loss) AS total FROM M[i] UPDATE Helper[j] AS "
    "SELECT sum(x) FROM (SELECT loss AS x FROM M[j] UNION ALL SELECT total FROM Helper[j-1]) PARTITION LENGTH 60;"
    "CREATE VIEW View2 AS SELECT total FROM Helper WHERE total > 3;"
)

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


def test_plans_are_shown_before_anything_is_done(run: Run, tmp_path: Path, open_spark: Callable[[str], Any]) -> None:
    open_spark("classic")
    script, rows = tmp_path / "views.sql", tmp_path / "in.csv"
    script.write_text(SCRIPT)
    rows.write_text("ts,loss\n" + "".join(f"2015-01-01 10:0{number}:05,1\n" for number in range(6)))
    assert run("apply", str(script), "--dry-run") == (
        0,
        "M: defined\nHelper: defined\nView2: defined\n",
        "No part becomes stale.\n",
    )
    assert run("status")[1] == "Nothing is defined yet.\n"
    run("apply", str(script))
    run("load", "M", str(rows))
    code, out, err = run("refresh", "--dry-run")
    assert (code, out) == (
        0,
        "Helper[23668440 .. 23668445], 6 parts, because new  (2015-01-01T10:00 .. 2015-01-01T10:05)\n"
        "View2[23668440 .. 23668445], 6 parts, because new  (2015-01-01T10:00 .. 2015-01-01T10:05)\n",
    )
    assert err == "12 steps at most; a part that turns out the same ends its chain\n"
    run("refresh")

    tree = (
        "Helper[23668441 .. 23668445], 5 parts, because M[23668441] changed  (2015-01-01T10:01 .. 2015-01-01T10:05)\n"
        "  View2[23668441 .. 23668445], 5 parts, because Helper[23668441 .. 23668445] changed  "
        "(2015-01-01T10:01 .. 2015-01-01T10:05)\n"
    )
    assert run("impact", "M", "--at", "2015-01-01T10:01:30") == (
        0,
        tree,
        "10 parts at most, if M[23668441] changed; a part that turns out the same ends its chain\n",
    )
    code, out, _ = run("impact", "Helper", "--at", "2015-01-01T10:04", "--until", "2015-01-01T10:06")
    assert out == (
        "View2[23668444]  2015-01-01T10:04  UPDATE  because Helper[23668444 .. 23668445] changed\n"
        "View2[23668445]  2015-01-01T10:05  UPDATE  because Helper[23668444 .. 23668445] changed\n"
    )
    assert run("impact", "View2", "--at", "2015-01-01T10:04") == (0, "", "Nothing reads View2[23668444]\n")
    assert run("impact", "M", "--at", "2015-01-01T10:04", "--until", "2015-01-01T10:04")[::2] == (
        1,
        "until must be later than at: 2015-01-01T10:04 is not later than 2015-01-01T10:04.\n",
    )
    assert run("impact", "M")[0] == 2

    late = tmp_path / "late.csv"
    late.write_text("ts,loss\n2015-01-01 10:01:06,5\n2014-12-29 10:01:06,7\n")
    err = run("load", "M", str(late), "--batch-id", "late")[2]
    assert err.startswith(
        "1 rows into M, 1 of 1 parts changed, 1 rows set aside in M_quarantine, late rows: 1 taken, 1 set aside (batch late"
    )
    out = run("status", "M")[1]
    assert "M: late rows: 1 taken, 1 set aside (LATE ROWS QUARANTINE AFTER '2 days')" in out
    # The plan of a refresh says what the impact said.
    out = run("refresh", "--dry-run")[1]
    assert out == tree.replace("because M[23668441] changed", "because late data in M[23668441]")

    late.write_text("ts,loss\n2015-01-01 10:06:06,5\n2015-01-01 10:02:36,7\n")
    err = run("load", "M", str(late), "--from", "2015-01-01T10:06", "--to", "2015-01-01T10:07")[2]
    # The late row's part is not one that the batch covers.
    assert err.startswith("2 rows into M, 2 of 2 parts changed, late rows: 1 taken (batch ")

    changed = tmp_path / "changed.sql"
    changed.write_text(SCRIPT.replace("total > 3", "total > 2"))
    code, out, err = run("apply", str(changed), "--dry-run")
    assert (code, out) == (
        0,
        "View2: changed\n"
        "View2[23668440 .. 23668445], 6 parts, because definition changed  (2015-01-01T10:00 .. 2015-01-01T10:05)\n",
    )
    assert err == (
        "View2: has parts, so a choice is needed; this is what --restate would do. With --restate --from TIME only parts "
        "from then on, with --forward-only none become stale.\n"
    )
    assert run("apply", str(changed))[0] == 1
    assert run("apply", str(changed), "--dry-run", "--forward-only")[1:] == (
        "View2: changed\n",
        "No part becomes stale.\n",
    )
    code, _, err = run("apply", str(changed), "--restate", "--from", "2015-01-01T10:04")
    assert (code, err.splitlines()[0]) == (
        0,
        "stale: View2[23668444 .. 23668445], 2 parts, because definition changed  (2015-01-01T10:04 .. 2015-01-01T10:05)",
    )
    assert run("apply", str(changed), "--restate", "--forward-only")[0] == 2
    assert run("apply", str(changed), "--from", "2015-01-01")[0] == 2
