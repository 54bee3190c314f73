"""A window query, taken apart: keys, aggregates, and the expressions over these that the view shows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.translate.translation import Source
from airflow_provider_viewdf.translate.tree import place_of
from airflow_provider_viewdf.translate.window.aggregates import (
    AGGREGATES,
    HOLISTIC,
    UNDETERMINED,
    Aggregate,
    Rows,
    build_aggregate,
)
from airflow_provider_viewdf.translate.window.calls import Call, canonical, outermost_calls, read_call, write
from airflow_provider_viewdf.translate.window.states import PLAIN_NAME, State, union_of_states

KNOWN = frozenset(AGGREGATES) | HOLISTIC
# Names of key columns that could be those of states.
_TAKEN = re.compile(
    r"row_count|part|part_timestamp|__.*|(key|count|true_count|set|sum|total|min|max|all|any|bit|first|last|present|moments|sketch|quantiles\d*|scaled\d*)_.*"
)
_CLOCKS = ("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "unix_timestamp")
# The fewest and the most arguments of aggregates that take more than one.
_ARGUMENTS: Mapping[str, tuple[int, float]] = {
    "count": (1, math.inf),
    **dict.fromkeys(("min_by", "max_by"), (2, 2)),
    **dict.fromkeys(("approx_percentile", "percentile_approx"), (2, 3)),
    **dict.fromkeys(("first", "first_value", "last", "last_value", "approx_count_distinct"), (1, 2)),
}
# Put into the place of the source's name, and replaced by it with its subscript when the text is written.
SOURCE_NAME = "__source__"


@dataclass(frozen=True, slots=True)
class Key:
    """A GROUP BY expression: its text over rows of the source, and its column in the helper views."""

    text: str
    column: str


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the view: over keys and states (`value`), and over rows of the source (`direct`)."""

    name: str
    value: str
    direct: str


