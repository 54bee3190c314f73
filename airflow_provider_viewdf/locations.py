"""Where the files of an external stream lie: a LOCATION with date patterns in braces, and the directory of each part.

`s3a://lake/events/dt={yyyy-MM-dd}/h={HH}` names one directory for each part, by the start of the part in UTC. Every pattern
has a fixed width, so the directories of all parts are equally long and a date can be read back from its place in a path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.parts import EPOCH, format_length

# From coarse to fine: how long each is at most, and how it is written.
_LENGTHS = {"yyyy": 366 * 86400, "MM": 31 * 86400, "dd": 86400, "HH": 3600, "mm": 60, "ss": 1}
_FORMATS = {"yyyy": "{0.year:04d}", "MM": "{0.month:02d}", "dd": "{0.day:02d}"} | {
    "HH": "{0.hour:02d}",
    "mm": "{0.minute:02d}",
    "ss": "{0.second:02d}",
}
_PATTERN = re.compile("|".join(_LENGTHS))
_WORD = re.compile(r"([A-Za-z])\1*|[^A-Za-z]")
_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/@]*:[^/]*@")


# What Spark would fetch from anywhere, in the name of whoever runs it.
_FOREIGN = ("http:", "https:", "ftp:", "jar:", "data:")


def find_fault(location: str) -> str:
    """What is wrong with the place of a table's files, as a sentence; "" if nothing is."""
    if not location.strip() or any(ord(character) < 32 or ord(character) == 127 for character in location):
        return "A LOCATION is a path or a URL, without control characters."
    if ".." in re.split(r"[/\\:]", location):
        return "A LOCATION says where the files are without '..'; write the directory that you mean."
    if location.lower().startswith(_FOREIGN):
        return "Files are read from a file system or an object store, such as s3a://, not from the web; put them there."
    if has_password(location):
        return (
            "A LOCATION is stored and shown, so no password can be in it; give it where Spark and fsspec look for it."
        )
    return ""


def has_password(location: str) -> bool:
    """Whether a URL says a password, as in s3a://key:secret@bucket."""
    return _PASSWORD.match(location) is not None


@dataclass(frozen=True, slots=True)
class DateField:
    """A date pattern, and where its digits stand in the directory of a part."""

    pattern: str
    offset: int


@dataclass(frozen=True, slots=True)
class LocationTemplate:
    """A LOCATION, taken apart: `pieces` are texts and date patterns, the latter marked by True."""

    pieces: tuple[tuple[str, bool], ...]

    @classmethod
    def parse(cls, text: str) -> LocationTemplate:
        pieces: list[tuple[str, bool]] = []
        position, opened = 0, -1
        while position < len(text):
            character = text[position]
            if opened < 0 and character == "}":
                raise LanguageError("This } closes no {.", start=position, end=position + 1)
            if opened < 0 and character != "{":
                pieces.append((character, False))
                position += 1
            elif opened < 0:
                opened = position
                position += 1
            elif character == "}":
                if position == opened + 1:
                    raise LanguageError(
                        "The braces are empty; write a date pattern in them, like {yyyy-MM-dd}.",
                        start=opened,
                        end=position + 1,
                    )
                opened = -1
                position += 1
            elif character == "{":
                raise LanguageError("This { stands inside of another one.", start=position, end=position + 1)
            else:
                position = _read_pattern(text, position, pieces)
        if opened >= 0:
            raise LanguageError("This { is not closed.", start=opened, end=opened + 1)
        return cls(_join(pieces))

    @property
    def patterns(self) -> set[str]:
        return {text for text, is_pattern in self.pieces if is_pattern}

    def check(self, length_seconds: int) -> None:
        """Refuse a template that gives two parts of this length the same directory, or that could leave the warehouse."""
        patterns = self.patterns
        needed = [name for name in _LENGTHS if _is_needed(name, length_seconds)]
        lacking = [name for name in needed if name not in patterns]
        if lacking:
            raise LanguageError(
                f"The LOCATION does not tell all parts of {format_length(length_seconds)} apart: it lacks "
                f"{' and '.join(f'{{{name}}}' for name in lacking)}; parts of that length need "
                f"{', '.join(f'{{{name}}}' for name in needed)}."
            )
        text = self.directory_at(EPOCH)
        if not _PROTOCOL.match(text) and not text.startswith("/"):
            names = text.removeprefix("./").rstrip("/").split("/")
            if any(name in ("", ".", "..") for name in names) or "\\" in text:
                raise LanguageError("A relative LOCATION lies in the warehouse; write it without '..', '//' and '\\'.")

    def directory_at(self, start: datetime) -> str:
        """The directory of the part that begins at a time."""
        time = start.astimezone(UTC)
        return "".join(_FORMATS[text].format(time) if is_pattern else text for text, is_pattern in self.pieces)

    def below(self, prefix: str) -> LocationTemplate:
        """The same directories below another one, in which braces are no patterns."""
        return LocationTemplate(_join([(prefix, False), *self.pieces]))

    @property
    def fields(self) -> tuple[DateField, ...]:
        """Where each pattern stands for the first time."""
        found: dict[str, DateField] = {}
        offset = 0
        for text, is_pattern in self.pieces:
            if is_pattern:
                found.setdefault(text, DateField(text, offset))
            offset += len(text)
        return tuple(found.values())

    def meets(self, names: Sequence[str]) -> bool:
        """Whether a path, given as its names, is the directory of a part, lies in one, or lies above one."""
        pattern = "".join(rf"[0-9]{{{len(text)}}}" if is_date else re.escape(text) for text, is_date in self.pieces)
        expected = pattern.strip("/").split("/")
        return all(re.fullmatch(mine, name) for mine, name in zip(expected, names, strict=False))


def _read_pattern(text: str, position: int, pieces: list[tuple[str, bool]]) -> int:
    """Take one word or one other character from inside of braces: the position behind it."""
    match = _PATTERN.match(text, position)
    word = _WORD.match(text, position)
    assert word is not None
    if not word.group(1):
        pieces.append((word.group(), False))
        return word.end()
    if match is None or match.end() != word.end():
        hint = _HINTS.get(word.group()[0], "")
        raise LanguageError(
            f"{word.group()} is no date pattern; there are yyyy, MM, dd, HH, mm and ss{hint}.",
            start=position,
            end=word.end(),
        )
    pieces.append((match.group(), True))
    return match.end()


_HINTS = {
    "Y": ", and the year is yyyy",
    "y": ", and the year is yyyy",
    "D": ", and the day is dd",
    "d": ", and the day is dd",
    "h": ", and the hour is HH",
    "H": ", and the hour is HH",
    "M": ", and the month is MM",
    "m": ", and the minute is mm",
    "S": ", and the second is ss",
    "s": ", and the second is ss",
}


def _join(pieces: Sequence[tuple[str, bool]]) -> tuple[tuple[str, bool], ...]:
    joined: list[tuple[str, bool]] = []
    for text, is_pattern in pieces:
        if joined and not is_pattern and not joined[-1][1]:
            joined[-1] = (joined[-1][0] + text, False)
        else:
            joined.append((text, is_pattern))
    return tuple(joined)


def _is_needed(pattern: str, length_seconds: int) -> bool:
    """Whether two parts of a length can begin within one of the next coarser unit, so that this one has to tell them apart."""
    names = list(_LENGTHS)
    position = names.index(pattern)
    return position == 0 or length_seconds < _LENGTHS[names[position - 1]]
