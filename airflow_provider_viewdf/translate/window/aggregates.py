"""The aggregates of window queries: what each keeps, how its value follows from that, and what else is to know of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_provider_viewdf.translate.window import variance
from airflow_provider_viewdf.translate.window.calls import Call, write
from airflow_provider_viewdf.translate.window.infer_type import decimal_of, infer_type, is_inexact, is_integer
from airflow_provider_viewdf.translate.window.states import State, name_state


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A call with its states and its value over these; `direct` is the value over rows of the source.

    `obstacle` says why there are no states, in which case only recomputing helps.
    """

    call: Call
    states: tuple[State, ...]
    value: str
    direct: str
    obstacle: str = ""

    @property
    def is_subtractable(self) -> bool:
        return not self.obstacle and all(state.is_additive for state in self.states)


@dataclass(frozen=True, slots=True)
class Rows:
    """What the aggregates have to know of the rows of a source: types by folded name, and the column that is the time."""

    types: Mapping[str, str]
    ordered: str


def build_aggregate(call: Call, rows: Rows) -> Aggregate:
    """The aggregate that a call means. Its function must be one of AGGREGATES or HOLISTIC."""
    if call.function in HOLISTIC or call.is_ordered:
        return _recomputed(call, f"{call.function} needs all rows of the window")
    if call.is_distinct and call.function not in ("count", "min", "max", "collect_set"):
        return _recomputed(call, f"{call.function}(DISTINCT ...) needs all rows of the window")
    return AGGREGATES[call.function](call, rows)


def _recomputed(call: Call, obstacle: str) -> Aggregate:
    return Aggregate(call, (), "", call.text, obstacle)


def _unknown_type(call: Call) -> Aggregate:
    return _recomputed(
        call,
        f"the type of {write(call.arguments[0])} is not known; with a CAST inside {call.function} it would be",
    )


def _state(call: Call, prefix: str, rows: str, combine: str) -> State:
    return State(name_state(prefix, call.subject, call.is_plain), rows + call.filter, combine)


def count_state(call: Call) -> State:
    """How many values are not NULL."""
    name = name_state("count", call.subject, call.is_plain)
    inside = ", ".join(write(argument) for argument in call.arguments)
    return State(name, f"count({inside}){call.filter}", "sum({})", "BIGINT", is_additive=True)


def _count(call: Call, rows: Rows) -> Aggregate:
    if call.is_distinct:
        return _count_distinct(call)
    if isinstance(call.arguments[0], exp.Star) and not call.filter:
        state = State("row_count", "count(*)", "sum({})", "BIGINT", is_additive=True)
    else:
        state = count_state(call)
    return Aggregate(call, (state,), state.name, call.text)


def _count_distinct(call: Call) -> Aggregate:
    if any(argument.find(exp.Star) for argument in call.arguments):
        return _recomputed(call, "count(DISTINCT *) compares whole rows")
    values = [write(argument) for argument in call.arguments]
    if len(values) == 1:
        element = values[0]
    else:
        present = " AND ".join(f"{value} IS NOT NULL" for value in values)
        element = f"CASE WHEN {present} THEN struct({', '.join(values)}) END"
    state = _set_state(call, element)
    return Aggregate(call, (state,), f"CAST(size({state.name}) AS BIGINT)", call.text)


def _set_state(call: Call, element: str) -> State:
    # In order, so that the same set is the same content whatever way it was put together.
    return State(
        name_state("set", call.subject, call.is_plain),
        f"array_sort(collect_set({element}){call.filter})",
        "array_sort(array_distinct(flatten(collect_list({}))))",
    )


def _collect_set(call: Call, rows: Rows) -> Aggregate:
    state = _set_state(call, write(call.arguments[0]))
    return Aggregate(call, (state,), state.name, state.rows)


def _count_if(call: Call, rows: Rows) -> Aggregate:
    name = name_state("true_count", call.subject, call.is_plain)
    state = State(name, call.text, "sum({})", "BIGINT", is_additive=True)
    return Aggregate(call, (state,), state.name, call.text)


def _sum_states(call: Call, type_name: str, *, is_wide: bool = False) -> tuple[State, State]:
    """The sum and the number of the values that are not NULL, since the sum of none is NULL and not 0."""
    value = write(call.arguments[0])
    if is_inexact(type_name):
        total = _state(call, "sum", f"sum({value})", "sum({})")
    elif digits := decimal_of(type_name):
        wanted = f"DECIMAL({min(38, digits[0] + 10)}, {digits[1]})"
        total = _additive(call, "sum", value, wanted)
    elif is_wide:
        total = _additive(call, "total", f"CAST({value} AS DECIMAL(20, 0))", "DECIMAL(30, 0)")
    else:
        name = name_state("sum", call.subject, call.is_plain)
        rows = f"coalesce(sum({value}){call.filter}, 0)"
        total = State(name, rows, "sum({})", "BIGINT", is_additive=True, is_wide=type_name == "bigint")
    return total, count_state(call)


