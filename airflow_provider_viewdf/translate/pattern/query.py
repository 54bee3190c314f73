"""What a pattern query asks for, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sqlglot import exp

# Which row of its variable a value is taken from: the one being bound, which for an earlier variable is its last;
# the first; the one before; all before; or, in SELECT, all.
Subscript = Literal["", "1", "i", "i-1", "..i-1"]


class Value(exp.Expression):
    """`d[i-1].loss`: a value of a row that is bound to a variable. In `place`, where it stands in the text."""

    arg_types: ClassVar[dict[str, bool]] = {"variable": True, "subscript": True, "attribute": True}

    @property
    def variable(self) -> str:
        return str(self.args["variable"])

    @property
    def subscript(self) -> Subscript:
        subscript: Subscript = self.args["subscript"]
        return subscript

    @property
    def attribute(self) -> str:
        """The attribute, or a path of fields in it, as SQL; `*` for the row itself."""
        return str(self.args["attribute"])


class Aggregate(exp.Expression):
    """`sum(d.loss)`, `count(*)`, `first(ts)`: a figure over all rows of a match, or over those of one variable.

    `this` is the argument, with the attributes of one row in it as plain columns; absent for `count(*)`. With `is_before`
    it is over the rows that were bound to the variable before this one.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "function": True, "variable": True, "is_before": True}

    @property
    def function(self) -> str:
        return str(self.args["function"])

    @property
    def variable(self) -> str:
        """The variable, or "" for the whole match."""
        return str(self.args["variable"])

    @property
    def is_before(self) -> bool:
        return bool(self.args["is_before"])


@dataclass(frozen=True, slots=True)
class Variable:
    """One row: the name of a variable in the PATTERN clause."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` of None means without end."""

    item: Regex
    least: int
    most: int | None


Regex = Variable | Sequence | Choice | Repeat


def variables_of(regex: Regex) -> Iterator[str]:
    """The variables, from left to right."""
    match regex:
        case Variable(name):
            yield name
        case Repeat(item):
            yield from variables_of(item)
        case Sequence(items) | Choice(items):
            for item in items:
                yield from variables_of(item)


def write_regex(regex: Regex, is_inside: bool = False) -> str:
    match regex:
        case Variable(name):
            return name
        case Sequence(items):
            text = ", ".join(write_regex(item, True) for item in items)
            return f"({text})" if is_inside else text
        case Choice(items):
            text = " | ".join(write_regex(item, True) for item in items)
            return f"({text})" if is_inside else text
        case Repeat(item, least, most):
            return write_regex(item, True) + write_quantifier(least, most)
    raise AssertionError(regex)


def write_quantifier(least: int, most: int | None) -> str:
    match least, most:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _, None:
            return f"{{{least},}}"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunct of WHERE that is checked whenever a row is bound to `variable`, the rightmost that it names.

    `is_from_second` holds for those with v[i-1] or v[..i-1]: they apply from the second row of v on. `is_first_only`
    holds for those that name nothing but v[1].
    """

    variable: str
    tree: exp.Expr
    is_from_second: bool = False
    is_first_only: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the view. Bare attributes in its tree that are not grouped have become Aggregates, `last(x)`."""

    name: str
    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class PatternQuery:
    """A pattern query, checked. `order` are the columns that order the rows of one part, `time` that of WITHIN.

    `is_ordered_by_time` holds if that order is also the order of the parts, as it is for the ORDERED column of a stream.
    """

    view: str
    source: str
    regex: Regex
    predicates: tuple[Predicate, ...]
    filters: tuple[exp.Expr, ...]
    groups: tuple[str, ...]
    outputs: tuple[Output, ...]
    having: exp.Expr | None
    order: tuple[str, ...]
    time: str = ""
    within_seconds: int = 0
    is_across_gaps: bool = False
    is_ordered_by_time: bool = True
