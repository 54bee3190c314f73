"""Time and parts: the only place where a time becomes a subscript, or a subscript a time.

A *part* is a half-open span of Unix time. `Partitioning` converts between times and
subscripts, `PartRange` is a run of subscripts with both ends included, and `PartSet` a sorted
set of such runs. Subscripts are plain integers, also before 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_viewdf.errors import TimeFormatError, UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Far beyond any part that can exist: ends of ranges that have no end.
EARLIEST = -(2**62)
LATEST = 2**62

_UNIT_SECONDS = {
    "second": 1,
    "sec": 1,
    "minute": 60,
    "min": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}

# A century. What is longer is a slip, and would lead beyond the years that a datetime can hold.
LONGEST_SECONDS = 36_525 * 86_400

_LENGTH = re.compile(r"\s*(\d+)\s*([A-Za-z]*)\s*")

_TIME = re.compile(
    r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
    r"(?:[T ]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"\s*(Z|UTC|[+-]\d{2}:?\d{2})?\s*",
    re.IGNORECASE,
)


def parse_time(text: str) -> datetime:
    """A time from text, in UTC unless it says otherwise.

    `2015-01-01T10:04Z`, `2015-01-01 10:04:30.5`, `2015/01/01 0:00` and `2015-01-01` all work.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise TimeFormatError(f"{text!r} is not a time; write it like 2015-01-01T10:04.")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    microsecond = int((fraction or "0").ljust(6, "0")[:6])
    try:
        naive = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            microsecond,
        )
        if zone is None or zone.upper() in ("Z", "UTC"):
            return naive.replace(tzinfo=UTC)
        sign = 1 if zone[0] == "+" else -1
        digits = zone[1:].replace(":", "")
        offset = sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        return (naive - offset).replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise TimeFormatError(f"{text!r} is not a time: {error}.") from None


def as_time(value: datetime | str) -> datetime:
    """A time given as an aware datetime or as text, as an aware datetime in UTC."""
    if isinstance(value, str):
        return parse_time(value)
    if not isinstance(value, datetime):
        raise UsageError(f"{value!r} is not a time; give an aware datetime or a text like 2015-01-01T10:04.")
    if value.tzinfo is None:
        raise UsageError(f"{value!r} has no time zone; give an aware datetime such as {value.replace(tzinfo=UTC)!r}.")
    utc = value.astimezone(UTC)
    # A plain one: Airflow's are pendulum's, which lose their zone when a length is added to them in this one.
    return datetime.combine(utc.date(), utc.time(), UTC)


def format_time(time: datetime) -> str:
    """The shortest ISO form of a time that loses nothing, without the zone, which is always UTC."""
    time = time.astimezone(UTC)
    if time.microsecond:
        return time.strftime("%Y-%m-%dT%H:%M:%S.%f")
    return time.strftime("%Y-%m-%dT%H:%M:%S" if time.second else "%Y-%m-%dT%H:%M")


def unix_microseconds(time: datetime) -> int:
    """Microseconds since 1970, without the rounding of `timestamp()`.

    Works for pendulum's datetimes too, whose subtraction yields their own kind of interval.
    """
    seconds = int(datetime(*time.astimezone(UTC).timetuple()[:6], tzinfo=UTC).timestamp())
    return seconds * 1_000_000 + time.microsecond


def parse_length(text: str) -> int:
    """A length of time such as `60`, `1 hour` or `10 minutes`, in seconds."""
    match = _LENGTH.fullmatch(text)
    unit = match.group(2).lower() if match else ""
    singular = unit[:-1] if unit.endswith("s") and len(unit) > 1 else unit
    if match is None or (unit and singular not in _UNIT_SECONDS):
        raise TimeFormatError(
            f"{text!r} is not a length of time; write whole seconds, or a number with second, minute, hour, day or week."
        )
    count, unit_seconds = match.group(1), _UNIT_SECONDS[singular] if unit else 1
    if len(count) > 15 or int(count) * unit_seconds > LONGEST_SECONDS:
        raise TimeFormatError(
            f"{text!r} is too long a time; the longest is {LONGEST_SECONDS // 86_400} days, a century."
        )
    return int(count) * unit_seconds


