"""What a run remembers: values for later predicates, and figures for the output.

A run is a stretch of rows that is bound so far. Its fields are written `r.field`, the values of the row that is being
bound `x.field`; both as a table alias and as a variable of a lambda function this reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.translate.pattern.query import Aggregate, Output, PatternQuery, Predicate, Value
from airflow_provider_viewdf.translate.pattern.sums import SumType, find_sum_type

Kind = Literal["last", "first", "count", "sum", "min", "max", "start"]

RUN, ROW = "r", "x"
STATE = "state"
# Further names in the queries that are written; a grouped attribute that is called like one of them gets another name.
RUNS, ROWS, BEFORE, CURRENT, MATCH = "runs", "rows", "before", "has_row", "g"
_OURS = (RUN, ROW, STATE, RUNS, ROWS, BEFORE, CURRENT, MATCH, "kept", "k", "q", "one")

_AVERAGE = "avg"


@dataclass(frozen=True, slots=True)
class Binding:
    """The binding of one row to a variable, as far as what is written down for it depends on it."""

    variable: str
    is_start: bool
    is_first_of_variable: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a run: a figure over the rows of a variable, or of the whole run if `variable` is "".

    `value` is the field of the row that it is about, "" for count(*). `cast` is the type of a sum that needs to be said.
    """

    name: str
    kind: Kind
    variable: str
    value: str
    cast: str = ""

    def write_next(self, binding: Binding) -> str:
        """The field after a row has been bound."""
        now, before = f"{ROW}.{self.value}", f"{RUN}.{self.name}"
        if self.variable and fold(self.variable) != fold(binding.variable):
            return self._write_untouched(binding)
        if self.kind == "last":
            return now
        if self.kind == "count":
            one = f"CASE WHEN {now} IS NULL THEN 0 ELSE 1 END" if self.value else "1"
            return f"CAST({one} AS BIGINT)" if binding.is_start else f"{before} + {one}"
        if binding.is_start:
            return now
        match self.kind:
            case "first":
                is_first = bool(self.variable) and binding.is_first_of_variable
                return now if is_first else before
            case "sum":
                total = f"{before} + {now}"
                total = f"CAST({total} AS {self.cast})" if self.cast else total
                return f"coalesce({total}, {before}, {now})"
            case "min":
                return f"least({before}, {now})"
            case "max":
                return f"greatest({before}, {now})"
        return before

    def _write_untouched(self, binding: Binding) -> str:
        if not binding.is_start:
            return f"{RUN}.{self.name}"
        return "CAST(0 AS BIGINT)" if self.kind == "count" else write_null(f"{ROW}.{self.value}")

    def write_type(self, row: str) -> str:
        """A value of the field's type, out of some row."""
        return "CAST(0 AS BIGINT)" if self.kind == "count" else f"{row}.{self.value}"


def write_null(value: str) -> str:
    """NULL with the type of a value, which is never evaluated."""
    return f"CASE WHEN FALSE THEN {value} END"