@dataclass(frozen=True, slots=True)
class TakenApart:
    """`direct` is the whole query over rows of the source; `obstacle` says why nothing but that will do."""

    source: Source
    filter: str
    keys: tuple[Key, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: str
    direct: str
    obstacle: str = ""

    @property
    def states(self) -> tuple[State, ...]:
        return union_of_states([item.states for item in self.aggregates])

    @property
    def is_subtractable(self) -> bool:
        return not self.obstacle and all(item.is_subtractable for item in self.aggregates)


def take_apart(select: exp.Expr, source: Source, alias: str, text: str) -> TakenApart:
    """`select` is a query over one table, which is the source."""
    assert isinstance(select, exp.Select)
    return _Reader(select, source, alias, text).read()


@dataclass
class _Reader:
    select: exp.Select
    source: Source
    alias: str
    text: str
    aggregates: dict[str, Aggregate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.qualifiers = {fold(self.alias or self.source.name)}
        self.key_kinds: set[type[exp.Expr]] = set()
        self.rows = Rows({fold(column.name): column.type for column in self.source.columns}, self.source.ordered)
        self.outputs = [(self._output_name(item), self._simplify(item.unalias())) for item in self.select.expressions]

    def read(self) -> TakenApart:
        group, having, where = (self.select.args.get(name) for name in ("group", "having", "where"))
        shape = _find_shape(self.select)
        # In an order of their own, since GROUP BY a, b and GROUP BY b, a are the same groups.
        key_nodes = [] if shape else sorted(self._keys(group), key=write)
        if any(node.find(exp.Column) is None for node in key_nodes):
            shape, key_nodes = "it groups by a constant", []
        keys = tuple(Key(write(node), self._key_column(node, number)) for number, node in enumerate(key_nodes, start=1))
        # Writing every node out, to look it up among the keys, would take very long for a long expression.
        self.key_kinds = {type(node) for node in key_nodes}
        by_text = {key.text: key.column for key in keys}
        wanted = [node for _, node in self.outputs] + ([self._simplify(having.this)] if having is not None else [])
        if shape:
            values = ["" for _ in wanted]
            for node in wanted:
                for call in outermost_calls(node, KNOWN | frozenset(UNDETERMINED)):
                    self._refuse_undetermined(call)
                    self._aggregate(call.node)
        else:
            values = [self._over_states(node, by_text, position) for position, node in enumerate(wanted)]
        condition = values.pop() if having is not None else ""
        row_level = [*key_nodes, *([where.this] if where is not None else [])]
        row_level += [argument for item in self.aggregates.values() for argument in item.call.node.walk()]
        if not shape and any(_is_clock(node) for top in row_level for node in top.walk()):
            shape = "it asks for the time inside, which moves with the window"
        obstacles = [shape, *(item.obstacle for item in self.aggregates.values())]
        outputs = tuple(
            Output(name, value, self._direct(item))
            for (name, _), value, item in zip(self.outputs, values, self.select.expressions, strict=True)
        )
        return TakenApart(
            self.source,
            write(self._simplify(where.this)) if where is not None else "",
            keys,
            tuple(self.aggregates.values()),
            outputs,
            condition,
            self._direct_query(outputs),
            next((item for item in obstacles if item), ""),
        )

    def _simplify(self, node: exp.Expr) -> exp.Expr:
        return canonical(node, self.qualifiers)

    def _output_name(self, item: exp.Expr) -> str:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            self._fail("A window query names its columns one by one; * is none of them.", item)
        return item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else write(self._simplify(item))

    def _keys(self, group: exp.Expr | None) -> list[exp.Expr]:
        if group is None:
            return []
        if group.args.get("all"):
            return [node for _, node in self.outputs if not list(outermost_calls(node, KNOWN))]
        nodes = []
        for item in group.expressions:
            node = self._simplify(item)
            if isinstance(node, exp.Literal) and node.name.isdigit():
                number = int(node.name)
                if not 1 <= number <= len(self.outputs):
                    self._fail(f"GROUP BY {number} names no column; there are {len(self.outputs)}.", item)
                node = self.outputs[number - 1][1]
            elif isinstance(node, exp.Column) and not node.table and fold(node.name) not in self.rows.types:
                # An alias of the query, unless the source has such a column.
                named = {fold(name): output for name, output in self.outputs}
                node = named.get(fold(node.name), node)
            if calls := list(outermost_calls(node, KNOWN)):
                self._fail(f"GROUP BY cannot contain the aggregate {calls[0].function}.", item)
            if node not in nodes:
                nodes.append(node)
        return nodes

    def _key_column(self, node: exp.Expr, number: int) -> str:
        name = node.name if isinstance(node, exp.Column) and not node.table else ""
        is_free = PLAIN_NAME.fullmatch(name) is not None and not _TAKEN.fullmatch(fold(name))
        return name if is_free else f"key_{number}"

    def _over_states(self, node: exp.Expr, keys: Mapping[str, str], position: int, depth: int = 0) -> str:
        """An expression of the query, over keys and states in the place of columns and aggregates."""
        return write(self._replace(node.copy(), keys, position, depth))

    def _replace(self, node: exp.Expr, keys: Mapping[str, str], position: int, depth: int) -> exp.Expr:
        column = keys.get(write(node)) if type(node) in self.key_kinds else None
        if column is not None:
            return exp.Var(this=quote(column))
        call = read_call(node)
        if call is not None and call.function in KNOWN:
            return exp.Var(this=_in_parentheses(self._aggregate(node).value))
        if call is not None:
            self._refuse_undetermined(call)
        if isinstance(node, exp.Column):
            return self._replace_column(node, keys, position, depth)
        if call is not None and any(self._is_ungrouped(item, keys) for item in call.node.find_all(exp.Column)):
            self._fail(
                f"{call.function} is no aggregate that a window can have; there are "
                f"{', '.join(sorted(KNOWN - {'mean', 'std', 'percentile_approx', 'try_sum', 'try_avg'}))}.",
                node,
            )
        for name, value in list(node.args.items()):
            if isinstance(value, exp.Expr):
                node.set(name, self._replace(value, keys, position, depth))
            elif isinstance(value, list):
                new = [self._replace(v, keys, position, depth) if isinstance(v, exp.Expr) else v for v in value]
                node.set(name, new)
        return node

    def _refuse_undetermined(self, call: Call) -> None:
        if call.function in UNDETERMINED:
            self._fail(
                f"{call.function} depends on the order in which rows are read, which nothing determines; "
                f"use {UNDETERMINED[call.function]}.",
                call.node,
            )

    def _is_ungrouped(self, column: exp.Column, keys: Mapping[str, str]) -> bool:
        if write(column) in keys or any(fold(name) == fold(column.name) for name, _ in self.outputs):
            return False
        above = column.parent
        while above is not None:
            if (type(above) in self.key_kinds and write(above) in keys) or (
                (call := read_call(above)) is not None and call.function in KNOWN
            ):
                return False
            above = above.parent
        return True

    def _replace_column(self, node: exp.Column, keys: Mapping[str, str], position: int, depth: int) -> exp.Expr:
        # HAVING and the columns further right may use the names that the columns before them are given.
        for name, other in self.outputs[:position]:
            if fold(name) == fold(node.name) and not node.table and other != node and depth < len(self.outputs):
                return exp.Var(this=_in_parentheses(self._over_states(other, keys, position, depth + 1)))
        self._fail(
            f"{write(node)} is neither in GROUP BY nor inside an aggregate; put it into one of the two.",
            node,
        )

    def _aggregate(self, node: exp.Expr) -> Aggregate:
        call = read_call(node)
        assert call is not None
        if call.text not in self.aggregates:
            for argument in call.arguments:
                if inner := list(outermost_calls(argument, KNOWN)):
                    self._fail(f"{call.function} cannot contain another aggregate, {inner[0].function}.", node)
            self._check_arguments(node)
            self.aggregates[call.text] = build_aggregate(call, self.rows)
        return self.aggregates[call.text]

    def _check_arguments(self, node: exp.Expr) -> None:
        call = read_call(node)
        assert call is not None
        least, most = _ARGUMENTS.get(call.function, (1, 1))
        if not least <= len(call.arguments) <= most and not call.is_ordered and call.function not in HOLISTIC:
            what = "one argument" if least == 1 else "two arguments"
            self._fail(f"{call.function} needs {what}.", node)
        if call.function in ("approx_percentile", "percentile_approx"):
            self._check_percentage(call.arguments[1])
        if call.function in ("first", "first_value", "last", "last_value") and not self.source.ordered:
            other = "min_by" if call.function.startswith("first") else "max_by"
            self._fail(
                f"{self.source.name} has no ORDERED column, so its rows have no first and no last; "
                f"use {other}(value, column) to say what they are ordered by.",
                node,
            )

    def _check_percentage(self, wanted: exp.Expr) -> None:
        for column in wanted.find_all(exp.Column):
            self._fail(
                f"The percentage is the same for all rows, so it cannot be {write(column)}; write a number.", wanted
            )
        for number in wanted.find_all(exp.Literal):
            if not number.is_string and (float(number.name) > 1 or number.find_ancestor(exp.Neg)):
                self._fail(f"{write(wanted)} is no percentage; write a number from 0 to 1.", wanted)

    def _direct(self, item: exp.Expr) -> str:
        """An output over rows of the source. Only what Spark leaves undetermined is written differently."""
        return write(self._make_direct(item.unalias()))

    def _make_direct(self, node: exp.Expr) -> exp.Expr:
        copy = node.copy()
        for call in list(outermost_calls(copy, KNOWN)):
            known = self.aggregates.get(write(self._simplify(call.node)))
            if known is None or known.direct == known.call.text:
                continue
            value = exp.Var(this=known.direct)
            if call.node is copy:
                return value
            call.node.replace(value)
        return copy

    def _direct_query(self, outputs: tuple[Output, ...]) -> str:
        query = self.select.copy()
        having = query.args.get("having")
        if having is not None:
            having.set("this", self._make_direct(having.this))
        columns = [exp.Var(this=f"{output.direct} AS {quote(output.name)}") for output in outputs]
        query.set("expressions", columns)
        table = query.args["from_"].this
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(self.source.name)))
        table.set("this", exp.to_identifier(SOURCE_NAME))
        return write(query)

    def _fail(self, message: str, node: exp.Expr) -> NoReturn:
        start, end = place_of(node)
        raise LanguageError(message, text=self.text, start=start, end=end)


