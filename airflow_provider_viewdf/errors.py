"""Every error of the package, as a tree.

    ViewDFError
    ├── LanguageError                the text of a statement is wrong; carries line and column
    │   ├── UnsupportedFunctionError     rand(), uuid() and their like inside a view
    │   └── SubscriptError               a subscript that cannot be evaluated or inverted
    ├── TimeFormatError              a text that is no time
    ├── DefinitionError              a definition does not fit the others
    │   ├── DuplicateDefinitionError
    │   ├── ChangedDefinitionError
    │   ├── StillReadError
    │   ├── CyclicDefinitionError
    │   ├── SchemaMismatchError
    │   ├── UnknownTableError
    │   ├── UnknownColumnError
    │   └── QueryRefusedError            Spark's analyzer does not accept a query
    ├── MissingPartError             something asked for reads a part that does not exist
    ├── MissingDimensionError        the files of a dimension table are not there
    ├── ExternalFilesError           the files of an external stream cannot be listed or do not fit it
    ├── LoadError                    a batch cannot be loaded
    │   ├── RejectedRowsError            some of its rows do not fit
    │   ├── ImplausibleBatchError        it would stretch the table too far
    │   └── TooManyLateRowsError         more of its rows come too late than can be set aside
    ├── ArchivedPartError            rows of parts that are no longer kept
    ├── StepFailedError              Spark could not compute a part
    │   └── DamagedPartError             the files of a part are not what was written
    ├── CatalogError                 the catalog cannot be used as it is
    │   ├── CatalogVersionError          it is older or newer than this package
    │   ├── CatalogUnavailableError      its database went away
    │   ├── ConflictError                someone else changed what this change is based on
    │   └── LostFilesError               a writer was taken for dead, and its files may be gone
    ├── PartDateError                an Airflow run that names no part
    ├── JavaNotFoundError            no Java that Spark can use
    ├── SparkUnavailableError        a Spark that did not start, or does not answer
    └── UsageError                   an argument that makes no sense

A message is one sentence, or a few: what is wrong, where, and what to do about it.
"""

from __future__ import annotations


class ViewDFError(Exception):
    """The root of the tree: catch this to catch everything the package raises on purpose."""


class PlacedError(ViewDFError):
    """An error that can say where in a text it is: with line, column, and the place underlined."""

    def __init__(self, message: str, *, text: str = "", start: int = 0, end: int = 0) -> None:
        message = shorten(message, 2_000)
        self.reason, self.text, self.start, self.end = message, text, start, end
        self.line, self.column = locate(text, start)
        self.excerpt = underline(text, start, end) if text else ""
        place = f"Line {self.line}, column {self.column}: " if text else ""
        super().__init__(f"{place}{message}" + (f"\n{self.excerpt}" if self.excerpt else ""))


class LanguageError(PlacedError):
    """A statement that cannot be understood, with the place where it goes wrong."""


class UnsupportedFunctionError(LanguageError):
    """A function whose value is not determined by the inputs of the view."""


class SubscriptError(LanguageError):
    """A subscript that cannot be evaluated, runs backwards, or cannot be inverted."""


class TimeFormatError(ViewDFError):
    """A text that was expected to be a time."""


class DefinitionError(PlacedError):
    """A definition that does not fit the ones it depends on."""


class DuplicateDefinitionError(DefinitionError):
    """Two definitions of one name."""


class ChangedDefinitionError(DefinitionError):
    """A definition that differs from the one its parts were made with."""


class StillReadError(DefinitionError):
    """Something that is to be dropped, and that others read."""


class CyclicDefinitionError(DefinitionError):
    """Views that need each other within one part."""


class SchemaMismatchError(DefinitionError):
    """UPDATE yields other columns than INITIALIZE."""


class UnknownTableError(DefinitionError):
    """A name that nothing defines."""


class UnknownColumnError(DefinitionError):
    """A column that its table does not have."""


class QueryRefusedError(DefinitionError):
    """A query that Spark's analyzer does not accept.

    `condition` is Spark's name for the kind of error, `name` the column, table or function it is about (or ""),
    `fragment` the offending piece of the query, and `suggestions` are the names that Spark believes were meant.
    """

    def __init__(
        self,
        message: str,
        *,
        condition: str = "",
        name: str = "",
        fragment: str = "",
        suggestions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.condition = condition
        self.name = name
        self.fragment = fragment
        self.suggestions = suggestions


class MissingPartError(ViewDFError):
    """Something asked for reads parts that the catalog does not hold."""


class ArchivedPartError(ViewDFError):
    """Something reads or changes parts whose rows are no longer kept."""


class MissingDimensionError(ViewDFError):
    """The files of a dimension table are not there."""


class ExternalFilesError(ViewDFError):
    """The files of an external stream cannot be listed, or do not fit its columns."""


class LoadError(ViewDFError):
    """A batch that cannot be loaded; nothing of it was."""


class RejectedRowsError(LoadError):
    """Rows of a batch that do not fit their table. `rows` lists them."""

    def __init__(self, message: str, rows: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows


class ImplausibleBatchError(LoadError):
    """A batch that would stretch its table so far that a wrong timestamp is likelier."""


class TooManyLateRowsError(LoadError):
    """More rows that come too late for their table than its quarantine should hold."""


class StepFailedError(ViewDFError):
    """Spark could not compute a part."""


class DamagedPartError(StepFailedError):
    """The files of a part are gone, cannot be read, or are not what was written."""


class CatalogError(ViewDFError):
    """The catalog cannot be used as it is."""


class CatalogVersionError(CatalogError):
    """The catalog's tables are of another version than this package's."""


class CatalogUnavailableError(CatalogError):
    """The database of the catalog went away. Whether the last transaction took effect is not known."""


class ConflictError(CatalogError):
    """Someone else changed what this change was based on. Nothing was written; try again."""


class LostFilesError(CatalogError):
    """A writer was silent for so long that what it wrote may have been removed. Nothing was published."""


class PartDateError(ViewDFError):
    """An Airflow run that does not say which part it is for."""


class JavaNotFoundError(ViewDFError):
    """Spark needs a Java, and there is none."""


class SparkUnavailableError(ViewDFError):
    """No Spark to work with: a server that did not start, or does not answer."""


class UsageError(ViewDFError):
    """An argument that makes no sense."""


WIDEST_LINE = 240


def locate(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of an offset into a text."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def underline(text: str, start: int, end: int) -> str:
    """The line of the text around `start`, with a row of carets below the place."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = line_end if line_end >= 0 else len(text)
    # Of a line that no screen could hold, what is around the place.
    first, last = line_start, line_end
    if line_end - line_start > WIDEST_LINE:
        first, last = max(line_start, start - WIDEST_LINE // 2), min(line_end, start + WIDEST_LINE // 2)
    before, after = "…" if first > line_start else "", "…" if last < line_end else ""
    width = max(1, min(end, last) - start)
    return f"  {before}{text[first:last]}{after}\n  {' ' * (len(before) + start - first)}{'^' * width}"


def shorten(text: str, length: int) -> str:
    """A text without its middle, if it is longer than that."""
    if len(text) <= length:
        return text
    return f"{text[: length // 2]} … {text[-length // 2 :]}"
