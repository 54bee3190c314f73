"""From definitions, parts and queries to Spark SQL."""

from __future__ import annotations

from airflow_provider_viewdf.compiler.batch_sql import (
    BatchInput,
    CompiledBatch,
    compile_batch,
    find_inputs,
    unite_parts,
)
from airflow_provider_viewdf.compiler.part_sql import CompiledPart, PartInput, compile_part
from airflow_provider_viewdf.compiler.query_sql import CompiledQuery, QueryInput, compile_query
from airflow_provider_viewdf.compiler.widening import can_widen

__all__ = [
    "BatchInput",
    "CompiledBatch",
    "CompiledPart",
    "CompiledQuery",
    "PartInput",
    "QueryInput",
    "can_widen",
    "compile_batch",
    "compile_part",
    "compile_query",
    "find_inputs",
    "unite_parts",
]
