"""The files of external parts: where they lie, which there are, and whether a part is complete. Without Spark.

Nothing in here writes or deletes: the files belong to somebody else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import fsspec

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.engine.part_files import PartFiles, name_for_fsspec, read_modified_time
from airflow_provider_viewdf.errors import ExternalFilesError
from airflow_provider_viewdf.locations import LocationTemplate
from airflow_provider_viewdf.versions import ContentDigest, PartFile

# What writers of Hadoop's kind call a file that is on its way.
_COPYING = "._COPYING_"

_ETAGS = ("ETag", "etag", "e_tag")


@dataclass(frozen=True, slots=True)
class FoundPart:
    """What there is of an external part. `is_complete`: it can be read as it is, by the rule of its stream."""

    directory: str
    files: tuple[PartFile, ...]
    is_complete: bool

    @property
    def digest(self) -> ContentDigest:
        return digest_files(self.files)


class ExternalFiles:
    """The files of one external stream."""

    def __init__(self, definition: Definition, warehouse: PartFiles) -> None:
        self._definition = definition
        self.template = resolve_template(definition, warehouse)
        url = name_for_fsspec(self.directory_of(0))
        self._filesystem: fsspec.AbstractFileSystem
        try:
            self._filesystem, _ = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            # fsspec says which package is missing, or that there is no such protocol.
            raise ExternalFilesError(f"The files of {definition.name} cannot be reached: {_sentence(error)}") from None

    def directory_of(self, index: int) -> str:
        """The directory of a part, as Spark is told it."""
        return self.template.directory_at(self._definition.partitioning.start_of(index))

    def forget_listings(self) -> None:
        """Some file systems remember what they listed: a new look wants to see what is there now."""
        self._filesystem.invalidate_cache()

    def find(self, index: int, now: datetime) -> FoundPart:
        """What there is of a part at a time."""
        directory = self.directory_of(index)
        entries = self._list(directory)
        marker = self._definition.complete_when
        files = tuple(
            PartFile(name, int(entry.get("size") or 0), _read_mark(entry))
            for name, entry in sorted(entries.items())
            if name != marker and not _is_hidden(name)
        )
        return FoundPart(directory, files, self._is_complete(index, now, has_marker=marker in entries, files=files))

    def open(self, part: FoundPart, file: PartFile) -> Any:
        """A file of a part, for reading its bytes."""
        return self._filesystem.open(name_for_fsspec(f"{part.directory}/{file.name}"), "rb")

    def _is_complete(self, index: int, now: datetime, *, has_marker: bool, files: tuple[PartFile, ...]) -> bool:
        definition = self._definition
        if definition.complete_when:
            return has_marker
        if definition.complete_after_seconds is not None:
            wait = timedelta(seconds=definition.complete_after_seconds)
            return now >= definition.partitioning.end_of(index) + wait
        return bool(files)

    def _list(self, directory: str) -> Mapping[str, dict[str, Any]]:
        """Every file below a directory, by its name from there on; none if it is not there."""
        path = str(self._filesystem._strip_protocol(name_for_fsspec(directory))).rstrip("/")
        try:
            return dict(self._walk(path, path))
        except ExternalFilesError:
            raise ExternalFilesError(
                f"{directory} is a file; the LOCATION of {self._definition.name} names the directory of a part's files."
            ) from None
        except Exception as error:
            # What object stores throw has no common class; whatever it is, there is no list of files.
            raise ExternalFilesError(
                f"The files of {self._definition.name} at {directory} cannot be listed: {_sentence(error)}"
            ) from error

    def _walk(self, path: str, top: str) -> Iterator[tuple[str, dict[str, Any]]]:
        # Not fsspec's find, which takes a directory that may not be read for an empty one.
        try:
            entries = self._filesystem.ls(path, detail=True)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise ExternalFilesError from None
        for entry in entries:
            name = str(entry["name"])
            relative = name.rstrip("/")[len(top) :].lstrip("/")
            if name.rstrip("/") == path:
                if entry.get("type") == "file" and not name.endswith("/") and (path == top and entry.get("size")):
                    raise ExternalFilesError
                continue  # a store without directories marks one by an empty object
            if entry.get("type") != "directory":
                yield relative, entry
            elif not _is_hidden(relative):
                yield from self._walk(name.rstrip("/"), top)


def resolve_template(definition: Definition, warehouse: PartFiles) -> LocationTemplate:
    """The directories of an external stream's parts, as Spark is told them."""
    text = definition.location.rstrip("/")
    if warehouse.is_inside(text):
        return LocationTemplate.parse(text.removeprefix("./")).below(f"{warehouse.root}/")
    return LocationTemplate.parse(warehouse.resolve(text))


def digest_files(files: tuple[PartFile, ...]) -> ContentDigest:
    """The digest of a list of files, which stands for that of their rows. No files, no rows: as for any empty part."""
    if not files:
        return ContentDigest()
    text = "\n".join(f"{item.name!r} {item.size} {item.mark}" for item in files)
    content = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
    return ContentDigest(0, int.from_bytes(content[:8], "big"), int.from_bytes(content[8:16], "big"))


def _is_hidden(name: str) -> bool:
    """Whether a file, or a directory on the way to it, is one that Spark passes over too."""
    return any(item.startswith(("_", ".")) for item in name.split("/")) or name.endswith(_COPYING)


def _read_mark(entry: Mapping[str, Any]) -> str:
    """What changes when a file is replaced: the etag where there are such, else the time of its last modification."""
    for key in _ETAGS:
        if entry.get(key):
            return str(entry[key]).strip('"')
    time = read_modified_time(entry)
    return "" if time is None else time.isoformat()


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text[-1] in ".!?" else f"{text}."
