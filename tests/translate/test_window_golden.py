"""Every golden case of a window, and that what comes out can be applied by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from window_golden import CASES, Case, translate

from airflow_provider_viewdf.language import parse_script


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_a_window_becomes_what_its_file_says(path: Path) -> None:
    case = Case.read(path)
    assert translate(case.script) == (case.becomes, case.notes)


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_what_a_window_becomes_means_the_same_when_it_is_written_by_hand(path: Path) -> None:
    case = Case.read(path)
    streams = ";".join(item for item in case.script.split(";") if "CREATE STREAM" in item)
    by_hand = {item.name: item.digest for item in parse_script(f"{streams};\n{case.becomes}")}
    assert {item.name: item.digest for item in parse_script(case.script)} == by_hand
