"""Answer ad-hoc queries from one consistent state of the warehouse."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_provider_viewdf.actions.refusals import explain_refusal, find_name
from airflow_provider_viewdf.actions.workbench import Known, Workbench, dimension_table, input_table
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.compiler import CompiledQuery, QueryInput, compile_query
from airflow_provider_viewdf.definitions import Column
from airflow_provider_viewdf.engine.engine import InputTable
from airflow_provider_viewdf.errors import ConflictError, MissingPartError, QueryRefusedError, StepFailedError
from airflow_provider_viewdf.parts import EARLIEST, PartSet
from airflow_provider_viewdf.versions import PartVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("airflow_provider_viewdf")

ATTEMPTS = 5

QUARANTINE_COLUMNS = (
    Column("batch_id", "string"),
    Column("source", "string"),
    Column("line", "bigint"),
    Column("reason", "string"),
    Column("row", "string"),
)


@dataclass(frozen=True, slots=True)
class _Question:
    """A query, and everything that it reads, from one state of the catalog."""

    known: Known
    compiled: CompiledQuery
    inputs: list[InputTable]
    versions: list[PartVersion]
    rejected: dict[str, list[tuple[str, str, int, str, str]]]


def run_query(bench: Workbench, sql: str) -> DataFrame:
    """The answer to a query as a DataFrame. It stays what it was however the warehouse changes afterwards.

    Should gc with a short grace period remove what the catalog had when it was read, it is read again.
    """
    for _ in range(ATTEMPTS):
        question = _prepare(bench, sql)
        try:
            answer = _ask(bench, question, sql)
        except StepFailedError:
            if not bench.find_vanished(question.versions):
                raise
            continue
        # Spark lists the files now. If one has gone between the catalog's word and the list, its rows would be missing.
        if not bench.find_vanished(question.versions):
            return answer
    raise ConflictError(
        "The files that the query reads were removed before it could read them, again and again; "
        "run gc with a longer grace period."
    )


def _prepare(bench: Workbench, sql: str) -> _Question:
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        archived: dict[str, PartSet] = {}

        def find_archived(table: str) -> PartSet:
            before = reader.archived_before(table)
            archived[table] = PartSet() if before is None else PartSet.between(EARLIEST, before - 1)
            return archived[table]

        compiled = compile_query(sql, known.definitions, reader.existing_parts, uuid4().hex[:8], find_archived)
        for table, parts in archived.items():
            if gone := parts & reader.existing_parts(table):
                logger.warning("%s are archived and are not read.", known.find(table).describe_parts(gone))
        versions = {
            item.name: _read_versions(reader, known, item) for item in compiled.inputs if not item.is_quarantine
        }
        rejected = {item.name: _read_rejected(reader, item) for item in compiled.inputs if item.is_quarantine}
    inputs = [
        input_table(bench, known.find(item.table), item.name, versions[item.name], has_part_column=item.has_part_column)
        for item in compiled.inputs
        if not item.is_quarantine
    ]
    return _Question(known, compiled, inputs, [item for found in versions.values() for item in found], rejected)


def _ask(bench: Workbench, question: _Question, sql: str) -> DataFrame:
    engine = bench.open_engine()
    for name, rows in question.rejected.items():
        engine.add_rows(name, QUARANTINE_COLUMNS, rows)
    dimensions = [dimension_table(question.known.find(table), name) for name, table in question.compiled.dimensions]
    try:
        return engine.query(question.compiled.sql, question.inputs, dimensions)
    except QueryRefusedError as error:
        raise explain_refusal(error, "query", find_name(error.name, sql)) from None


def _read_versions(reader: CatalogReader, known: Known, item: QueryInput) -> list[PartVersion]:
    versions = reader.current_versions(item.table, item.parts) if item.parts else []
    definition = known.find(item.table)
    retired = [version.index for version in versions if version.is_retired]
    if retired and not definition.owners:
        raise MissingPartError(
            f"The query reads {definition.describe_parts(PartSet.of_indexes(retired))}, whose files were damaged. "
            f"Compute it again: viewdf refresh {definition.name}"
        )
    if retired:
        owners = " and ".join(definition.owners)
        raise MissingPartError(
            f"The query reads {definition.describe_parts(PartSet.of_indexes(retired))}, of which gc has removed the rows, "
            f"as nothing will read them soon; query {owners} instead, or let {owners} RETAIN more."
        )
    return versions


def _read_rejected(reader: CatalogReader, item: QueryInput) -> list[tuple[str, str, int, str, str]]:
    return [(batch, row.source, row.line, row.reason, row.row) for batch, row in reader.rejected_rows(item.table)]
