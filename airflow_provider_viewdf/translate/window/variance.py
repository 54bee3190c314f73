"""Variance and standard deviation.

Of small exact numbers, three exact sums are kept, from which everything follows without loss, and which can be subtracted.
Of all others, the number of values, their mean and the sum of squared distances from it, which are merged as Chan's formula
says; sums of squares of doubles would lose the small differences that a variance consists of.
"""

from __future__ import annotations

from airflow_provider_viewdf.translate.window.infer_type import DIGITS, decimal_of

# Ten digits: a billion rows of them keep the sum of squares, times their number, below the 38 digits of a decimal.
_MOST_DIGITS = 10


def scale_exactly(value: str, type_name: str | None) -> tuple[str, int] | None:
    """The value as a whole number times 10 ** -scale, and that scale; None if it has too many digits."""
    if type_name in ("tinyint", "smallint", "int"):
        return f"CAST({value} AS DECIMAL({DIGITS[type_name]}, 0))", 0
    digits = decimal_of(type_name)
    if digits is None or digits[0] > _MOST_DIGITS:
        return None
    precision, scale = digits
    whole = f"({value}) * {10**scale}" if scale else value
    return f"CAST({whole} AS DECIMAL({precision}, 0))", scale


def exact_moments(number: str, total: str, squares: str, scale: int) -> tuple[str, str]:
    """The number of values, and the sum of their squared distances from the mean."""
    exact = f"CAST({number} AS DECIMAL(20, 0)) * {squares} - {total} * {total}"
    unit = f" / 1E{2 * scale}" if scale else ""
    return number, f"CAST({exact} AS DOUBLE) / {number}{unit}"


def moments_of(value: str, filter_text: str) -> str:
    """The state of rows of the source."""
    wide = f"CAST({value} AS DOUBLE)"
    parts = f"'n', count({wide}){filter_text}, 'mean', avg({wide}){filter_text}"
    return f"named_struct({parts}, 'm2', var_pop({wide}){filter_text} * count({wide}){filter_text})"


_MERGED = (
    "named_struct('n', a.n + b.n, 'mean', a.mean + (b.mean - a.mean) * b.n / (a.n + b.n), "
    "'m2', a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * a.n * b.n / (a.n + b.n))"
)
_NOTHING = "named_struct('n', CAST(0 AS BIGINT), 'mean', CAST(NULL AS DOUBLE), 'm2', CAST(NULL AS DOUBLE))"

# In order, so that the same states give the same bits.
COMBINE = (
    f"aggregate(array_sort(collect_list({{}})), {_NOTHING}, "
    f"(a, b) -> CASE WHEN b.n = 0 THEN a WHEN a.n = 0 THEN b ELSE {_MERGED} END)"
)


def write_value(function: str, number: str, distances: str) -> str:
    """The value of var_pop, stddev and their like."""
    if function in ("var_pop", "stddev_pop"):
        least, by = 0, number
    else:
        least, by = 1, f"({number} - 1)"
    result = f"{distances} / {by}"
    if function.startswith("std"):
        result = f"sqrt({result})"
    return f"CASE WHEN {number} > {least} THEN {result} END"
