"""What Spark throws, as errors of ours: one short sentence, without the JVM's stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_provider_viewdf.errors import QueryRefusedError, StepFailedError

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_HEADER = re.compile(r"^Expected: (.+) but found: (.*)$", re.MULTILINE)
_JAVA_MESSAGE = re.compile(r"^: [\w.$]+: (.+)$", re.MULTILINE)
_QUOTED_NAMES = re.compile(r"`((?:[^`]|``)*)`")

# How to get around Spark's checks is no advice for someone whose data is wrong.
_BYPASS = re.compile(r"\s*If necessary set \S+ to \S+ to bypass this error\.")


def is_spark_error(error: BaseException) -> bool:
    """Whether an exception comes from Spark. Classic Spark lets some of Java's exceptions through as py4j's own."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError"


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


def translate(error: Exception, sql: str = "") -> QueryRefusedError | StepFailedError:
    from pyspark.errors import AnalysisException, ParseException

    if isinstance(error, (AnalysisException, ParseException)):
        return refuse(error)
    fragment = _fragment(error)
    return StepFailedError(describe(error) + (f" It happened in: {fragment}" if fragment and fragment in sql else ""))


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
