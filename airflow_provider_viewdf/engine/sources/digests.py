"""What a source is called, and a digest of what it holds."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sized
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

from airflow_provider_viewdf.engine.sources.files import Source, SourceFile, find_files, given_paths, hide_secrets
from airflow_provider_viewdf.errors import LoadError
from airflow_provider_viewdf.parts import unix_microseconds

_NAMED = 5
_CHUNK_BYTES = 2**20


def describe_source(source: Source) -> str:
    """A source in a few words, for the record of its batch."""
    paths = given_paths(source)
    if paths is None:
        if not isinstance(source, Sized):
            return "rows"
        return f"{len(source)} {'row' if len(source) == 1 else 'rows'}"
    named = ", ".join(hide_secrets(path) for path in paths[:_NAMED])
    return named if len(paths) <= _NAMED else f"{named} and {len(paths) - _NAMED} more"


def digest_source(source: Source) -> str:
    """A SHA-256 of a source's content: of the bytes of its files, whatever they are called, or of its rows."""
    paths = given_paths(source)
    if paths is not None:
        digests = [_digest_file(file) for file in find_files(paths)]
        return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
    if isinstance(source, Iterator):
        raise LoadError(
            "Rows that can be read only once have no digest to name the batch by; give a list, or a batch id."
        )
    digest = hashlib.sha256()
    for row in cast(Iterable[object], source):
        digest.update(_canonical_json(row).encode(errors="surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()


def _digest_file(file: SourceFile) -> str:
    digest = hashlib.sha256()
    with file.open(unzip=False) as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _canonical_json(row: object) -> str:
    return json.dumps(_plain(row), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON has it. What JSON does not have is an object that no plain value is equal to."""
    if value is None or isinstance(value, (str, bool)) or type(value) in (int, float):
        return value
    if isinstance(value, Mapping):
        return {f"{type(key).__name__[0]}{key}": _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return {"time": unix_microseconds(value)}
    if isinstance(value, (date, datetime)):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    return {"other": repr(value)}
