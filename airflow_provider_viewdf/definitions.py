"""What is defined: tables and views, their columns, and the parts that a view's queries read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from airflow_provider_viewdf.locations import LocationTemplate
from airflow_provider_viewdf.parts import Partitioning, PartRange, PartSet, format_length
from airflow_provider_viewdf.subscripts import Subscript, inverse

if TYPE_CHECKING:
    from datetime import datetime

    from sqlglot import exp

    from airflow_provider_viewdf.translate.translation import Translation

Kind = Literal["stream", "dimension", "view"]
Rule = Literal["initialize", "update"]
LateAction = Literal["refresh", "quarantine", "ignore"]

# A column with such a name is a view's own: the view can read it in its past, and nobody else sees it.
OWN_PREFIX = "__own_"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and its type, as Spark writes types: `int`, `decimal(10,2)`, `array<string>`."""

    name: str
    type: str

    @property
    def is_own(self) -> bool:
        return fold(self.name).startswith(OWN_PREFIX)


@dataclass(frozen=True, slots=True)
class LateRows:
    """What becomes of rows whose part ended more than `after_seconds` before the data that they came with."""

    action: LateAction = "refresh"
    after_seconds: int = 0

    def __str__(self) -> str:
        if self.action == "refresh":
            return "LATE ROWS REFRESH"
        return f"LATE ROWS {self.action.upper()} AFTER '{format_length(self.after_seconds)}'"


TAKE_LATE_ROWS = LateRows()


@dataclass(frozen=True, slots=True)
class PartReference:
    """What one subscript in a query reads: the parts low(j) .. high(j) of a table.

    A partial reference reads what there is of them: it is cut at the first part of the table, and only its high end has to
    lie at or after that part.
    """

    table: str
    low: Subscript
    high: Subscript
    is_partial: bool = False
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    def reads(self, index: int) -> PartRange:
        """The parts that part `index` of the view reads. Raises UsageError if the range runs backwards."""
        return PartRange(self.low(index), self.high(index))

    def reads_from(self, index: int, first: int | None) -> PartRange:
        """The same, given the first part of the table. Without any, a partial reference reads its last part only."""
        parts = self.reads(index)
        if not self.is_partial:
            return parts
        return PartRange(parts.high if first is None else max(parts.low, min(first, parts.high)), parts.high)

    def read_by(self, parts: PartRange) -> PartRange | None:
        """The view's parts that read any of these: the exact inverse of `reads`."""
        return inverse(self.low, self.high, parts)

    def __str__(self) -> str:
        if str(self.low) == str(self.high):
            return f"{self.table}[{self.low}]"
        return f"{self.table}[{self.low} .. {self.high}{' PARTIAL' if self.is_partial else ''}]"


@dataclass(frozen=True, slots=True)
class Query:
    """One of a view's two queries: its tree, its subscript variable, and what it reads."""

    tree: exp.Expression
    variable: str
    references: tuple[PartReference, ...]
    dimensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A table or a view, as the person defined it.

    `columns` of a view are empty until Spark has analyzed its INITIALIZE query.
    `digest` changes when the meaning of the text changes, not when its layout does, nor when `late_rows` or `retain_seconds`
    does: these are rules for what is to come, and do not touch what there is. `helper_of` names the views that a generated
    helper view serves, and `translation` is what a pattern or window query became. `retain_seconds` is for how long its parts
    are kept (0: for ever) and, of a window, how late rows may be before helper parts are gone. `rows_per_part` is 0 unless
    someone has looked.

    No two rows of a part of a stream are alike in the columns `unique`, if there are any: loading sees to it.

    A stream with a `location` is *external*: others write its files. Its parts are complete as soon as there is a file, or when
    there is a file called `complete_when`, or `complete_after_seconds` after their end.
    """

    name: str
    kind: Kind
    text: str
    digest: str
    length_seconds: int = 0
    columns: tuple[Column, ...] = ()
    keys: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    ordered: str = ""
    location: str = ""
    format: str = ""
    options: tuple[tuple[str, str], ...] = ()
    complete_when: str = ""
    complete_after_seconds: int | None = None
    initialize: Query | None = None
    update: Query | None = None
    starting: datetime | None = None
    starting_latest: bool = False
    retain_seconds: int = 0
    late_rows: LateRows = TAKE_LATE_ROWS
    helper_of: str = ""
    translation: Translation | None = field(default=None, compare=False)
    rows_per_part: float = field(default=0.0, compare=False)
    offset: int = field(default=0, compare=False)

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning(self.length_seconds)

    @property
    def is_partitioned(self) -> bool:
        return self.kind != "dimension"

    @property
    def is_external(self) -> bool:
        return self.kind == "stream" and bool(self.location)

    @property
    def location_template(self) -> LocationTemplate:
        """The directories of an external stream's parts, as they were written."""
        return LocationTemplate.parse(self.location)

    @property
    def owners(self) -> tuple[str, ...]:
        """The views that a generated helper view serves."""
        return tuple(self.helper_of.split(", ")) if self.helper_of else ()

    def query_for(self, rule: Rule) -> Query:
        query = self.initialize if rule == "initialize" else self.update
        assert query is not None, f"{self.name} is not a view"
        return query

    @property
    def references(self) -> tuple[PartReference, ...]:
        """Every part reference of both queries."""
        if self.initialize is None or self.update is None:
            return ()
        return (*self.initialize.references, *self.update.references)

    @property
    def reads_itself(self) -> bool:
        return any(fold(reference.table) == fold(self.name) for reference in self.references)

    @property
    def dimensions(self) -> tuple[str, ...]:
        if self.initialize is None or self.update is None:
            return ()
        return tuple(dict.fromkeys((*self.initialize.dimensions, *self.update.dimensions)))

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """The columns that other views and people see."""
        return tuple(column for column in self.columns if not column.is_own)

    def columns_for(self, reader: str) -> tuple[Column, ...]:
        """The columns that a view sees which reads this table or view."""
        return self.columns if fold(reader) == fold(self.name) else self.shown_columns

    def with_columns(self, columns: tuple[Column, ...]) -> Definition:
        return replace(self, columns=columns)

    def describe_part(self, index: int) -> str:
        """A part with its subscript and its date: `M[23667846] (2015-01-01T00:06)`."""
        return f"{self.name}[{index}] ({self.partitioning.format(index)})"

    def describe_parts(self, parts: PartSet) -> str:
        """Parts with their subscripts and their dates."""
        return f"{self.name}[{parts}] ({parts.format(self.partitioning)})"


def fold(name: str) -> str:
    """A name as names are compared: without regard to case."""
    return name.lower()
