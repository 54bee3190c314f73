"""What a statement reads while it is compiled: the state that the passes hand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.parts import Partitioning, PartRange, PartSet
from airflow_provider_viewdf.translate.tree import PartTable, place_of


@dataclass(slots=True)
class PartRead:
    """Some parts of a table, under the name that Spark knows them by.

    With `has_part_column` that table has the column PART, because somewhere in the statement it is asked for.
    """

    name: str
    table: str
    parts: PartSet
    partitioning: Partitioning
    has_part_column: bool = False
    is_quarantine: bool = False
    # What was asked for, of which a partial range leaves out what lies before the first part.
    reach: PartRange | None = None

    @property
    def only_index(self) -> int | None:
        return self.parts.first if len(self.parts.ranges) == 1 and self.parts.first == self.parts.last else None


@dataclass(slots=True)
class Compilation:
    """The part that is computed (none for a query of one's own), and what has been found to be read.

    `text` is the text the tree was parsed from, and `offset` what is to be subtracted from the places in the tree.
    `first_of` finds the first part of a table, by which partial ranges are cut.
    """

    text: str
    offset: int = 0
    index: int | None = None
    partitioning: Partitioning | None = None
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    describes: str = ""
    first_of: Callable[[str], int | None] | None = None
    reads: dict[tuple[str, PartSet], PartRead] = field(default_factory=dict)
    # The nodes whose PART or PART_TIMESTAMP is asked for, by identity.
    with_part_columns: set[int] = field(default_factory=set)

    def fail(self, message: str, node: exp.Expr) -> LanguageError:
        start, end = place_of(node)
        return LanguageError(message, text=self.text, start=start - self.offset, end=end - self.offset)


def read_of(table: PartTable) -> PartRead:
    read = table.meta["read"]
    assert isinstance(read, PartRead)
    return read


def name_parts(table: str, parts: PartRange) -> str:
    """`Helper_23667845`, `M_23667841_23667845`, and `M_n5` for the subscript -5."""
    ends = [parts.low] if parts.low == parts.high else [parts.low, parts.high]
    return "_".join([table, *(f"n{-end}" if end < 0 else str(end) for end in ends)])