def format_length(seconds: int) -> str:
    """A length of time in its largest whole unit: `60` is `1 minute`."""
    for unit in ("week", "day", "hour", "minute", "second"):
        size = _UNIT_SECONDS[unit]
        if seconds % size == 0 and seconds >= size:
            count = seconds // size
            return f"{count} {unit}" + ("s" if count != 1 else "")
    return f"{seconds} seconds"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a table cuts time into parts: here into spans of one length."""

    length_seconds: int

    def __post_init__(self) -> None:
        if self.length_seconds <= 0:
            raise UsageError(f"A partition length must be at least one second, not {self.length_seconds}.")

    def index_at(self, time: datetime) -> int:
        """The subscript of the part that contains a time."""
        return unix_microseconds(time) // (self.length_seconds * 1_000_000)

    def index_from(self, time: datetime) -> int:
        """The subscript of the first part that begins at or after a time."""
        return -(-unix_microseconds(time) // (self.length_seconds * 1_000_000))

    def start_of(self, index: int) -> datetime:
        return EPOCH + timedelta(seconds=index * self.length_seconds)

    def end_of(self, index: int) -> datetime:
        return self.start_of(index + 1)

    def start_seconds(self, index: int) -> int:
        return index * self.length_seconds

    def end_seconds(self, index: int) -> int:
        return (index + 1) * self.length_seconds

    def parts_within(self, start: datetime, end: datetime) -> PartRange | None:
        """The parts that overlap [start, end), or None if that span is empty."""
        if end <= start:
            return None
        last = -(-unix_microseconds(end) // (self.length_seconds * 1_000_000)) - 1
        return PartRange(self.index_at(start), last)

    def parts_ending_within(self, start: datetime, end: datetime) -> PartRange | None:
        """The parts whose end lies in (start, end], or None if there is none."""
        first, last = self.index_at(start), self.index_at(end) - 1
        return PartRange(first, last) if first <= last else None

    def format(self, index: int) -> str:
        """A part as a date: `2015-01-01T10:04`."""
        try:
            return format_time(self.start_of(index))
        except OverflowError:
            return f"part {index}"


@dataclass(frozen=True, order=True, slots=True)
class Part:
    """The half-open span [index * length, (index + 1) * length) of Unix time, in seconds."""

    index: int
    length_seconds: int

    @property
    def start(self) -> datetime:
        return Partitioning(self.length_seconds).start_of(self.index)

    @property
    def end(self) -> datetime:
        return Partitioning(self.length_seconds).end_of(self.index)

    def __str__(self) -> str:
        return Partitioning(self.length_seconds).format(self.index)


@dataclass(frozen=True, order=True, slots=True)
class PartRange:
    """The subscripts low to high, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise UsageError(f"The range {self.low} .. {self.high} runs backwards.")

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return self.high - self.low + 1

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.low <= index <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} .. {self.high}"


@dataclass(frozen=True, slots=True)
class PartSet:
    """A set of subscripts, kept as sorted ranges that neither overlap nor touch."""

    ranges: tuple[PartRange, ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[PartRange]) -> PartSet:
        merged: list[PartRange] = []
        for item in sorted(ranges):
            if merged and item.low <= merged[-1].high + 1:
                merged[-1] = PartRange(merged[-1].low, max(merged[-1].high, item.high))
            else:
                merged.append(item)
        return cls(tuple(merged))

    @classmethod
    def of_indexes(cls, indexes: Iterable[int]) -> PartSet:
        return cls.of(PartRange(index, index) for index in indexes)

    @classmethod
    def between(cls, low: int, high: int) -> PartSet:
        """The parts low to high; nothing if low is above high."""
        return cls((PartRange(low, high),)) if low <= high else cls()

    @classmethod
    def everything(cls) -> PartSet:
        return cls((PartRange(EARLIEST, LATEST),))

    @property
    def first(self) -> int:
        return self.ranges[0].low

    @property
    def last(self) -> int:
        return self.ranges[-1].high

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __len__(self) -> int:
        return sum(len(item) for item in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for item in self.ranges:
            yield from item

    def __contains__(self, index: object) -> bool:
        return any(index in item for item in self.ranges)

    def __or__(self, other: PartSet) -> PartSet:
        return PartSet.of((*self.ranges, *other.ranges))

    def __and__(self, other: PartSet) -> PartSet:
        result: list[PartRange] = []
        mine, theirs = 0, 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            a, b = self.ranges[mine], other.ranges[theirs]
            low, high = max(a.low, b.low), min(a.high, b.high)
            if low <= high:
                result.append(PartRange(low, high))
            if a.high < b.high:
                mine += 1
            else:
                theirs += 1
        return PartSet(tuple(result))

    def __sub__(self, other: PartSet) -> PartSet:
        return self & other.complement()

    def complement(self) -> PartSet:
        gaps: list[PartRange] = []
        low = EARLIEST
        for item in self.ranges:
            if low < item.low:
                gaps.append(PartRange(low, item.low - 1))
            low = item.high + 1
        if low <= LATEST:
            gaps.append(PartRange(low, LATEST))
        return PartSet(tuple(gaps))

    def format(self, partitioning: Partitioning) -> str:
        """The set as dates: `2015-01-01T10:00 .. 2015-01-01T10:04, 2015-01-01T10:09`."""
        return ", ".join(
            partitioning.format(item.low)
            if item.low == item.high
            else f"{partitioning.format(item.low)} .. {partitioning.format(item.high)}"
            for item in self.ranges
        )

    def __str__(self) -> str:
        return ", ".join(str(item) for item in self.ranges)
