"""The papers' join without a condition: shorthand for the key columns that both sides declare."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.translate.tree import place_of, source_name


def expand_key_joins(tree: exp.Expr, keys_of: Callable[[exp.Table], tuple[str, ...]], text: str) -> None:
    """Give every JOIN without ON and USING the keys that both its sides declare."""
    for select in list(tree.find_all(exp.Select)):
        clause = select.args.get("from_")
        for join in select.args.get("joins") or ():
            if _has_condition(join):
                continue
            left, right = clause.this if clause is not None else None, join.this
            shared = _shared_keys(left, right, keys_of)
            if not shared:
                start, end = place_of(join)
                raise LanguageError(
                    f"The join with {source_name(right) or 'a subquery'} has no condition, and its two sides declare "
                    f"no common KEY; add ON or USING, or write CROSS JOIN.",
                    text=text,
                    start=start,
                    end=end,
                )
            join.set("using", [exp.to_identifier(key) for key in shared])


def _has_condition(join: exp.Join) -> bool:
    return bool(
        join.args.get("on")
        or join.args.get("using")
        or join.method
        or join.kind == "CROSS"
        or join.meta.get("is_comma")
        # JOIN LATERAL (...) and table functions get their condition from what is inside.
        or isinstance(join.this, (exp.Lateral, exp.Unnest))
        or (isinstance(join.this, exp.Table) and not isinstance(join.this.this, exp.Identifier))
    )


def _shared_keys(left: exp.Expr | None, right: exp.Expr, keys_of: Callable[[exp.Table], tuple[str, ...]]) -> list[str]:
    if not isinstance(left, exp.Table) or not isinstance(right, exp.Table):
        return []
    others = {fold(key) for key in keys_of(right)}
    return [key for key in keys_of(left) if fold(key) in others]


def group_keys(tree: exp.Expr) -> tuple[str, ...]:
    """The output columns that a query groups by, as far as they are bare columns or aliases."""
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    if group is None:
        return ()
    keys: list[str] = []
    for expression in group.expressions:
        if not isinstance(expression, exp.Column):
            continue
        for output in tree.expressions if isinstance(tree, exp.Select) else ():
            column = output.this if isinstance(output, exp.Alias) else output
            is_it = isinstance(column, exp.Column) and fold(column.name) == fold(expression.name)
            if is_it or fold(output.alias) == fold(expression.name):
                keys.append(output.alias_or_name)
                break
    return tuple(keys)
