"""Saying where in a person's text lies what Spark's analyzer refuses."""

from __future__ import annotations

import re
from typing import TypedDict

from airflow_provider_viewdf.errors import DefinitionError, QueryRefusedError, UnknownColumnError


class Place(TypedDict):
    """Where an error is, as the errors take it."""

    text: str
    start: int
    end: int


def explain_refusal(error: QueryRefusedError, subject: str, place: Place) -> DefinitionError:
    """The refusal as an error with a place. `subject` is what was refused, such as "query of View2"."""
    if error.name and error.condition.startswith("UNRESOLVED_COLUMN"):
        hint = f"; there is {', '.join(error.suggestions)}" if error.suggestions else ""
        message = f"The {subject} names the column {error.name}, which nothing that it reads has{hint}."
        return UnknownColumnError(message, **place)
    return DefinitionError(f"Spark refuses the {subject}: {error}", **place)


def find_name(name: str, text: str, start: int = 0, end: int | None = None) -> Place:
    """Where a name stands in a stretch of a text: as a whole, or else its last part."""
    plain = name.replace("`", "")
    whole, last = re.escape(plain), re.escape(plain.split(".")[-1])
    return find_words(rf"(?<![\w.]){whole}\b|\b{last}\b", text, start, end)


def find_words(pattern: str, text: str, start: int = 0, end: int | None = None) -> Place:
    """Where a pattern stands in a stretch of a text; if nowhere, the beginning of that."""
    match = re.compile(pattern, re.IGNORECASE).search(text, start, len(text) if end is None else end)
    found = match.span() if match else (start, start + 1)
    return Place(text=text, start=found[0], end=found[1])
