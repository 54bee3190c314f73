"""Checks of a view's query that need nothing but its tree: functions, output columns, names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError, UnsupportedFunctionError
from airflow_provider_viewdf.language.outside import function_name
from airflow_provider_viewdf.language.statements import RESERVED_COLUMNS
from airflow_provider_viewdf.translate.tree import output_selects, place_of

_PART_NUMBER = re.compile(r"n?\d+")

# Functions whose value depends on chance, on how rows are spread over files and tasks, or on who asks.
UNDETERMINED = {
    "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle",
    "monotonically_increasing_id", "spark_partition_id",
    "input_file_name", "input_file_block_start", "input_file_block_length",
    "current_user", "user", "session_user",
    "current_catalog", "current_database", "current_schema", "current_path", "version",
}  # fmt: skip

# Texts that Spark takes for the time at which it runs, and what makes a date or a time of a text.
_MOVING_TIMES = {"now", "today", "tomorrow", "yesterday"}
_DATE_TYPES = {
    exp.DType.DATE,
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
}
_DATE_FUNCTION = re.compile(r"(try_)?(to_)?(date|timestamp)(_ltz|_ntz)?")


def refuse_undetermined(tree: exp.Expr, view: str, text: str) -> None:
    """A view must be a function of what it reads."""
    for node in tree.walk():
        name = function_name(node)
        if name in UNDETERMINED:
            start, end = place_of(node)
            raise UnsupportedFunctionError(
                f"{name}() cannot be used in the view {view}: its value is not determined by what the view reads.",
                text=text,
                start=start,
                end=end,
            )
        if isinstance(node, exp.Literal) and _is_moving_time(node):
            start, end = place_of(node.parent or node)
            raise UnsupportedFunctionError(
                f"'{node.name}' cannot be used as a time in the view {view}: it is another one whenever it is asked. "
                "Write now(), which is the end of the part.",
                text=text,
                start=start,
                end=end,
            )
        if isinstance(node, exp.TableSample):
            start, end = place_of(node.parent or node)
            raise UnsupportedFunctionError(
                f"TABLESAMPLE cannot be used in the view {view}: which rows it takes is not determined "
                f"by what the view reads.",
                text=text,
                start=start,
                end=end,
            )


def _is_moving_time(literal: exp.Literal) -> bool:
    if not literal.is_string or fold(literal.name).split()[:1] not in [[word] for word in _MOVING_TIMES]:
        return False
    parent = literal.parent
    if isinstance(parent, exp.Cast):
        return parent.to.this in _DATE_TYPES
    return isinstance(parent, exp.Expr) and _DATE_FUNCTION.fullmatch(function_name(parent)) is not None


def refuse_reserved_outputs(tree: exp.Expr, view: str, text: str) -> None:
    for select in output_selects(tree):
        for output in select.expressions:
            name = output.alias_or_name
            if name.upper() in RESERVED_COLUMNS:
                start, end = place_of(output)
                raise LanguageError(
                    f"A column of the view {view} cannot be called {name}; give it another name with AS.",
                    text=text,
                    start=start,
                    end=end,
                )


def refuse_shadowing_names(tree: exp.Expr, tables: Iterable[str], text: str) -> None:
    """A common table expression called like a part table would be read in its place."""
    known = list(tables)
    for common in tree.find_all(exp.CTE):
        for table in known:
            if is_compiled_name(common.alias, table):
                start, end = place_of(common.args["alias"])
                raise LanguageError(
                    f"{common.alias} cannot be the name of a WITH query: it is how a part of {table} is called; "
                    f"choose another.",
                    text=text,
                    start=start,
                    end=end,
                )


def is_compiled_name(name: str, table: str) -> bool:
    """Whether a name is one that a part of a table, or a table's quarantine, is called by in Spark."""
    return fold(table) in find_tables_called(name)


def find_tables_called(name: str) -> list[str]:
    """The tables, folded, a part or the quarantine of which would be called by this name in Spark."""
    words = fold(name).split("_")
    if words[-1] == "quarantine":
        lengths = [1]
    else:
        is_number = [_PART_NUMBER.fullmatch(word) is not None for word in words]
        lengths = [count for count in (1, 2) if all(is_number[-count:])]
    return ["_".join(words[:-length]) for length in lengths if len(words) > length]
