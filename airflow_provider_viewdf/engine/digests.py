"""The digest of a multiset of rows, as Spark SQL.

A row's hash is taken over the types and values of its columns in their order, not over their names. The digest is
the number of rows and the sums of the upper and the lower halves of their hashes: sums, because exclusive-or would let
two equal rows cancel each other out; halves, because sums of whole hashes would overflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_viewdf.versions import ContentDigest

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# The names of the figures that make up a digest, in an aggregation over a column of row hashes.
ROWS, HIGH, LOW = "__rows", "__high", "__low"


def hash_row(schema: StructType) -> str:
    """An expression for the hash of a row with these columns."""
    values = [hash_value(quote_name(field.name), field.dataType) for field in schema.fields]
    return f"xxhash64({', '.join(values)})"


def hash_value(value: str, type: DataType, depth: int = 0) -> str:
    """An expression, never NULL, for the hash of a value of a type.

    Spark's own hash skips NULLs, runs arrays together (`[1, 2], [3]` is `[1], [2, 3]`) and refuses maps.
    Zero and minus zero, and all NaNs, are the same to it: that is wanted here.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(type, ArrayType):
        element = f"x{depth}"
        hashes = f"transform({value}, {element} -> {hash_value(element, type.elementType, depth + 1)})"
        return f"xxhash64(isnull({value}), size({value}), {hashes})"
    if isinstance(type, MapType):
        entry = f"x{depth}"
        key = hash_value(f"{entry}.key", type.keyType, depth + 1)
        item = hash_value(f"{entry}.value", type.valueType, depth + 1)
        hashes = f"array_sort(transform(map_entries({value}), {entry} -> xxhash64({key}, {item})))"
        return f"xxhash64(isnull({value}), size({value}), {hashes})"
    if isinstance(type, StructType):
        hashes = ", ".join(hash_value(f"{value}.{quote_name(f.name)}", f.dataType, depth) for f in type.fields)
        return f"xxhash64(isnull({value}), {hashes})" if hashes else f"xxhash64(isnull({value}))"
    if isinstance(type, VariantType):
        return f"xxhash64(isnull({value}), to_json({value}))"
    return f"xxhash64(isnull({value}), {value})"


def sum_hashes(row_hash: str) -> list[str]:
    """Aggregate expressions over a column of row hashes; `read_digest` understands their result."""
    return [
        f"count(1) AS {ROWS}",
        f"coalesce(sum(shiftrightunsigned({row_hash}, 32)), 0L) AS {HIGH}",
        f"coalesce(sum({row_hash} & 4294967295L), 0L) AS {LOW}",
    ]


def read_digest(figures: Mapping[str, Any]) -> ContentDigest:
    return ContentDigest(figures[ROWS], figures[HIGH], figures[LOW])


def name_type(type: DataType) -> str:
    """A type as Spark's SQL writes it, also where a field of a struct has an unusual name."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type, ArrayType):
        return f"array<{name_type(type.elementType)}>"
    if isinstance(type, MapType):
        return f"map<{name_type(type.keyType)},{name_type(type.valueType)}>"
    if isinstance(type, StructType):
        fields: Sequence[str] = [f"{_quote_if_needed(f.name)}:{name_type(f.dataType)}" for f in type.fields]
        return f"struct<{','.join(fields)}>"
    return type.simpleString()


def quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _quote_if_needed(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quote_name(name)