@dataclass
class Memory:
    """The fields of runs and of rows that a query needs. `row` maps the fields of a row to SQL over the source."""

    query: PatternQuery
    types: Mapping[str, str]
    row: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = {fold(name) for name in (*self.query.groups, *_OURS)}
        self._keys: dict[tuple[str, ...], str] = {}
        # What the helper calls the grouped attributes.
        self.columns = {
            name: quote(name) if fold(name) not in _OURS else self._hold(("group", name), f"group_{name}", _ignore)
            for name in self.query.groups
        }

    def hold_row(self, sql: str, wish: str) -> str:
        """The field of a row that holds an expression."""
        return self._hold(("row", sql), wish, lambda name: self.row.__setitem__(name, sql))

    def hold_test(self, sql: str, wish: str) -> str:
        """The field of a row that holds whether a condition on it alone is met."""
        name = self.hold_row(sql, wish)
        self.tests[name] = sql
        return name

    def hold(self, kind: Kind, variable: str, value: str, wish: str, cast: str = "") -> str:
        """The field of a run that holds a figure over a field of its rows."""

        def add(name: str) -> None:
            self.fields[name] = Field(name, kind, variable, value, cast)

        return self._hold(("run", kind, fold(variable), value), wish, add)

    def hold_value(self, kind: Literal["last", "first"], variable: str, attribute: str) -> str:
        row = self.hold_row(attribute, attribute)
        return self.hold(kind, variable, row, f"{kind}_{variable}_{attribute}")

    def hold_aggregate(self, node: Aggregate) -> str:
        """What computes a figure from fields of a run, which are made if need be."""
        variable = node.variable
        wish = f"{node.function}_{variable}" if variable else node.function
        if node.this is None:
            return f"{RUN}.{self.hold('count', variable, '', f'{wish}_rows')}"
        sql = write_sql(node.this)
        if node.function in ("sum", _AVERAGE):
            return self._hold_sum(node, sql, variable)
        value = self.hold_row(sql, sql)
        kind: Kind = node.function  # type: ignore[assignment]
        return f"{RUN}.{self.hold(kind, variable, value, f'{wish}_{sql}')}"

    def _hold_sum(self, node: Aggregate, sql: str, variable: str) -> str:
        type_ = find_sum_type(node.this, self.types)
        is_average = node.function == _AVERAGE
        if is_average and not type_.is_decimal:
            # As Spark's avg does: in floating point from the beginning.
            type_ = SumType("DOUBLE", "DOUBLE")
        term = self.hold_row(type_.write_term(_wrap(sql)), f"{sql}_{type_.sum or 'sum'}")
        scope = f"{variable}_" if variable else ""
        cast = type_.sum if type_.is_decimal else ""
        total = self.hold("sum", variable, term, f"sum_{scope}{sql}", cast)
        if not is_average:
            return f"{RUN}.{total}"
        count = self.hold("count", variable, self.hold_row(sql, sql), f"count_{scope}{sql}")
        quotient = f"{RUN}.{total} / nullif({RUN}.{count}, 0)"
        return f"CAST({quotient} AS {type_.average})" if type_.is_decimal else f"({quotient})"

    def write_predicate(self, predicate: Predicate, binding: Binding) -> str:
        """A predicate with several rows in it, at a binding of its variable."""

        def write(node: exp.Expr) -> str | None:
            if isinstance(node, Aggregate):
                return self.hold_aggregate(node)
            if not isinstance(node, Value):
                return None
            is_own = fold(node.variable) == fold(predicate.variable)
            if is_own and (node.subscript in ("", "i") or (node.subscript == "1" and binding.is_first_of_variable)):
                return f"{ROW}.{self.hold_row(node.attribute, node.attribute)}"
            if binding.is_start:
                # No earlier variable has been bound, and none ever will be in this run.
                return write_null(f"{ROW}.{self.hold_row(node.attribute, node.attribute)}")
            kind: Literal["last", "first"] = "first" if node.subscript == "1" else "last"
            return f"{RUN}.{self.hold_value(kind, node.variable, node.attribute)}"

        return write_sql(predicate.tree, write)

    def write_output(self, tree: exp.Expr, groups: str) -> str:
        """An output, or HAVING, over the fields of a run. `groups` is what the grouped columns are qualified by."""

        def write(node: exp.Expr) -> str | None:
            if isinstance(node, Aggregate):
                return self.hold_aggregate(node)
            if isinstance(node, exp.Column):
                return f"{groups}.{self._column(node.name)}"
            return None

        return write_sql(tree, write)

    def _column(self, group: str) -> str:
        return next(column for name, column in self.columns.items() if fold(name) == fold(group))

    def _hold(self, key: tuple[str, ...], wish: str, add: Callable[[str], None]) -> str:
        if key not in self._keys:
            stem = re.sub(r"\W+", "_", wish).strip("_").lower()[:40].strip("_") or "value"
            stem = stem if not stem[0].isdigit() else f"v_{stem}"
            name, number = stem, 1
            while name in self._taken or name.upper() in _WORDS:
                number += 1
                name = f"{stem}_{number}"
            self._taken.add(name)
            self._keys[key] = name
            add(name)
        return self._keys[key]


def _ignore(name: str) -> None:
    """Some names are only kept from being given twice."""


# ORDER is a word of the grammar too, although only ORDER BY is a token.
_WORDS = {word for phrase in Spark.Tokenizer.KEYWORDS for word in phrase.split()}


def quote(name: str) -> str:
    """A column's name as SQL, in quotes if the grammar has a use for the word."""
    is_plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.upper() not in _WORDS
    return name if is_plain else f"`{name}`"


def write_sql(tree: exp.Expr, write: Callable[[exp.Expr], str | None] | None = None) -> str:
    """An expression as SQL, with some of its nodes written by `write`."""
    copy = exp.Paren(this=tree.copy())
    if write is not None:
        for node in list(copy.walk(prune=lambda item: isinstance(item, (Aggregate, Value)))):
            text = write(node)
            if text is not None:
                node.replace(exp.Var(this=text))
    return str(copy.this.sql(dialect="spark", normalize_functions=False, comments=False))


def _wrap(sql: str) -> str:
    return sql if re.fullmatch(r"[\w.`]+", sql) else f"({sql})"


def describe(tree: exp.Expr) -> str:
    """An expression as a person would write it."""

    def write(node: exp.Expr) -> str | None:
        if isinstance(node, Value):
            bracket = f"[{node.subscript}]" if node.subscript else ""
            return f"{node.variable}{bracket}.{node.attribute}"
        if isinstance(node, Aggregate):
            return describe_aggregate(node)
        return None

    return write_sql(tree, write)


def describe_aggregate(node: Aggregate) -> str:
    bracket = "[..i-1]" if node.is_before else ""
    if node.this is None:
        return f"count({node.variable}.*)" if node.variable else "count(*)"

    def write(inner: exp.Expr) -> str | None:
        if isinstance(inner, exp.Column) and node.variable:
            return f"{node.variable}{bracket}.{inner.sql(dialect='spark')}"
        return None

    return f"{node.function}({write_sql(node.this, write)})"


def hold_outputs(memory: Memory, outputs: Iterable[Output]) -> None:
    """Make the fields that the outputs and HAVING need."""
    for output in outputs:
        memory.write_output(output.tree, "")
    if memory.query.having is not None:
        memory.write_output(memory.query.having, "")
