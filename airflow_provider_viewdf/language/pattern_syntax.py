"""From the tokens of a pattern query to a checked PatternQuery. What is wrong is said where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError, UnknownColumnError
from airflow_provider_viewdf.language.checks import refuse_undetermined
from airflow_provider_viewdf.language.outside import function_name
from airflow_provider_viewdf.language.pattern_clause import PatternClause
from airflow_provider_viewdf.language.pattern_figures import FigureReader, attribute_tree, place_of_node
from airflow_provider_viewdf.language.pattern_values import parse_with_values
from airflow_provider_viewdf.language.statements import RESERVED_COLUMNS, Statement
from airflow_provider_viewdf.translate.pattern.memory import quote
from airflow_provider_viewdf.translate.pattern.pieces import Piece, cut_pieces
from airflow_provider_viewdf.translate.pattern.query import Aggregate, PatternQuery, Predicate, Value
from airflow_provider_viewdf.translate.translation import Source
from airflow_provider_viewdf.translate.tree import PartTable, place_of

SourceOf = Callable[[str, int, int], Source]

_ALLOWED = {"kind", "expressions", "from_", "where", "group", "having", "order"}
_CLAUSE_NAMES = {
    "with_": "WITH",
    "distinct": "DISTINCT",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "laterals": "LATERAL VIEW",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "hint": "A hint",
}


def read_pattern_query(
    item: Statement, clause: PatternClause, source_of: SourceOf, text: str
) -> tuple[PatternQuery, Source, tuple[Piece, ...]]:
    names = {fold(name): name for name in clause.names}
    tree = parse_with_values(clause.rest, names, text)
    refuse_undetermined(tree, item.name.text, text)
    table = _find_source(tree, text)
    assert isinstance(tree, exp.Select)
    source = source_of(table.name, *place_of(table))
    if source.kind == "dimension":
        _fail(
            f"{source.name} is a dimension table, which has no parts; a pattern is found in a stream or a view.",
            text,
            table,
        )
    if not tree.expressions:
        _fail("SELECT names nothing; name what is asked of a match, like count(*) AS ct.", text, tree)
    reader = _QueryReader(item, clause, source, table, names, text)
    query = reader.read(tree)
    return query, source, tuple(reader.cut_pieces(tree, query))


def find_source(item: Statement, clause: PatternClause, text: str) -> exp.Table:
    """The table that a pattern query reads."""
    return _find_source(parse_with_values(clause.rest, {fold(name): name for name in clause.names}, text), text)


def _find_source(tree: exp.Expr, text: str) -> exp.Table:
    if not isinstance(tree, exp.Select):
        _fail("A pattern query is one SELECT; put the rest into a plain view that reads this one.", text, tree)
    for name, value in tree.args.items():
        if value and name not in _ALLOWED and name != "joins":
            what = _CLAUSE_NAMES.get(name, name.strip("_").upper())
            place = value[0] if isinstance(value, list) else value
            _fail(
                f"{what} is not possible in a pattern query; put it into a plain view that reads this one, "
                f"or one that this one reads.",
                text,
                place if isinstance(place, exp.Expr) and any(place_of_node(place)) else tree,
            )
    joins = tree.args.get("joins")
    source = tree.args["from_"].this
    if (
        joins
        or source.args.get("joins")
        or not isinstance(source, exp.Table)
        or not isinstance(source.this, exp.Identifier)
    ):
        what = joins[0] if joins else source
        problem = (
            "a join"
            if joins or source.args.get("joins")
            else "a subquery"
            if not isinstance(source, exp.Table)
            else "a function"
        )
        _fail(
            f"A pattern is found in one stream or view, not in {problem}; put it into a plain view first and read that.",
            text,
            what,
        )
    if source.args.get("db"):
        _fail(f"Tables and views are called by one name; write {source.name}.", text, source)
    if isinstance(source, PartTable):
        _fail(
            f"A pattern query reads {source.name} as a whole; leave the subscript out.",
            text,
            source,
        )
    return source


@dataclass
class _QueryReader:
    item: Statement
    clause: PatternClause
    source: Source
    table: exp.Table
    names: Mapping[str, str]
    text: str

    def __post_init__(self) -> None:
        self.columns = {fold(column.name): column.name for column in self.source.columns}
        self.groups: dict[str, str] = {}

    def read(self, tree: exp.Select) -> PatternQuery:
        self._refuse_nesting(tree)
        self._strip_qualifiers(tree)
        for value in tree.find_all(Value):
            self._check_attribute(value.attribute, value)
        self.groups = {fold(name): name for name in self._read_groups(tree)}
        order = self._read_order(tree)
        predicates, filters = self._read_where(tree)
        figures = FigureReader(self.text, self.groups, self.columns)
        self._check_columns(tree)
        outputs = figures.read_outputs(tree.expressions)
        having = tree.args.get("having")
        return PatternQuery(
            view=self.item.name.text,
            source=self.source.name,
            regex=self.clause.regex,
            predicates=tuple(predicates),
            filters=tuple(filters),
            groups=tuple(self.groups.values()),
            outputs=tuple(outputs),
            having=figures.read_having(having.this, outputs) if having is not None else None,
            order=order,
            time=self._find_time(order),
            within_seconds=self.clause.within_seconds,
            is_across_gaps=self.clause.is_across_gaps,
            is_ordered_by_time=bool(self.source.ordered) and order[:1] == (quote(self.source.ordered),),
        )

    def cut_pieces(self, tree: exp.Select, query: PatternQuery) -> Iterator[Piece]:
        conditions = [(item.tree, item.tree) for item in query.predicates] + [(item, item) for item in query.filters]
        if query.having is not None:
            conditions.append((query.having, tree.args["having"].this))
        columns = [
            column
            for name in ("group", "order")
            for column in (tree.args.get(name) or exp.Tuple()).find_all(exp.Column)
        ]
        outputs = [(column, column) for column in columns]
        outputs += [(item.tree, written) for item, written in zip(query.outputs, tree.expressions, strict=True)]
        for pairs, is_condition in ((conditions, True), (outputs, False)):
            for item, written in pairs:
                start, end = place_of_node(written)
                yield from cut_pieces(item, self.text[start:end], self.source, is_condition=is_condition)

    def _refuse_nesting(self, tree: exp.Select) -> None:
        for node in tree.walk():
            if isinstance(node, exp.Query) and node is not tree:
                _fail(
                    "A pattern query has no subqueries; put what it needs into a plain view first and read that.",
                    self.text,
                    node,
                )
            if isinstance(node, exp.Window):
                _fail(
                    "A pattern query has no window functions; use the variables of the pattern, or a plain view that reads this one.",
                    self.text,
                    node,
                )
            if isinstance(node, exp.Lambda) and any(node.find_all(Value)):
                _fail(
                    "A variable of the pattern cannot be used inside of a lambda function; compute the value in a plain view "
                    "first and read that.",
                    self.text,
                    node,
                )

    def _strip_qualifiers(self, tree: exp.Select) -> None:
        """Let `M.loss` be `loss`; and refuse names that are no variables."""
        own = {fold(self.table.alias_or_name), fold(self.table.name)}
        for column in list(tree.find_all(exp.Column)):
            if not column.table:
                self._check_column(column)
                continue
            first = column.parts[0].name
            if fold(first) in own:
                if isinstance(column.this, exp.Star):
                    _fail("* is not possible in a pattern query; name the attributes.", self.text, column)
                parts = [quote(part.name) for part in column.parts[1:]]
                self._check_attribute(".".join(parts), column)
                bare = attribute_tree(".".join(parts))
                bare.meta["place"] = place_of(column)
                column.replace(bare)
            elif self.columns and fold(first) in self.columns:
                continue  # a field of a struct
            else:
                known = ", ".join(self.names.values())
                hint = f"the pattern has {known}" if len(self.names) > 1 else f"the pattern has only {known}"
                _fail(
                    f"{first} is neither a variable of the pattern nor a column of {self.source.name}; {hint}.",
                    self.text,
                    column,
                )

    def _check_column(self, column: exp.Column) -> None:
        if isinstance(column.this, exp.Star):
            return
        if fold(column.name) in self.names and self.columns and fold(column.name) not in self.columns:
            _fail(
                f"{column.name} is a variable of the pattern; say which attribute of its row is meant, like {column.name}.x.",
                self.text,
                column,
            )

    def _check_columns(self, tree: exp.Select) -> None:
        """Every attribute without a variable must be one of the source, or in HAVING and SELECT an output before it."""
        outputs = {fold(item.alias) for item in tree.expressions if isinstance(item, exp.Alias)}
        bound = {fold(name.name) for node in tree.find_all(exp.Lambda) for name in node.expressions}
        for column in tree.find_all(exp.Column):
            name = fold(column.parts[0].name)
            if isinstance(column.this, exp.Star) or name in bound:
                continue
            is_output = name in outputs and column.find_ancestor(exp.Where, exp.Order) is None
            if not is_output:
                self._check_attribute(quote(column.parts[0].name), column)

    def _check_attribute(self, attribute: str, node: exp.Expr) -> None:
        name = attribute.split(".")[0].strip("`")
        if name == "*" or not self.columns or fold(name) in self.columns or name.upper() in RESERVED_COLUMNS:
            return
        start, end = place_of_node(node)
        raise UnknownColumnError(
            f"{self.source.name} has no column {name}; it has {', '.join(self.columns.values())}.",
            text=self.text,
            start=start,
            end=end,
        )

    def _read_groups(self, tree: exp.Select) -> Iterator[str]:
        group = tree.args.get("group")
        if group is None:
            return
        seen: set[str] = set()
        if not group.expressions or any(value for name, value in group.args.items() if name != "expressions"):
            _fail("GROUP BY in a pattern query names attributes, as in GROUP BY src, dest.", self.text, tree)
        for expression in group.expressions:
            if isinstance(expression, Value):
                _fail(
                    f"All rows of a match are of one group; write GROUP BY {expression.attribute}, without a variable.",
                    self.text,
                    expression,
                )
            if not isinstance(expression, exp.Column) or expression.table:
                _fail(
                    "GROUP BY in a pattern query names attributes; compute the value in a plain view first and read that.",
                    self.text,
                    expression,
                )
            if expression.name.upper() in RESERVED_COLUMNS:
                _fail(
                    f"A match goes over several parts, so rows cannot be grouped by {expression.name}; leave it out.",
                    self.text,
                    expression,
                )
            self._check_attribute(quote(expression.name), expression)
            name = self.columns.get(fold(expression.name), expression.name)
            if fold(name) not in seen:
                seen.add(fold(name))
                yield name

    def _read_order(self, tree: exp.Select) -> tuple[str, ...]:
        order = tree.args.get("order")
        if order is None:
            # The rows of a view without an order are told apart by what the query uses of them; see the fold.
            return (quote(self.source.ordered),) if self.source.ordered else ()
        found: list[str] = []
        for item in order.expressions:
            column = item.this if isinstance(item, exp.Ordered) else item
            if not isinstance(column, exp.Column) or column.table:
                column = column if any(place_of_node(column)) else tree
                _fail(
                    "ORDER BY in a pattern query names the attributes that order the rows of one part; compute other values in a "
                    "plain view first and read that.",
                    self.text,
                    column,
                )
            if isinstance(item, exp.Ordered) and (item.args.get("desc") or item.args.get("nulls_first") is False):
                _fail(
                    "The rows of a part can only be ordered upwards, NULLs first; leave DESC and NULLS LAST out, or compute a "
                    "value that rises in a plain view first and read that.",
                    self.text,
                    column,
                )
            self._check_attribute(quote(column.name), column)
            found.append(quote(column.name))
        return tuple(found)

    def _find_time(self, order: tuple[str, ...]) -> str:
        if self.source.ordered:
            return quote(self.source.ordered)
        if order or not self.clause.within_seconds:
            return order[0] if order else ""
        raise LanguageError(
            f"WITHIN needs the time of a row, and the view {self.source.name} has no ORDERED column; say which column it is, "
            f"with ORDER BY.",
            text=self.text,
            start=self.clause.within_place[0],
            end=self.clause.within_place[1],
        )

    # WHERE

    def _read_where(self, tree: exp.Select) -> tuple[list[Predicate], list[exp.Expr]]:
        predicates: list[Predicate] = []
        filters: list[exp.Expr] = []
        where = tree.args.get("where")
        for conjunct in _split(where.this) if where is not None else ():
            marked = self._mark_aggregates(conjunct)
            if any(marked.find_all(Value, Aggregate)):
                predicates.append(self._read_predicate(marked))
            else:
                filters.append(marked)
        if not predicates:
            start, end = self.clause.start, self.clause.end
            name = self.clause.names[0]
            raise LanguageError(
                f"No variable of the pattern is used in WHERE, so any rows would match; say what its rows are like, as in "
                f"WHERE {name}.x > 10.",
                text=self.text,
                start=start,
                end=end,
            )
        return predicates, filters

    def _mark_aggregates(self, conjunct: exp.Expr) -> exp.Expr:
        root = exp.Paren(this=conjunct.copy())
        for node in list(root.walk()):
            name = function_name(node)
            if not FigureReader.is_aggregate(name):
                continue
            values = list(node.find_all(Value))
            if not values or any(value.subscript != "..i-1" for value in values):
                if name in ("first", "last") and values:
                    value, subscript = values[0], "[1]" if name == "first" else ""
                    _fail(
                        f"{name}() is for SELECT and HAVING; write {value.variable}{subscript}.{value.attribute} here.",
                        self.text,
                        node,
                    )
                written = f"{name}({values[0].variable}[..i-1].x)" if values else f"{name}(v[..i-1].x)"
                _fail(
                    f"An aggregate in WHERE is over the rows that a variable has before the current one, like {written}; "
                    f"conditions on a whole match belong into HAVING.",
                    self.text,
                    node,
                )
            node.replace(FigureReader.make_aggregate(node, name, self.text, is_before=True))
        for value in root.find_all(Value):
            if value.subscript == "..i-1":
                _fail(
                    f"{value.variable}[..i-1] are several rows; take an aggregate of them, like "
                    f"avg({value.variable}[..i-1].{value.attribute}).",
                    self.text,
                    value,
                )
            if value.attribute == "*":
                _fail(f"{value.variable}.* is no value; name one of its attributes.", self.text, value)
        found = root.this
        assert isinstance(found, exp.Expr)
        return found

    def _read_predicate(self, tree: exp.Expr) -> Predicate:
        places = [fold(name) for name in self.clause.names]
        uses = list(tree.find_all(Value, Aggregate))
        last = max(uses, key=lambda node: places.index(fold(str(node.args["variable"]))))
        variable = str(last.args["variable"])
        bare = next((column for column in _columns_outside(tree)), None)
        if bare is not None:
            _fail(
                f"{bare.name} could be that of any row; say of which variable's, like {variable}.{bare.name}.",
                self.text,
                bare,
            )
        from_second = False
        for node in uses:
            is_own = fold(str(node.args["variable"])) == fold(variable)
            is_before = isinstance(node, Aggregate) or node.args["subscript"] in ("i-1",)
            if not is_own and (is_before or node.args.get("subscript") == "i"):
                name = str(node.args["variable"])
                _fail(
                    f"{name}[i], {name}[i-1] and {name}[..i-1] are rows seen from the current row of {name}, but this condition is "
                    f"about rows of {variable}; write {name}.x for the last row of {name}, or {name}[1].x for its first.",
                    self.text,
                    node,
                )
            from_second = from_second or is_before
        only_first = all(isinstance(node, Value) and node.subscript == "1" for node in uses)
        only_first = only_first and all(fold(str(node.args["variable"])) == fold(variable) for node in uses)
        return Predicate(variable, tree, is_from_second=from_second, is_first_only=only_first)


def _columns_outside(tree: exp.Expr) -> Iterator[exp.Column]:
    """Columns that are no attributes inside of an aggregate, nor variables of a lambda function."""
    bound = {fold(name.name) for node in tree.find_all(exp.Lambda) for name in node.expressions}
    for node in tree.walk(prune=lambda item: isinstance(item, Aggregate)):
        if isinstance(node, exp.Column) and fold(node.name) not in bound:
            yield node


def _split(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conjuncts of a condition."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, exp.And):
            left += [node.expression, node.this]
        elif isinstance(node, exp.Paren) and isinstance(node.this, (exp.And, exp.Paren)):
            left.append(node.this)
        else:
            yield node


def _fail(message: str, text: str, node: exp.Expr) -> NoReturn:
    start, end = place_of_node(node)
    raise LanguageError(message, text=text, start=start, end=end)
