"""The digest of what a part version was made from: which version of every input part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.versions import InputRange


def parts_of_inputs(ranges: Sequence[InputRange]) -> dict[str, PartSet]:
    """The input parts of each table, each once, by folded name and in its order."""
    by_table: dict[str, list[PartRange]] = {}
    for item in ranges:
        by_table.setdefault(fold(item.table), []).append(PartRange(item.low, item.high))
    return {key: PartSet.of(by_table[key]) for key in sorted(by_table)}


def digest_inputs(versions: Iterable[tuple[str, int, int]]) -> str:
    """The digest of folded table, index and version of every input part, in this order."""
    digest = hashlib.sha256()
    for table, index, version in versions:
        digest.update(f"{table} {index} {version}\n".encode())
    return digest.hexdigest()
