"""Which files a source names, and how each of them is read."""

from __future__ import annotations

import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, cast

import fsspec
from fsspec.core import url_to_fs

from airflow_provider_viewdf.errors import LoadError

Kind = Literal["csv", "json", "parquet"]
Path = str | os.PathLike[str]
Source = Path | Sequence[Path] | Iterable[Mapping[str, Any]]

KINDS: dict[str, Kind] = {".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet"}

_SUFFIX = re.compile(r"(\.[^./\\]*?)(\.gz)?$", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)[^/@]*@")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to be read. `name` is what messages call it: as it was given, without secrets."""

    name: str
    path: str
    filesystem: fsspec.AbstractFileSystem
    kind: Kind
    is_zipped: bool

    @contextmanager
    def open(self, *, unzip: bool = True) -> Iterator[BinaryIO]:
        """The file's bytes. Whatever goes wrong in reading them is a LoadError."""
        try:
            with self.filesystem.open(self.path, "rb") as handle:
                if self.is_zipped and unzip:
                    with gzip.GzipFile(fileobj=handle) as unzipped:
                        yield cast(BinaryIO, unzipped)
                else:
                    yield cast(BinaryIO, handle)
        except (OSError, EOFError, zlib.error) as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise  # the rows could not be written, which is no fault of the file
            lines = str(error).splitlines() or [type(error).__name__]
            raise LoadError(f"{self.name} cannot be read: {lines[0].rstrip('. ')}.") from error


def given_paths(source: object) -> tuple[str, ...] | None:
    """The paths of a source, or None if it is rows."""
    if isinstance(source, (str, os.PathLike)):
        return (os.fspath(source),)
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], (str, os.PathLike)):
        for item in source:
            if not isinstance(item, (str, os.PathLike)):
                raise LoadError(f"The source lists paths and, among them, {item!r}; give either paths or rows.")
        return tuple(os.fspath(item) for item in source)
    if isinstance(source, (Mapping, bytes, bytearray)) or not isinstance(source, Iterable):
        raise LoadError(
            f"A source of type {type(source).__name__} cannot be loaded; "
            "give a path, a list of paths or a list of dicts."
        )
    return None


def find_files(paths: tuple[str, ...]) -> list[SourceFile]:
    """The files that paths, URLs, patterns and directories name; LoadError if one of them names none."""
    return [file for path in paths for file in _find(path)]


def hide_secrets(path: str) -> str:
    """A path or URL for people to read: no user, password or signature in it."""
    if path.lower().startswith(("http://", "https://")):
        path = path.split("?")[0]
    return _SECRET.sub("", path)


def _find(given: str) -> list[SourceFile]:
    name = hide_secrets(given)
    try:
        filesystem, path = url_to_fs(given)
    except (ImportError, ValueError) as error:
        raise LoadError(f"{name} cannot be opened: {str(error).rstrip('.')}.") from None
    try:
        if filesystem.isdir(path):
            found = _files_in_directory(given, path, filesystem)
            if not found:
                raise LoadError(f"The directory {name} has no files to load.")
            return found
        # A file may have a name that looks like a pattern.
        if filesystem.exists(path):
            return [_as_file(name, path, filesystem)]
        if not any(character in given for character in "*?["):
            raise LoadError(f"{name} does not exist.")
        matches = sorted(str(match) for match in filesystem.glob(path))
    except OSError as error:
        raise LoadError(f"{name} cannot be read: {str(error).rstrip('.') or type(error).__name__}.") from error
    found = []
    for match in matches:
        if filesystem.isdir(match):
            found += _files_in_directory(_as_given(given, match, filesystem), match, filesystem)
        else:
            found.append(_as_file(_as_given(given, match, filesystem), match, filesystem))
    if not found:
        raise LoadError(f"No file matches {name}.")
    return found


def _files_in_directory(given: str, path: str, filesystem: fsspec.AbstractFileSystem) -> list[SourceFile]:
    root = path.rstrip("/")
    found = []
    for inner in sorted(str(item) for item in filesystem.find(path)):
        relative = inner[len(root) :].lstrip("/")
        # Markers and checksums, such as Spark's _SUCCESS and .part-0.crc, are no data.
        if not any(piece.startswith(("_", ".")) for piece in relative.split("/")):
            found.append(_as_file(hide_secrets(f"{given.rstrip('/')}/{relative}"), inner, filesystem))
    return found


def _as_given(given: str, match: str, filesystem: fsspec.AbstractFileSystem) -> str:
    """What a match of a pattern is called: a relative path if the pattern is one, a URL if it is one."""
    if "://" in given:
        return hide_secrets(str(filesystem.unstrip_protocol(match)))
    return match if os.path.isabs(given) else os.path.relpath(match)


def _as_file(name: str, path: str, filesystem: fsspec.AbstractFileSystem) -> SourceFile:
    match = _SUFFIX.search(name)
    kind = KINDS.get(match[1].lower()) if match else None
    is_zipped = bool(match and match[2])
    if kind is None or (kind == "parquet" and is_zipped):
        raise LoadError(
            f"{name} is of no kind that can be loaded; "
            "its name must end in .csv, .jsonl, .ndjson, .json (or one of these with .gz) or .parquet."
        )
    return SourceFile(name, path, filesystem, kind, is_zipped)
