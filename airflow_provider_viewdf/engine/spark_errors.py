"""What Spark throws, as errors of ours: one short sentence, without the JVM's stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_provider_viewdf.errors import DamagedPartError, QueryRefusedError, SparkUnavailableError, StepFailedError

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_HEADER = re.compile(r"^Expected: (.+) but found: (.*)$", re.MULTILINE)
_JAVA_MESSAGE = re.compile(r"^: [\w.$]+: (.+)$", re.MULTILINE)
_QUOTED_NAMES = re.compile(r"`((?:[^`]|``)*)`")

# <table>/<index>/<version>/<file>, or a directory of these: files of parts, written by nobody but us.
_PART_FILE = re.compile(
    r"[A-Za-z_]\w*/(?:-?\d+/v\d+|rolled/-?\d+_-?\d+)-[0-9a-f]{12}(?:-[0-9a-f]{8})?(?:/[\w.-]+\.parquet)?"
)

# How PySpark says that nobody answers: the JVM of this process, and a Spark Connect server.
_NO_ANSWER = ("Py4JNetworkError", "RetriesExceeded")
_GONE = ("INVALID_HANDLE.SESSION_", "NO_ACTIVE_SESSION", "SESSION_ALREADY_EXIST", "SESSION_NOT_SAME")

_INDEX = re.compile(r"-?\d+")

# How to get around Spark's checks is no advice for someone whose data is wrong.
_BYPASS = re.compile(r"\s*If necessary set \S+ to \S+ to bypass this error\.")


def is_spark_error(error: BaseException) -> bool:
    """Whether an exception comes from Spark. Classic Spark lets some of Java's exceptions through as py4j's own."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) or type(error).__name__ in ("Py4JJavaError", *_NO_ANSWER)


def is_gone(error: BaseException) -> bool:
    """Whether the Spark that was asked is no more: its process, its server, or the session on it."""
    if type(error).__name__ in _NO_ANSWER or condition_of(error).startswith(_GONE):
        return True
    return any(sign in str(error) for sign in ("StatusCode.UNAVAILABLE", "SparkContext was shut down"))


def condition_of(error: BaseException) -> str:
    """Spark's name for the kind of error: `UNRESOLVED_COLUMN.WITH_SUGGESTION`, or "" if it has none."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return str(condition)
    match = _CONDITION.search(_own_message(error))
    return match.group(1) if match else ""


def parameters_of(error: BaseException) -> dict[str, str]:
    """The names and values that Spark put into its message."""
    found: dict[Any, Any] = getattr(error, "getMessageParameters", dict)() or {}
    return {str(key): str(value) for key, value in found.items()}


def describe(error: BaseException) -> str:
    """What went wrong, in Spark's words, and the cause if those words only say which file it happened in."""
    message = _shorten(_own_message(error))
    if condition_of(error).startswith("FAILED_READ_FILE"):
        causes = [_shorten(cause) for cause in _CAUSE.findall(str(error))]
        header = [
            f"It has {found or 'nothing'} where {name} is expected." for name, found in _HEADER.findall(str(error))
        ]
        message = " ".join(dict.fromkeys([message, *causes[:1], *header[:1]]))
    if condition_of(error) == "TASK_WRITE_FAILED":
        # A full disk, say: the outermost words only tell where.
        message = " ".join(dict.fromkeys([message, *[_shorten(cause) for cause in _CAUSE.findall(str(error))][-1:]]))
    return message or type(error).__name__


def refuse(error: BaseException) -> QueryRefusedError:
    """An error of Spark's analyzer as ours."""
    parameters = parameters_of(error)
    keys = ("objectName", "relationName", "routineName", "fieldName", "name")
    named = next((parameters[key] for key in keys if parameters.get(key)), "")
    return QueryRefusedError(
        describe(error),
        condition=condition_of(error),
        name=".".join(_unquote(named)) or named,
        fragment=_fragment(error),
        suggestions=tuple(".".join(_unquote(item)) for item in parameters.get("proposal", "").split(", ") if item),
    )


@contextmanager
def translated(sql: str = "") -> Iterator[None]:
    """Inside, what the analyzer refuses is raised as QueryRefusedError, any other error of Spark as StepFailedError.

    `sql` is the statement that somebody wrote: only pieces of that are worth showing to them.
    """
    try:
        yield
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise translate(error, sql) from error


def translate(error: Exception, sql: str = "") -> QueryRefusedError | StepFailedError | SparkUnavailableError:
    from pyspark.errors import AnalysisException, ParseException

    if is_gone(error):
        return SparkUnavailableError(
            "Spark does not answer any more. What it was at work on was not published, and nothing is lost; "
            "start it again, and then this."
        )
    if damage := explain_damage(error):
        return DamagedPartError(damage)
    if isinstance(error, (AnalysisException, ParseException)):
        return refuse(error)
    fragment = _fragment(error)
    return StepFailedError(describe(error) + (f" It happened in: {fragment}" if fragment and fragment in sql else ""))


def explain_damage(error: BaseException) -> str:
    """Which file of which part cannot be read, and what to do about it; "" if that is not what is wrong."""
    condition = condition_of(error)
    if condition != "PATH_NOT_FOUND" and not condition.startswith(("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")):
        return ""
    place = _PART_FILE.search(parameters_of(error).get("path", "") or _own_message(error))
    if place is None:
        return ""  # a file that somebody else wrote
    if condition == "PATH_NOT_FOUND" or condition.endswith("FILE_NOT_EXIST"):
        return describe_damage(place.group(), "is not there")
    causes = [_shorten(cause) for cause in _CAUSE.findall(str(error))]
    return describe_damage(place.group(), f"cannot be read ({causes[-1].rstrip('.')})" if causes else "cannot be read")


def describe_damage(place: str, problem: str) -> str:
    """The sentence for a file of a part, or a directory of such files, that is not what it was."""
    table, index = place.split("/")[:2]
    what = f"{table}[{index}]" if _INDEX.fullmatch(index) else f"parts of {table}"
    return f"{place}, which holds rows of {what}, {problem}. This finds and repairs damaged parts: viewdf repair"


def _own_message(error: BaseException) -> str:
    if hasattr(error, "getMessage"):
        return str(error.getMessage())
    match = _JAVA_MESSAGE.search(str(error))
    return match.group(1) if match else str(error)


def _shorten(message: str) -> str:
    message = message.partition("\nJVM stacktrace:")[0]
    message = _CONDITION.sub("", _SQLSTATE.sub("", message), count=1)
    lines = [line.strip() for line in _BYPASS.sub("", message).strip().splitlines()]
    # The first line says what is wrong; the search path of the session's catalog helps nobody here.
    text = re.sub(r"\s+", " ", lines[0]) if lines else ""
    text = re.sub(r" on search path \[.*?\](?=\.|$)", "", text)
    return text if not text or text[-1] in ".!?" else f"{text}."


def _fragment(error: BaseException) -> str:
    from pyspark.errors import QueryContextType

    contexts: list[Any] = getattr(error, "getQueryContext", list)() or []
    # A context of DataFrame code names a line of this package.
    return next((str(item.fragment()) for item in contexts if item.contextType() == QueryContextType.SQL), "")


def _unquote(name: str) -> list[str]:
    return [part.replace("``", "`") for part in _QUOTED_NAMES.findall(name)]
