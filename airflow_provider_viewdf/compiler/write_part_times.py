from __future__ import annotations

from sqlglot import exp

from airflow_provider_viewdf.compiler.bind_time import write_timestamp
from airflow_provider_viewdf.compiler.reading import Compilation
from airflow_provider_viewdf.errors import TimeFormatError
from airflow_provider_viewdf.parts import parse_time
from airflow_provider_viewdf.translate.tree import PART_TIMESTAMP

COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def write_part_times(tree: exp.Expr, compilation: Compilation) -> exp.Expr:
    """Texts that PART_TIMESTAMP is compared with are times as people write them: `2015/01/01 0:00` too."""
    for node in list(tree.find_all(*COMPARISONS, exp.Between, exp.In)):
        if isinstance(node, COMPARISONS):
            sides = [node.left, node.right]
        else:
            ends = (node.args.get("low"), node.args.get("high"))
            sides = [node.this, *node.expressions, *(end for end in ends if end is not None)]
        if not any(isinstance(side, exp.Column) and side.name.upper() == PART_TIMESTAMP for side in sides):
            continue
        for side in sides:
            if isinstance(side, exp.Literal) and side.is_string:
                try:
                    side.replace(write_timestamp(parse_time(side.name)))
                except TimeFormatError as error:
                    raise compilation.fail(str(error), side) from None
    return tree