def _additive(call: Call, prefix: str, value: str, type_name: str) -> State:
    rows = f"CAST(coalesce(sum({value}){call.filter}, 0) AS {type_name})"
    return State(name_state(prefix, call.subject, call.is_plain), rows, "sum({})", type_name, is_additive=True)


def _sum(call: Call, rows: Rows) -> Aggregate:
    type_name = infer_type(call.arguments[0], rows.types)
    if is_inexact(type_name):
        total = _sum_states(call, "double")[0]
        return Aggregate(call, (total,), total.name, call.text)
    if type_name is None or not (is_integer(type_name) or decimal_of(type_name)):
        return _unknown_type(call)
    total, number = _sum_states(call, type_name)
    return Aggregate(call, (total, number), f"CASE WHEN {number.name} > 0 THEN {total.name} END", call.text)


def _avg(call: Call, rows: Rows) -> Aggregate:
    type_name = infer_type(call.arguments[0], rows.types)
    if type_name is None or not (is_inexact(type_name) or is_integer(type_name) or decimal_of(type_name)):
        return _unknown_type(call)
    digits = decimal_of(type_name)
    if digits and _loses_digits(*digits):
        return _recomputed(call, f"the average of a {type_name.upper()} has more digits than a quotient of sums")
    total, number = _sum_states(call, type_name, is_wide=type_name == "bigint")
    if digits:
        precision, scale = min(38, digits[0] + 4), min(38, digits[1] + 4)
        value = f"CAST({total.name} / CAST({number.name} AS DECIMAL(20, 0)) AS DECIMAL({precision}, {scale}))"
    else:
        value = f"CAST({total.name} AS DOUBLE) / {number.name}"
    return Aggregate(call, (total, number), f"CASE WHEN {number.name} > 0 THEN {value} END", call.text)


def _loses_digits(precision: int, scale: int) -> bool:
    """Whether Spark's division of the sum by the count has fewer digits behind the point than its average."""
    before_point = min(38, precision + 10) - scale
    # Of 38 digits, the ones before the point come first, but for six behind it.
    behind_point = max(38 - before_point, min(6, scale + 21))
    return behind_point < min(38, scale + 4)


def _same(prefix: str, function: str) -> Callable[[Call, Rows], Aggregate]:
    """An aggregate whose states are put together by itself."""

    def build(call: Call, rows: Rows) -> Aggregate:
        state = _state(call, prefix, f"{function}({write(call.arguments[0])})", f"{function}({{}})")
        return Aggregate(call, (state,), state.name, call.text)

    return build


def _by(function: str) -> Callable[[Call, Rows], Aggregate]:
    """min_by and max_by: of values that go with the same least or greatest one, the least or the greatest."""

    def build(call: Call, rows: Rows) -> Aggregate:
        value, by = (write(argument) for argument in call.arguments)
        pair = f"CASE WHEN {by} IS NOT NULL THEN named_struct('by', {by}, 'value', {value}) END"
        return _pair(call, f"{function}_by", function, pair)

    return build


def _at(function: str, prefix: str) -> Callable[[Call, Rows], Aggregate]:
    """first and last by the time of the row; of several at the same time, the least or the greatest value."""

    def build(call: Call, rows: Rows) -> Aggregate:
        value = write(call.arguments[0])
        pair = f"named_struct('at', {rows.ordered}, 'value', {value})"
        if call.ignores_nulls or any(_is_true(argument) for argument in call.arguments[1:]):
            pair = f"CASE WHEN {value} IS NOT NULL THEN {pair} END"
            return _pair(call, f"present_{prefix}", function, pair)
        return _pair(call, prefix, function, pair)

    return build


def _is_true(node: exp.Expr) -> bool:
    return isinstance(node, exp.Boolean) and bool(node.this)


def _pair(call: Call, prefix: str, function: str, pair: str) -> Aggregate:
    state = _state(call, prefix, f"{function}({pair})", f"{function}({{}})")
    direct = f"({state.rows}).value" if call.filter else f"{state.rows}.value"
    return Aggregate(call, (state,), f"{state.name}.value", direct)


def _spread(call: Call, rows: Rows) -> Aggregate:
    """Variance and standard deviation."""
    type_name = infer_type(call.arguments[0], rows.types)
    value = write(call.arguments[0])
    number = count_state(call)
    if exact := variance.scale_exactly(value, type_name):
        scaled, scale = exact
        total = _additive(call, f"scaled{scale}_sum", scaled, "DECIMAL(20, 0)")
        squares = _additive(call, f"scaled{scale}_squares", f"{scaled} * {scaled}", "DECIMAL(38, 0)")
        states: tuple[State, ...] = (number, total, squares)
        pair = variance.exact_moments(number.name, total.name, squares.name, scale)
    elif is_inexact(type_name) or is_integer(type_name) or decimal_of(type_name):
        name = name_state("moments", call.subject, call.is_plain)
        moments = State(name, variance.moments_of(value, call.filter), variance.COMBINE)
        states = (moments,)
        pair = f"{moments.name}.n", f"{moments.name}.m2"
    else:
        return _unknown_type(call)
    return Aggregate(call, states, variance.write_value(call.function, *pair), call.text)


