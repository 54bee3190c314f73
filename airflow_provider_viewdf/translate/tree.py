"""The one node that query trees have beyond sqlglot's own, and how to find one's way in such a tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from sqlglot import exp

from airflow_provider_viewdf.definitions import PartReference, fold

# The name by which generated queries call the subscript variable, whatever it is called in the head.
PART_NUMBER = "__part__"

PART = "PART"
PART_TIMESTAMP = "PART_TIMESTAMP"


class PartTable(exp.Table):
    """A table with a subscript: `M[j - 1]`, or `M[j - 3 .. j]`.

    `low` and `high` are the subscript in canonical form, and what two trees are compared by. The subscript itself is in
    `meta`: under "subscript" as it was parsed, and once it is bound to its variable under "reference".

    A subclass of Table, so that whatever sqlglot knows of tables (aliases, scopes, samples, joins) holds for it too.
    Spark's generator has no way to write it, so none can be left over unseen.
    """

    arg_types: ClassVar[dict[str, bool]] = {**exp.Table.arg_types, "low": False, "high": False, "partial": False}

    @property
    def reference(self) -> PartReference:
        reference = self.meta["reference"]
        assert isinstance(reference, PartReference)
        return reference


def place_of(node: exp.Expr) -> tuple[int, int]:
    """Where a node stands in the text it was parsed from."""
    place = node.meta.get("place")
    if place is not None:
        return int(place[0]), int(place[1])
    for child in node.walk():
        if "start" in child.meta and "end" in child.meta:
            return int(child.meta["start"]), int(child.meta["end"]) + 1
    return 0, 0


def subscript_table(table: exp.Table, reference: PartReference) -> PartTable:
    """The same table, with a subscript."""
    node = PartTable(**{name: value for name, value in table.args.items() if name not in ("low", "high", "partial")})
    node.meta.update(table.meta)
    bind_reference(node, reference, "")
    return node


def bind_reference(node: PartTable, reference: PartReference, variable: str) -> None:
    node.meta["reference"] = reference
    node.set("low", _canonical(reference.low.text, variable))
    node.set("high", _canonical(reference.high.text, variable))
    # Left out rather than false, so that other subscripts are what they were before there was such a thing.
    node.set("partial", True if reference.is_partial else None)


def _canonical(text: str, variable: str) -> str:
    words = text.split(" ")
    bare = "".join(words)
    if not variable:
        return bare
    result, word = "", ""
    for letter in f"{bare} ":
        if letter.isalnum() or letter == "_":
            word += letter
            continue
        result += (PART_NUMBER if fold(word) in (fold(variable), PART_NUMBER) else word) + letter
        word = ""
    return result.rstrip()


def named_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Every table that a tree reads by name, in the order of the text, without its common table expressions."""
    for node in sorted(tree.find_all(exp.Table), key=lambda table: place_of(table)[0]):
        if isinstance(node.this, exp.Identifier) and not is_common_table(node):
            yield node


def is_common_table(table: exp.Table) -> bool:
    """Whether the name means a common table expression that is in sight of it."""
    if table.args.get("db") or isinstance(table, PartTable):
        return False
    return names_common_table(table, table.name)


def names_common_table(node: exp.Expr, name: str) -> bool:
    """Whether a common table expression of this name is in sight of a node."""
    inside: exp.Expr = node
    ancestor = node.parent
    while ancestor is not None:
        clause = ancestor.args.get("with_")
        if clause is not None:
            for common in clause.expressions:
                # Inside a WITH clause only what stands before is in sight, itself only if it is recursive.
                if clause is inside and _contains(common, node):
                    if clause.args.get("recursive") and fold(common.alias) == fold(name):
                        return True
                    break
                if fold(common.alias) == fold(name):
                    return True
        inside, ancestor = ancestor, ancestor.parent
    return False


def _contains(outer: exp.Expr, node: exp.Expr) -> bool:
    current: exp.Expr | None = node
    while current is not None:
        if current is outer:
            return True
        current = current.parent
    return False


def sources_of(select: exp.Expr) -> list[exp.Expr]:
    """What a SELECT names in FROM and JOIN: tables, subqueries, laterals; not what is inside of them."""
    found: list[exp.Expr] = []
    if clause := select.args.get("from_"):
        _collect_sources(clause.this, found)
    for join in select.args.get("joins") or ():
        _collect_sources(join.this, found)
    found.extend(select.args.get("laterals") or ())
    return found


def _collect_sources(node: exp.Expr, found: list[exp.Expr]) -> None:
    if isinstance(node, (exp.Subquery, exp.Paren)) and isinstance(node.this, (exp.Table, exp.Subquery, exp.Paren)):
        # Joined tables in parentheses: FROM (a JOIN b).
        _collect_sources(node.this, found)
    else:
        found.append(node)
    for join in node.args.get("joins") or ():
        _collect_sources(join.this, found)


def source_name(source: exp.Expr) -> str:
    """The name that the columns of a source can be qualified by."""
    return source.alias or (source.name if isinstance(source, exp.Table) else "")


def enclosing_select(node: exp.Expr) -> exp.Select | None:
    ancestor = node.parent
    while ancestor is not None and not isinstance(ancestor, exp.Select):
        ancestor = ancestor.parent
    return ancestor


def output_selects(tree: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs whose rows are rows of the query: one, or each branch of a union."""
    # A union of a thousand queries is a tree of that depth.
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, exp.Select):
            yield node
        elif isinstance(node, exp.SetOperation):
            left += [node.expression, node.this]
        elif isinstance(node, (exp.Subquery, exp.Paren)):
            left.append(node.this)


def replace_table(table: exp.Table, replacement: exp.Expr) -> None:
    """Put something else in the place of a table, with the joins, samples and pivots that hang on the table."""
    for name in ("joins", "pivots", "sample", "laterals"):
        value: Any = table.args.get(name)
        if value:
            replacement.set(name, value)
    replacement.meta.update(table.meta)
    table.replace(replacement)
