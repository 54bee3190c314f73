"""What the catalog remembers of parts: their versions, what they were made from, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_provider_viewdf.definitions import Column, Kind, Rule
from airflow_provider_viewdf.parts import PartRange, PartSet


@dataclass(frozen=True, slots=True)
class DefinitionRecord:
    """A definition as the catalog stores it: the text, and what only a running system knows of it.

    `start_index` is the view's start, if it has one: from STARTING, or from whoever applied it first. `translation` is what
    a pattern or window query became when it was applied, as JSON: it stays that, whatever a later version would make of it.
    """

    name: str
    kind: Kind
    text: str
    digest: str
    columns: tuple[Column, ...]
    length_seconds: int
    start_index: int | None
    helper_of: str
    updated_at: datetime
    produced_by: str
    translation: str = ""


@dataclass(frozen=True, slots=True)
class ContentDigest:
    """A digest of a multiset of rows that adds up: digest(a + b) = digest(a) + digest(b)."""

    rows: int = 0
    high: int = 0
    low: int = 0

    def __add__(self, other: ContentDigest) -> ContentDigest:
        return ContentDigest(self.rows + other.rows, self.high + other.high, self.low + other.low)

    def __str__(self) -> str:
        return f"{self.rows}:{self.high:x}:{self.low:x}"

    @classmethod
    def parse(cls, text: str) -> ContentDigest:
        rows, high, low = text.split(":")
        return cls(int(rows), int(high, 16), int(low, 16))


@dataclass(frozen=True, slots=True)
class Producer:
    """Who makes a part version: an Airflow task try, or the command line."""

    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    try_number: int = 0
    name: str = "cli"

    def __str__(self) -> str:
        if not self.dag_id:
            return self.name
        return f"{self._task}{self.try_number}"

    @property
    def _task(self) -> str:
        return f"{self.dag_id}/{self.run_id}/{self.task_id} try "

    def is_outdone_by(self, produced_by: str) -> bool:
        """Whether that is a later try of the same task."""
        later = produced_by.removeprefix(self._task)
        return bool(self.dag_id) and later != produced_by and later.isdigit() and int(later) > self.try_number


@dataclass(frozen=True, slots=True)
class Writer:
    """Someone who writes files, and by whose name the directories of these are known. Its lease has a token."""

    name: str
    token: str
    owner: str
    is_expired: bool


@dataclass(frozen=True, slots=True)
class InputRange:
    """Parts of one table that a part version was made from."""

    table: str
    low: int
    high: int


# In the place of the location of a part whose rows are no longer kept.
ARCHIVED = "archived:"

# Before the location of a stream's part whose files were damaged: there lie those of its rows that were loaded again so far.
LOST = "lost:"


def directory_of(location: str) -> str:
    """The directory of a location: parts that were rolled up share one, `M/rolled/0_1439-ab12#17`."""
    return location.removeprefix(LOST).partition("#")[0]


@dataclass(frozen=True, slots=True)
class Move:
    """The rows of a part version, found at another place from now on."""

    version: PartVersion
    location: str


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file of an external part: its name below the part's directory, its size, and its etag or modification time."""

    name: str
    size: int
    mark: str


@dataclass(frozen=True, slots=True)
class PartVersion:
    """One version of one part. `location` is relative to the warehouse; a part without rows has none.

    Neither has a retired one, of which only the rows are gone: the part exists, and is computed again when it is read.
    A version of an external part has `files`, the URL of their directory as its location, and a digest of the list of files:
    its rows are not counted.
    """

    table: str
    index: int
    version: int
    location: str
    digest: ContentDigest
    definition_digest: str
    inputs: tuple[InputRange, ...]
    inputs_digest: str
    rule: Rule | None
    created_at: datetime
    produced_by: str
    files: tuple[PartFile, ...] = ()

    @property
    def rows(self) -> int:
        return self.digest.rows

    @property
    def is_retired(self) -> bool:
        return self.digest.rows > 0 and not self.location

    @property
    def is_lost(self) -> bool:
        """Whether its files were damaged, and its rows have not all been loaded again."""
        return self.location.startswith(LOST)

    @property
    def has_lost_rows(self) -> bool:
        """Whether it has rows that nobody can read: it is retired or archived."""
        return self.is_retired or self.location == ARCHIVED

    @property
    def has_files(self) -> bool:
        """Whether there are files of ours that hold its rows."""
        return bool(self.location) and self.location != ARCHIVED and not self.is_lost and not self.files


@dataclass(frozen=True, slots=True)
class StaleRange:
    """Parts of a view that would read something else if they were computed again, and why."""

    table: str
    parts: PartRange
    reason: str


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The rows that one batch brought into one part."""

    index: int
    digest: ContentDigest


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that does not fit its table: where it stood, what it was, and why not."""

    source: str
    line: int
    reason: str
    row: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        return f"{self.source}{line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class LateCount:
    """How many rows came late: taken into their parts, set aside, or ignored, as the stream's LATE ROWS says."""

    taken: int = 0
    quarantined: int = 0
    ignored: int = 0

    def __bool__(self) -> bool:
        return bool(self.taken or self.quarantined or self.ignored)

    def __str__(self) -> str:
        counts = ((self.taken, "taken"), (self.quarantined, "set aside"), (self.ignored, "ignored"))
        return ", ".join(f"{count} {what}" for count, what in counts if count) or "none"


@dataclass(frozen=True, slots=True)
class Batch:
    """A load: its id, the parts it covers, and what it brought into each.

    `measured_against` is the part that its rows are late against: loaded again, it is as late as it was then.
    """

    table: str
    batch_id: str
    source: str
    covers: PartSet
    parts: tuple[BatchPart, ...]
    rejected: tuple[RejectedRow, ...]
    loaded_at: datetime
    produced_by: str
    declared_empty_because: str = ""
    late: LateCount = LateCount()
    measured_against: int | None = None

    @property
    def rows(self) -> int:
        return sum(part.digest.rows for part in self.parts)


@dataclass(frozen=True, slots=True)
class Publication:
    """A part version that someone wants to make current.

    It takes effect only if the part's current version is still `replaces` (None: there is none yet) and
    its inputs, read again, still have `inputs_digest`. `stale` is what becomes stale if the content changed.
    """

    table: str
    index: int
    replaces: int | None
    location: str
    digest: ContentDigest
    definition_digest: str
    inputs: tuple[InputRange, ...]
    inputs_digest: str
    rule: Rule | None
    stale: tuple[StaleRange, ...]
    files: tuple[PartFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a publication: a new version, or the one there was (same content: early cutoff)."""

    version: PartVersion
    is_changed: bool
    stale: tuple[StaleRange, ...]


@dataclass(frozen=True, slots=True)
class TableSummary:
    """The parts of one table in figures."""

    table: str
    parts: PartSet
    rows: int
    stale: PartSet
    last_updated: datetime | None
    rejected_rows: int
    late: LateCount = LateCount()
