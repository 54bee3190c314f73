"""Golden cases of translated windows: above what is defined, below the script that it becomes, and what explain says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.language.script import expand_queries

CASES = sorted((Path(__file__).parent / "cases").glob("window_*.sql"))


@dataclass(frozen=True)
class Case:
    script: str
    becomes: str
    notes: str

    @classmethod
    def read(cls, path: Path) -> Case:
        script, becomes, notes = re.split(r"^--- .*\n", path.read_text(), flags=re.MULTILINE)
        return cls(script.strip(), becomes.strip(), notes.strip())


def translate(script: str) -> tuple[str, str]:
    """The statements that were generated, without the streams around them, and the notes."""
    text = expand_queries(script)
    assert text is not None
    generated = [item.strip() for item in text.split(";\n") if "CREATE STREAM" not in item]
    notes = [note for item in parse_script(script) if item.translation for note in item.translation.notes]
    return ";\n\n".join(generated).removesuffix(";"), "\n".join(notes)
