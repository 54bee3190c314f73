from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from airflow_provider_viewdf.compiler.bind_part_number import replace_value
from airflow_provider_viewdf.compiler.reading import Compilation
from airflow_provider_viewdf.definitions import fold


def bind_time(tree: exp.Expr, compilation: Compilation) -> exp.Expr:
    """Let now() and its like mean the end of the part being computed, so that a part can be computed again."""
    if compilation.index is None or compilation.partitioning is None:
        return tree
    end = compilation.partitioning.end_of(compilation.index)
    for node, name in find_clock(tree):
        replace_value(node, _write(name, end), f"{name}()")
    return tree


def find_clock(tree: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """The calls of now() and its like, with the names of the functions."""
    return [(node, name) for node in tree.find_all(exp.Func) if (name := _clock_name(node))]


def _clock_name(node: exp.Expr) -> str:
    if isinstance(node, exp.CurrentTimestamp):
        return "current_timestamp"
    if isinstance(node, exp.CurrentDate):
        return "current_date"
    if isinstance(node, exp.Localtimestamp):
        return "localtimestamp"
    if isinstance(node, exp.Anonymous) and not node.expressions:
        name = fold(node.name)
        if name in ("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "unix_timestamp"):
            return name
    return ""


def _write(name: str, end: datetime) -> exp.Expr:
    if name in ("current_date", "curdate"):
        return exp.cast(exp.Literal.string(end.strftime("%Y-%m-%d")), "DATE", dialect="spark")
    if name == "localtimestamp":
        return exp.cast(exp.Literal.string(end.strftime("%Y-%m-%d %H:%M:%S")), "TIMESTAMP_NTZ", dialect="spark")
    if name == "unix_timestamp":
        return exp.cast(exp.convert(int(end.timestamp())), "BIGINT", dialect="spark")
    return write_timestamp(end)


def write_timestamp(time: datetime) -> exp.Expr:
    """A time as a TIMESTAMP, whatever the session's time zone."""
    pattern = "%Y-%m-%d %H:%M:%S.%f+00:00" if time.microsecond else "%Y-%m-%d %H:%M:%S+00:00"
    return exp.cast(exp.Literal.string(time.strftime(pattern)), "TIMESTAMP", dialect="spark")
