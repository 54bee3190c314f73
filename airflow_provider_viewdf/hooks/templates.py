"""Jinja in SQL: the subscript as a symbol, so that a definition is the same text in every run.

`{{ j }}` rendered to 23667844 would define another view every minute. So `i` and `j` are rendered to a name, which the
language knows as "the subscript of the part being computed"; the numbers appear only where a person looks at one part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from airflow_provider_viewdf.errors import UsageError

SYMBOL = "__part__"
SUBSCRIPTS = ("i", "j")


class PartSymbol:
    """The subscript in a template. Arithmetic with it gives text: `{{ j - 1 }}` is `(__part__ - 1)`."""

    def __init__(self, text: str = SYMBOL) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __add__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({self} + {other})")

    def __radd__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({other} + {self})")

    def __sub__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({self} - {other})")

    def __rsub__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({other} - {self})")

    def __mul__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({self} * {other})")

    def __rmul__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({other} * {self})")

    # In a subscript both divisions are the one that rounds down.
    def __floordiv__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({self} / {other})")

    __truediv__ = __floordiv__

    def __mod__(self, other: object) -> PartSymbol:
        return PartSymbol(f"({self} % {other})")

    def __neg__(self) -> PartSymbol:
        return PartSymbol(f"(-{self})")

    def __pos__(self) -> PartSymbol:
        return self

    def _refuse(self, *others: object) -> NoReturn:
        raise UsageError(
            "In a template, i and j stand for whichever part is computed and have no value of their own: "
            "calculate with + - * / % only, and leave comparisons to the SQL."
        )

    # Python would answer these without asking; Jinja's filters even turn the failure into a 0.
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __int__ = __float__ = __index__ = __bool__ = __rmod__ = __rtruediv__ = __rfloordiv__ = _refuse
    __hash__ = object.__hash__


class RefusedParam:
    """A text among the params that is not plain. Whoever may start a run may set it, so it is not put into a script.

    A number, a name, a time, a length or a path is plain; what could end a literal, a bracket or a statement, begin a comment,
    or be several words of a condition, is not. A template may compare it, and anything else, a filter for one, is refused.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        return self._text == (other._text if isinstance(other, RefusedParam) else other)

    def __hash__(self) -> int:
        return hash(self._text)

    def _refuse(self, *others: object) -> NoReturn:
        raise UsageError(
            f"The param {self._text!r} cannot be put into a script by its bare name: only numbers, names, times, lengths and paths can. "
            "If those who start runs may write SQL, take it from params: {{ params.name }}."
        )

    __str__ = __repr__ = __format__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __add__ = __radd__ = __mod__ = __rmod__ = __mul__ = __rmul__ = __int__ = __float__ = __index__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # Python asks for many, such as __deepcopy__, without using the text
            raise AttributeError(name)
        self._refuse()


def guard(value: Any) -> Any:
    """A param as a template may use it by its bare name: with every text that is not plain replaced, in lists and dicts too."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else RefusedParam(value)
    if isinstance(value, Mapping):
        return {guard(key): guard(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [guard(item) for item in value]
    return value


# One word, or a time or a length, which are two. A second word more could be an operator.
_PLAIN = re.compile(r"(?!.*--)[A-Za-z0-9_.:+/=-]*(?<![A-Za-z_]) ?[A-Za-z0-9_.:+/=-]*", re.ASCII)


def add_subscripts(context: Mapping[str, Any], subscript: PartSymbol | int | None = None) -> dict[str, Any]:
    """A template context with `i`, `j`, and each of the params by its bare name, unless that name means something else."""
    value = PartSymbol() if subscript is None else subscript
    params = {name: guard(item) for name, item in dict(context.get("params") or {}).items() if name not in context}
    return {**params, **context, **dict.fromkeys(SUBSCRIPTS, value)}


def is_template(text: str) -> bool:
    return any(mark in text for mark in ("{{", "{%", "{#"))
