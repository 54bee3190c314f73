"""What a query could do besides reading the tables that it names is refused: open files, run programs, write, or read another time."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.translate.tree import place_of

_JAVA = {"reflect", "java_method", "try_reflect"}


def function_name(node: exp.Expr) -> str:
    """The folded name of a function call, or "" if the node is none."""
    if isinstance(node, exp.Anonymous):
        return fold(node.name)
    if isinstance(node, exp.Func):
        return fold(node.sql_name())
    return ""


def refuse_outside(tree: exp.Expr, text: str) -> None:
    """Refuse what Spark would do for whoever wrote the query, but nobody who shows the tables has agreed to."""
    for node, reason in _find_outside(tree):
        start, end = place_of(node)
        raise LanguageError(reason, text=text, start=start, end=end)


def _find_outside(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    for node in tree.walk():
        name = function_name(node)
        if name == "identifier":
            yield node, "IDENTIFIER makes a name of a text, so that nobody can see what is read; write the name itself."
        elif name in _JAVA:
            yield node, f"{name}() runs a method of Java, whichever it is told to; leave it out."
        elif isinstance(node, exp.QueryTransform):
            yield node, "TRANSFORM ... USING runs a program; leave it out, and write what it does in SQL."
        elif isinstance(node, exp.Into):
            yield node, "INTO would write a table, and a query only reads; leave it out."
        elif isinstance(node, exp.Lock):
            yield node.parent or node, "FOR UPDATE and FOR SHARE lock rows, and a query only reads; leave them out."
        elif isinstance(node, exp.Version):
            yield node.parent or node, "A table is read as it is now; leave VERSION AS OF or TIMESTAMP AS OF out."
        elif isinstance(node, exp.Table) and not isinstance(node.this, (exp.Identifier, exp.Func)):
            yield node, "A table is called by its name; write the name."
