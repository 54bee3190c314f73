"""Where parts lie: `<warehouse>/<table>/<index>/<version>/*.parquet`, on any file system that fsspec reaches.

A *location* is a path relative to the warehouse, with `/` between its names. Spark writes and reads the
files; moving, listing and deleting them is done here, without Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import fsspec

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.locations import has_password

STAGING = ".staging"
ROLLED = "rolled"

# Hadoop's names for file systems, where fsspec has another one.
_FSSPEC_PROTOCOLS = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfs", "viewfs": "hdfs"}

# Where Hadoop's committer has tasks write, until it moves their files up and removes it.
_COMMITTERS_DIRECTORY = ("_temporary", "0", "_temporary")

_PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_INDEX = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class FoundDirectory:
    """A directory of files below the warehouse, and when it last changed."""

    location: str
    modified_at: datetime


class PartFiles:
    """The files of one warehouse, given as a path or a URL."""

    def __init__(self, warehouse: str) -> None:
        self.root = resolve_root(warehouse)
        self._filesystem: fsspec.AbstractFileSystem
        self._filesystem, path = fsspec.core.url_to_fs(name_for_fsspec(self.root))
        self._path = path.rstrip("/")

    @property
    def filesystem(self) -> fsspec.AbstractFileSystem:
        return self._filesystem

    @property
    def is_there(self) -> bool:
        """Whether there is a warehouse at all: not, if its disk is not mounted."""
        self._filesystem.invalidate_cache()
        return bool(self._filesystem.exists(self._path or "/"))

    def url(self, location: str) -> str:
        """A location as Spark is told it."""
        return f"{self.root}/{check_location(location)}"

    def path(self, location: str) -> str:
        """A location as `filesystem` is told it."""
        return f"{self._path}/{check_location(location)}"

    def resolve(self, location: str) -> str:
        """What a person wrote as the place of a file: a URL, an absolute path, or a path below the warehouse."""
        if self.is_inside(location):
            return self.url(location.removeprefix("./"))
        if _PROTOCOL.match(location) or location.startswith("file:"):
            return resolve_root(location)
        return f"file://{location}"

    @staticmethod
    def is_inside(location: str) -> bool:
        """Whether what a person wrote as the place of a file is a path below the warehouse."""
        return not (_PROTOCOL.match(location) or location.startswith(("/", "file:")))

    def exists(self, location: str) -> bool:
        self._filesystem.invalidate_cache()
        return bool(self._filesystem.exists(self.path(location)))

    def has_files(self, location: str) -> bool:
        """Whether there are Parquet files at a location. Asked of a local disk only: others have no empty directories."""
        if not self._is_local:
            return True
        try:
            return any(name.endswith(".parquet") for name in os.listdir(self.path(location)))
        except OSError:
            return False

    def make_dirs(self, location: str) -> None:
        self._filesystem.makedirs(self.path(location), exist_ok=True)

    def make_room(self, location: str) -> None:
        """Make the directories that Spark is going to write in. On a local disk it starts a chmod process for each that it makes."""
        names = check_location(location).split("/")
        if self._is_local and os.path.isdir(self._path):
            mode = os.stat(self._path).st_mode & 0o7777
            path = self._path
            for name in (*names, *_COMMITTERS_DIRECTORY):
                path = f"{path}/{name}"
                with suppress(FileExistsError):
                    os.mkdir(path)
                    os.chmod(path, mode)  # whoever may write into the warehouse may write here, Spark's user for one

    def move(self, from_location: str, to_location: str) -> None:
        """Rename a directory. On a file system without directories, each of its files is copied, then deleted."""
        source, target = self.path(from_location), self.path(to_location)
        if self._is_local:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(source, target)
            return
        self._filesystem.makedirs(os.path.dirname(target), exist_ok=True)
        self._filesystem.mv(source, target, recursive=True)
        self._filesystem.invalidate_cache()

    def delete(self, location: str) -> None:
        """Remove a file, or a directory with all that is in it. What is not there counts as removed."""
        try:
            self._filesystem.rm(self.path(location), recursive=True)
        except FileNotFoundError:
            pass
        self._filesystem.invalidate_cache()

    def discard(self, location: str) -> None:
        """Remove a directory that someone may be reading: on a local disk, all of it at once.

        Whoever lists it meanwhile must not find some of its files.
        """
        if self._is_local and os.path.isdir(self.path(location)):
            aside = f"{STAGING}/discarded-{uuid4().hex}"
            self.move(location, aside)
            self.delete(aside)
            self.delete_empty_directories(aside)
        else:
            self.delete(location)

    def list_version_directories(self) -> Iterator[FoundDirectory]:
        """Every `<table>/<index>/<version>` and every `<table>/rolled/<span>`, whether the catalog knows it or not."""
        self._filesystem.invalidate_cache()
        for table in self._list_directories(self._path):
            if _name(table).startswith("."):
                continue
            for index in self._list_directories(table["name"]):
                if _INDEX.fullmatch(_name(index)) or _name(index) == ROLLED:
                    yield from map(self._describe, self._list_directories(index["name"]))

    def list_staging_directories(self) -> Iterator[FoundDirectory]:
        """Every directory of rows on their way into the warehouse, or left behind on that way."""
        self._filesystem.invalidate_cache()
        for directory in self._list_directories(self._path):
            if _name(directory) == STAGING:
                yield from map(self._describe, self._list_directories(directory["name"]))

    def delete_empty_directories(self, location: str) -> None:
        """Remove the directories above a location that have nothing in them, up to the warehouse itself."""
        names = check_location(location).split("/")[:-1]
        while names:
            path = self.path("/".join(names))
            try:
                if self._filesystem.ls(path, detail=False):
                    return
                self._filesystem.rmdir(path)
            except (OSError, NotImplementedError):
                return  # somebody writes there, or the file system has no directories
            names.pop()

    @property
    def _is_local(self) -> bool:
        protocol = self._filesystem.protocol
        return "file" in ((protocol,) if isinstance(protocol, str) else protocol)

    def _list_directories(self, path: str) -> list[dict[str, Any]]:
        try:
            entries = self._filesystem.ls(path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        # Not through a link: it may lead out of the warehouse, and what lies there is not ours to delete.
        return [entry for entry in entries if entry["type"] == "directory" and _name(entry) and not entry.get("islink")]

    def _describe(self, directory: dict[str, Any]) -> FoundDirectory:
        path = str(directory["name"]).rstrip("/")
        location = path[len(self._path) :].lstrip("/")
        return FoundDirectory(location, self._find_modified_time(path, directory))

    def _find_modified_time(self, path: str, directory: dict[str, Any]) -> datetime:
        """Of the directory or of the newest file in it: a store without directories knows only the latter."""
        try:
            files = self._filesystem.find(path, detail=True).values()
        except FileNotFoundError:
            files = []
        times = [time for entry in (directory, *files) if (time := read_modified_time(entry)) is not None]
        # Without any time it may be brand-new: better kept too long than deleted under a writer.
        return max(times) if times else datetime.now(UTC)


def name_for_fsspec(url: str) -> str:
    """A URL that Spark understands, as fsspec understands it."""
    protocol, separator, rest = url.partition("://")
    return f"{_FSSPEC_PROTOCOLS.get(protocol, protocol)}{separator}{rest}"


def resolve_root(warehouse: str) -> str:
    """A directory as Spark is told it: always with its protocol, so that no default file system takes it elsewhere."""
    text = os.fspath(warehouse)
    if has_password(text):
        raise UsageError(
            "The URL of a warehouse is shown in messages, so no password can be in it; give it where Spark and fsspec look for it."
        )
    match = _PROTOCOL.match(text)
    if match is None and not text.startswith("file:"):
        return f"file://{os.path.abspath(text)}".rstrip("/")
    if text.startswith("file:"):
        return f"file:///{text.removeprefix('file:').lstrip('/')}".rstrip("/")
    return text.rstrip("/")


def check_location(location: str) -> str:
    """The location, if it stays inside the warehouse."""
    names = location.split("/")
    if not location or any(name in ("", ".", "..") for name in names) or "\\" in location or "\0" in location:
        raise UsageError(f"{location!r} does not lie inside the warehouse; give a relative path without '..'.")
    return location


def _name(entry: dict[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


def read_modified_time(entry: Mapping[str, Any]) -> datetime | None:
    for key in ("mtime", "LastModified", "last_modified", "modified", "updated", "created"):
        value = entry.get(key)
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
    return None