def _approx_count_distinct(call: Call, rows: Rows) -> Aggregate:
    if len(call.arguments) > 1:
        return _recomputed(call, "approx_count_distinct with a precision of its own has no sketch that can be merged")
    value = write(call.arguments[0])
    if is_inexact(infer_type(call.arguments[0], rows.types)):
        # So that -0.0 is 0.0.
        value = f"{value} + 0" if call.is_plain else f"({value}) + 0"
    # The sketch leaves out empty strings, so there are none.
    state = _state(call, "sketch", f"hll_sketch_agg(concat('=', CAST({value} AS STRING)))", "hll_union_agg({})")
    return Aggregate(call, (state,), f"coalesce(hll_sketch_estimate({state.name}), 0)", call.text)


# So many digits of any decimal are the same again after they were a double, as which KLL sketches keep them.
_DIGITS_OF_DOUBLES = 15
# The error of a KLL sketch is about 2.3 / k ** 0.9.
_SKETCH_SIZE = 400


def _approx_percentile(call: Call, rows: Rows) -> Aggregate:
    type_name = infer_type(call.arguments[0], rows.types)
    if type_name is None or not (is_inexact(type_name) or is_integer(type_name) or decimal_of(type_name)):
        return _unknown_type(call)
    if (digits := decimal_of(type_name)) and digits[0] > _DIGITS_OF_DOUBLES:
        return _recomputed(call, f"a {type_name.upper()} has more digits than the doubles of a sketch")
    value, wanted = write(call.arguments[0]), call.arguments[1]
    size = _SKETCH_SIZE
    if len(call.arguments) > 2:
        accuracy = call.arguments[2]
        if not isinstance(accuracy, exp.Literal) or not accuracy.name.isdigit():
            return _recomputed(call, "the accuracy is no number")
        size = max(8, min(65535, math.ceil((2.3 * int(accuracy.name)) ** (1 / 0.9))))
    kind, cast = ("bigint", "BIGINT") if is_integer(type_name) else ("double", "DOUBLE")
    rows_sql = f"kll_sketch_agg_{kind}(CAST({value} AS {cast}), {size})"
    # Whatever quantiles are asked for, they come from the same sketch.
    about = replace(call, arguments=call.arguments[:1])
    name = name_state(f"quantiles{size}", about.subject, about.is_plain)
    state = State(name, rows_sql + call.filter, f"kll_merge_agg_{kind}({{}})")
    is_list = isinstance(wanted, (exp.Array, exp.Bracket)) or (
        isinstance(wanted, exp.Anonymous) and wanted.name.lower() == "array"
    )
    result = f"ARRAY<{type_name}>" if is_list else type_name
    quantile = f"kll_sketch_get_quantile_{kind}({name}, {write(wanted)})"
    answer = f"CASE WHEN kll_sketch_get_n_{kind}({name}) > 0 THEN CAST({quantile} AS {result}) END"
    return Aggregate(call, (state,), answer, call.text)


AGGREGATES: Mapping[str, Callable[[Call, Rows], Aggregate]] = {
    "sum": _sum,
    "count": _count,
    "count_if": _count_if,
    "avg": _avg,
    "mean": _avg,
    "min": _same("min", "min"),
    "max": _same("max", "max"),
    "bool_and": _same("all", "bool_and"),
    "every": _same("all", "bool_and"),
    "bool_or": _same("any", "bool_or"),
    "some": _same("any", "bool_or"),
    "any": _same("any", "bool_or"),
    "bit_and": _same("bit_and", "bit_and"),
    "bit_or": _same("bit_or", "bit_or"),
    "bit_xor": _same("bit_xor", "bit_xor"),
    "var_pop": _spread,
    "var_samp": _spread,
    "variance": _spread,
    "stddev": _spread,
    "std": _spread,
    "stddev_pop": _spread,
    "stddev_samp": _spread,
    "first": _at("min", "first"),
    "first_value": _at("min", "first"),
    "last": _at("max", "last"),
    "last_value": _at("max", "last"),
    "min_by": _by("min"),
    "max_by": _by("max"),
    "collect_set": _collect_set,
    "approx_count_distinct": _approx_count_distinct,
    "approx_percentile": _approx_percentile,
    "percentile_approx": _approx_percentile,
}

# Determined by the rows, but by nothing less than all of them, or rarely enough asked for.
HOLISTIC = frozenset(
    {
        "median", "percentile", "percentile_cont", "percentile_disc", "corr", "covar_pop", "covar_samp", "skewness",
        "kurtosis", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
        "regr_sxy", "regr_syy", "try_sum", "try_avg",
    }
)  # fmt: skip

# Aggregates of Spark that depend on the order in which it happens to read rows, and what to use in their place.
UNDETERMINED = {
    "collect_list": "collect_set",
    "array_agg": "collect_set",
    "listagg": "collect_set",
    "string_agg": "collect_set",
    "any_value": "min, or first",
    "mode": "max_by over a view that counts",
}
