"""Golden cases of pattern queries: one file each. Above, the script; below, what it becomes, and how it is explained.

After a change that is meant, write them anew: VIEWDF_WRITE_GOLDEN=1 pytest tests/translate, and read the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from airflow_provider_viewdf.language import expand_queries, parse_script

CASES = sorted((Path(__file__).parent / "pattern_cases").glob("*.sql"))


def read_case(path: Path) -> tuple[str, dict[str, str]]:
    script, *sections = re.split(r"^--- (.*)\n", path.read_text(), flags=re.MULTILINE)
    return script, dict(zip(sections[::2], sections[1::2]))


def translate(script: str) -> dict[str, str]:
    expanded = expand_queries(script)
    assert expanded is not None
    view = next(item for item in parse_script(script) if item.translation is not None)
    assert view.translation is not None
    return {
        "gives": expanded.strip() + "\n",
        "notes": "\n".join(view.translation.notes) + "\n",
        "diagram": view.translation.diagram + "\n",
    }


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_pattern_query_becomes_the_views_of_the_golden_file(path: Path) -> None:
    script, expected = read_case(path)
    found = translate(script)
    if os.environ.get("VIEWDF_WRITE_GOLDEN"):
        path.write_text(script + "".join(f"--- {name}\n{text}" for name, text in found.items()))
        return
    assert found == expected


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_a_pattern_query_becomes_is_a_script_that_means_the_same(path: Path) -> None:
    script, expected = read_case(path)
    written = {item.name: item.digest for item in parse_script(script)}
    assert {item.name: item.digest for item in parse_script(expected["gives"])} == written


def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 7
