from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import TimeFormatError
from airflow_provider_viewdf.parts import EARLIEST, LATEST, Partitioning, PartSet, parse_time
from airflow_provider_viewdf.translate.tree import PART, PART_TIMESTAMP, enclosing_select, source_name, sources_of

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def prune_parts(table: exp.Table, partitioning: Partitioning, has_parts: Callable[[exp.Expr], bool]) -> PartSet:
    """The parts of a table that the WHERE around it can keep, as far as that speaks of PART and PART_TIMESTAMP.

    The WHERE itself stays. A row of an outer join that finds no partner because of the parts left out has NULL for
    PART, and the same WHERE drops it; so it does not matter on which side of a join the table stands.
    """
    select = enclosing_select(table)
    where = select.args.get("where") if select is not None else None
    if select is None or where is None:
        return PartSet.everything()
    is_alone = sum(map(has_parts, sources_of(select))) == 1
    return _Filter(source_name(table), is_alone, partitioning).parts_of(where.this)


class _Filter:
    """Which parts of one table a condition can be true for."""

    def __init__(self, table: str, is_alone: bool, partitioning: Partitioning) -> None:
        self.table, self.is_alone, self.partitioning = table, is_alone, partitioning

    def parts_of(self, condition: exp.Expr) -> PartSet:
        match condition:
            case exp.Paren():
                return self.parts_of(condition.this)
            case exp.And():
                return self.parts_of(condition.left) & self.parts_of(condition.right)
            case exp.Or():
                return self.parts_of(condition.left) | self.parts_of(condition.right)
            case exp.Between():
                low = self._compare(exp.GTE, condition.this, condition.args["low"])
                return low & self._compare(exp.LTE, condition.this, condition.args["high"])
            case exp.In() if condition.expressions and not condition.args.get("query"):
                result = PartSet()
                for value in condition.expressions:
                    result = result | self._compare(exp.EQ, condition.this, value)
                return result
            case exp.EQ() | exp.NullSafeEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                kind = exp.EQ if isinstance(condition, exp.NullSafeEQ) else type(condition)
                if self._column(condition.right):
                    return self._compare(_MIRRORED.get(kind, kind), condition.right, condition.left)
                return self._compare(kind, condition.left, condition.right)
        return PartSet.everything()

    def _column(self, node: exp.Expr) -> str:
        """PART or PART_TIMESTAMP if the node is that column of this table, else nothing."""
        if not isinstance(node, exp.Column) or node.name.upper() not in (PART, PART_TIMESTAMP):
            return ""
        is_ours = fold(node.table) == fold(self.table) if node.table else self.is_alone
        return node.name.upper() if is_ours else ""

    def _compare(self, kind: type[exp.Expr], column: exp.Expr, value: exp.Expr) -> PartSet:
        name = self._column(column)
        # The first part that begins at or after the value, and whether it begins exactly there.
        if name == PART and (index := _read_integer(value)) is not None:
            first, is_exact = index, True
        elif name == PART_TIMESTAMP and (time := _read_time(value)) is not None:
            first = self.partitioning.index_from(time)
            is_exact = self.partitioning.index_at(time) == first
        else:
            return PartSet.everything()
        if kind is exp.EQ:
            return PartSet.between(first, first) if is_exact else PartSet()
        if kind is exp.LT:
            return PartSet.between(EARLIEST, first - 1)
        if kind is exp.LTE:
            return PartSet.between(EARLIEST, first if is_exact else first - 1)
        return PartSet.between(first + 1 if kind is exp.GT and is_exact else first, LATEST)


def _read_integer(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Neg):
        value = _read_integer(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    return None


def _read_time(node: exp.Expr) -> datetime | None:
    """A text, or a literal such as TIMESTAMP '2015-01-01', which sqlglot reads as a cast."""
    if isinstance(node, exp.Cast) and node.to.this in (
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.TIMESTAMPLTZ,
    ):
        node = node.this
    if isinstance(node, exp.Literal) and node.is_string:
        try:
            return parse_time(node.name)
        except TimeFormatError:
            return None
    return None
