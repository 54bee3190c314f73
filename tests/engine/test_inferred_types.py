"""The types that windows infer, against Spark's own analyzer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_viewdf.language.dialect import parse_query, read_tokens
from airflow_provider_viewdf.translate.window.infer_type import infer_type

COLUMNS = {
    "t": "tinyint",
    "h": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "m": "decimal(10,2)",
    "n": "decimal(20,5)",
    "b": "boolean",
    "s": "string",
}
KNOWN = [
    "i", "(i)", "-i", "i + 1", "t + h", "h * i", "i - l", "l + 1", "i + 3000000000", "t + 1", "i + d", "f * 2", "f + f", "m * d",
    "m + 1", "m - i", "m * 2", "m * -2", "m * (12)", "m * m", "m * n", "n + m", "i * 1.5", "m * 0.05", "0.5 * m", "1.50 + m", "i / 2",
    "i / d", "-m", "abs(m)", "abs(i)", "CAST(s AS INT)", "CAST(s AS DECIMAL(12, 3))", "CAST(i AS BIGINT) * 2 + 1", "coalesce(i, 0)",
    "coalesce(l, i, 0)", "coalesce(m, 0)", "coalesce(m, n)", "coalesce(n, l)", "greatest(i, l)", "if(b, i, 0)", "if(b, m, NULL)",
    "CASE WHEN b THEN i ELSE 0 END", "CASE WHEN b THEN m END", "CASE WHEN b THEN 1 ELSE 0 END", "CASE WHEN b THEN 1.5 ELSE i END",
    "CAST(i AS DOUBLE)", "i * i * i", "t * t", "m + m + m", "nvl(m, 0.0)",
]  # fmt: skip
# Not everything has to be inferred, but nothing wrongly.
UNSURE = [
    "length(s)",
    "i % 2",
    "m / 3",
    "n * n * n",
    "s",
    "b",
    "i + m * n",
    "m % 2",
    "coalesce(d, i)",
    "coalesce(f, 0)",
    "i DIV 2",
]


def test_every_inferred_type_is_that_of_spark(open_spark: Callable[[str], Any]) -> None:
    spark = open_spark("classic")
    empty = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    texts = KNOWN + UNSURE
    wanted = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    types = [kind for _, kind in spark.sql(f"SELECT {wanted} FROM (SELECT {empty})").dtypes]
    query = f"SELECT {wanted}"
    found = [infer_type(item.unalias(), COLUMNS) for item in parse_query(read_tokens(query), query).selects]
    inferred = {text: (mine, spark) for text, mine, spark in zip(texts, found, types, strict=True)}
    assert {text: pair for text, pair in inferred.items() if pair[0] is not None and pair[0] != pair[1]} == {}
    assert [text for text in KNOWN if inferred[text][0] is None] == []
