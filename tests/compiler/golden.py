"""Golden cases: one file each. Above, what is defined and asked; below, the Spark SQL and what it reads.

<definitions>
--- part Helper[23667845] by update          (or: --- query, and the query)
--- gives
<Spark SQL>
--- reads
M_23667845 = M[23667845]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_viewdf.compiler import CompiledPart, CompiledQuery, compile_part, compile_query
from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet

CASES = sorted((Path(__file__).parent / "cases").glob("*.sql"))

# 2015-01-01 00:00 to 00:10; and the two hours before 02:00.
EXISTING = {60: PartSet.between(23667840, 23667850), 3600: PartSet.between(394464, 394465)}

_PART = re.compile(r"part (\w+)\[(-?\d+)\] by (initialize|update)")


@dataclass(frozen=True)
class Case:
    definitions: dict[str, Definition]
    asked: str
    query: str
    sql: str
    reads: list[str]

    @classmethod
    def read(cls, path: Path) -> Case:
        script, *sections = re.split(r"^--- (.*)\n", path.read_text(), flags=re.MULTILINE)
        texts = dict(zip(sections[::2], sections[1::2]))
        asked = sections[0]
        definitions = {fold(item.name): item for item in parse_script(script)}
        return cls(definitions, asked, texts[asked].strip(), texts["gives"].strip(), texts["reads"].splitlines())

    def compile(self) -> CompiledPart | CompiledQuery:
        match = _PART.fullmatch(self.asked)
        if match is None:
            assert self.asked == "query"
            return compile_query(self.query, self.definitions, self.existing, "_q")
        name, index, rule_name = match.groups()
        rule: Rule = "initialize" if rule_name == "initialize" else "update"
        return compile_part(self.definitions[fold(name)], rule, int(index), self.definitions)

    def existing(self, table: str) -> PartSet:
        return EXISTING[self.definitions[fold(table)].length_seconds]


def describe_reads(compiled: CompiledPart | CompiledQuery) -> list[str]:
    lines = []
    for item in compiled.inputs:
        what = (
            f"{item.table}[{item.parts}]" if not getattr(item, "is_quarantine", False) else f"{item.table}, quarantine"
        )
        lines.append(f"{item.name} = {what}" + (" with PART" if item.has_part_column else ""))
    for dimension in compiled.dimensions:
        name, table = (dimension, dimension) if isinstance(dimension, str) else dimension
        lines.append(f"{name} = {table}, dimension")
    return lines
