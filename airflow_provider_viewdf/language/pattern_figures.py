"""The outputs of a pattern query: figures over a match, and expressions of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language.dialect import parse_query, read_tokens
from airflow_provider_viewdf.language.outside import function_name
from airflow_provider_viewdf.translate.pattern.query import Aggregate, Output, Value
from airflow_provider_viewdf.translate.tree import place_of

SUPPORTED = ("count", "sum", "avg", "min", "max", "first", "last")
_OTHER_NAMES = {"mean": "avg", "first_value": "first", "last_value": "last"}
# Spark's aggregates that a run would have to remember all its rows for, or that nobody has asked for yet.
_UNSUPPORTED = {
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "bit_and", "bit_or", "bit_xor",
    "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count_if", "count_min_sketch", "covar_pop",
    "covar_samp", "every", "grouping", "histogram_numeric", "kurtosis", "listagg", "max_by", "median", "min_by", "mode",
    "percentile", "percentile_approx", "percentile_cont", "percentile_disc", "product", "regr_avgx", "regr_avgy",
    "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "some",
    "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "try_avg", "try_sum", "var_pop", "var_samp", "variance",
}  # fmt: skip


def place_of_node(node: exp.Expr) -> tuple[int, int]:
    """Where a node stands: from the first to the last place in it."""
    places = [place_of(item) for item in node.walk() if "place" in item.meta or "start" in item.meta]
    return (min(start for start, _ in places), max(end for _, end in places)) if places else place_of(node)


@dataclass(frozen=True)
class FigureReader:
    text: str
    groups: Mapping[str, str]
    columns: Mapping[str, str]

    @staticmethod
    def is_aggregate(name: str) -> bool:
        return name in SUPPORTED or name in _OTHER_NAMES or name in _UNSUPPORTED

    def read_outputs(self, expressions: Sequence[exp.Expr]) -> list[Output]:
        outputs: list[Output] = []
        for expression in expressions:
            inner = expression.this if isinstance(expression, exp.Alias) else expression
            if isinstance(expression, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
                _fail("* is not possible in a pattern query; name the attributes.", self.text, expression)
            earlier = {fold(output.name): output.tree for output in outputs}
            outputs.append(Output(self._name(expression, inner), self._read(inner, earlier, prefer_aliases=False)))
        return outputs

    def read_having(self, tree: exp.Expr, outputs: Sequence[Output]) -> exp.Expr:
        return self._read(tree, {fold(output.name): output.tree for output in outputs}, prefer_aliases=True)

    def _name(self, expression: exp.Expr, inner: exp.Expr) -> str:
        if isinstance(expression, exp.Alias):
            return str(expression.alias)
        if isinstance(inner, exp.Column):
            return str(inner.name)
        if isinstance(inner, Value):
            return inner.attribute.split(".")[-1].strip("`")
        start, end = place_of_node(inner)
        return " ".join(self.text[start:end].split())

    def _read(self, tree: exp.Expr, aliases: Mapping[str, exp.Expr], *, prefer_aliases: bool) -> exp.Expr:
        root = exp.Paren(this=tree.copy())
        for node in list(root.walk()):
            name = function_name(node)
            if self.is_aggregate(name) and _is_inside(node, root):
                node.replace(self.make_aggregate(node, name, self.text, is_before=False))
        for node in list(root.walk(prune=lambda item: isinstance(item, Aggregate))):
            if isinstance(node, Value):
                node.replace(self._read_value(node))
            elif isinstance(node, exp.Column) and not isinstance(node.parent, exp.Lambda):
                node.replace(self._read_column(node, aliases, prefer_aliases))
        found = root.this
        assert isinstance(found, exp.Expr)
        return found

    def _read_value(self, value: Value) -> exp.Expr:
        if value.subscript in ("i-1", "..i-1"):
            _fail(
                f"{value.variable}[{value.subscript}] is seen from a current row, and a match has none; write "
                f"last({value.variable}.{value.attribute}), or an aggregate over {value.variable}.",
                self.text,
                value,
            )
        if value.attribute == "*":
            _fail(f"{value.variable}.* is no value; name one of its attributes.", self.text, value)
        function = "first" if value.subscript == "1" else "last"
        return make_figure(function, value.variable, attribute_tree(value.attribute))

    def _read_column(self, column: exp.Column, aliases: Mapping[str, exp.Expr], prefer_aliases: bool) -> exp.Expr:
        key = fold(column.name)
        if not column.table and key in self.groups:
            return exp.column(exp.to_identifier(self.groups[key], quoted=True))
        if not column.table and key in aliases and (prefer_aliases or (self.columns and key not in self.columns)):
            return exp.Paren(this=aliases[key].copy())
        # As in the thesis, an attribute that is not grouped is that of the match's last row.
        return make_figure("last", "", column.copy())

    @staticmethod
    def make_aggregate(node: exp.Expr, name: str, text: str, *, is_before: bool) -> Aggregate:
        function = _OTHER_NAMES.get(name, name)
        allowed = SUPPORTED[:5] if is_before else SUPPORTED
        if function not in allowed:
            _fail(
                f"{name}() cannot be computed over the rows of a match; there are {', '.join(allowed[:-1])} and {allowed[-1]}.",
                text,
                node,
            )
        if isinstance(node.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            _fail(
                f"{name}() has neither FILTER nor IGNORE NULLS in a pattern query; use CASE inside of it.", text, node
            )
        arguments = list(node.expressions) if isinstance(node, exp.Anonymous) else [node.this, *node.expressions]
        arguments = [item for item in arguments if isinstance(item, exp.Expr)]
        if len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
            problem = "has no DISTINCT" if arguments and isinstance(arguments[0], exp.Distinct) else "has one argument"
            _fail(f"{name}() {problem} in a pattern query.", text, node)
        return _read_argument(arguments[0], node, function, text, is_before)


def _read_argument(argument: exp.Expr, node: exp.Expr, function: str, text: str, is_before: bool) -> Aggregate:
    inner = next((item for item in argument.walk() if FigureReader.is_aggregate(function_name(item))), None)
    if inner is not None or any(argument.find_all(Aggregate)):
        _fail("An aggregate cannot be taken of an aggregate.", text, node)
    values = list(argument.find_all(Value))
    variables = list(dict.fromkeys(value.variable for value in values))
    if len(variables) > 1:
        _fail(
            f"An aggregate is over the rows of one variable or of the whole match, not of {' and '.join(variables)} at once; "
            f"write one for each.",
            text,
            node,
        )
    variable = variables[0] if variables else ""
    is_star = isinstance(argument, exp.Star) or (isinstance(argument, Value) and argument.attribute == "*")
    if is_star or (isinstance(argument, exp.Literal) and function == "count"):
        if function != "count":
            _fail(f"{function}() needs an attribute; only count can have *.", text, node)
        return make_figure("count", variable, None, is_before=is_before, place=place_of_node(node))
    bare = next((item for item in argument.find_all(exp.Column)), None) if variable else None
    if bare is not None:
        _fail(
            f"{bare.name} could be that of any row; say of which variable's, like {variable}.{bare.name}.", text, bare
        )
    root = exp.Paren(this=argument.copy())
    for value in list(root.find_all(Value)):
        if value.subscript != ("..i-1" if is_before else ""):
            _fail(
                f"An aggregate is over all rows of a variable; write {value.variable}.{value.attribute} without a subscript.",
                text,
                value,
            )
        value.replace(attribute_tree(value.attribute))
    return make_figure(function, variable, root.this, is_before=is_before, place=place_of_node(node))


def make_figure(
    function: str,
    variable: str,
    argument: exp.Expr | None,
    *,
    is_before: bool = False,
    place: tuple[int, int] | None = None,
) -> Aggregate:
    figure = Aggregate(this=argument, function=function, variable=variable, is_before=is_before)
    if place is not None:
        figure.meta["place"] = place
    return figure


def attribute_tree(attribute: str) -> exp.Expr:
    """An attribute of a row, as a column."""
    text = f"SELECT {attribute}"
    tree = parse_query(read_tokens(text), text)
    found = tree.expressions[0]
    assert isinstance(found, exp.Expr)
    found.pop()
    for node in found.walk():
        node.meta.pop("start", None)
        node.meta.pop("end", None)
    return found


def _is_inside(node: exp.Expr, root: exp.Expr) -> bool:
    """Whether a node is still part of a tree in which others have been replaced."""
    ancestor: exp.Expr | None = node
    while ancestor is not None and ancestor is not root:
        ancestor = ancestor.parent
    return ancestor is root


def _fail(message: str, text: str, node: exp.Expr) -> NoReturn:
    start, end = place_of_node(node)
    raise LanguageError(message, text=text, start=start, end=end)