def quote(name: str) -> str:
    """A name as it can stand in a query: in quotes if it has odd letters, or Spark's grammar has a use for the word."""
    is_plain = PLAIN_NAME.fullmatch(name) is not None and name.upper() not in Spark.Tokenizer.KEYWORDS
    return name if is_plain else f"`{name.replace('`', '``')}`"


def _in_parentheses(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+|CASE .* END", text) and text.count("CASE") < 2 else f"({text})"


def _is_clock(node: exp.Expr) -> bool:
    if isinstance(node, (exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)):
        return True
    return isinstance(node, exp.Anonymous) and not node.expressions and fold(node.name) in _CLOCKS


def _find_shape(select: exp.Select) -> str:
    """What about the query as a whole is beyond keys and aggregates, or ""."""
    for name, words in (
        ("with_", "WITH"),
        ("distinct", "DISTINCT"),
        ("order", "ORDER BY"),
        ("limit", "LIMIT"),
        ("offset", "OFFSET"),
        ("qualify", "QUALIFY"),
        ("laterals", "LATERAL VIEW"),
        ("windows", "WINDOW"),
        ("sort", "SORT BY"),
        ("cluster", "CLUSTER BY"),
        ("distribute", "DISTRIBUTE BY"),
    ):
        if select.args.get(name):
            return f"it has {words}"
    group = select.args.get("group")
    if group is not None and (
        list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
        or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
    ):
        return "it groups by several sets of keys"
    if list(select.find_all(exp.Window)):
        return "it has OVER"
    if any(item is not select for item in select.find_all(exp.Query)):
        return "it has a subquery"
    return ""
