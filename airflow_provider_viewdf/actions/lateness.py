"""Rows of a batch that come too late for their stream: found, and set aside or counted, as its LATE ROWS says."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_viewdf.actions.workbench import Workbench
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.errors import TooManyLateRowsError
from airflow_provider_viewdf.parts import PartSet, format_length
from airflow_provider_viewdf.planning.lateness import Lateness, judge_parts
from airflow_provider_viewdf.versions import ContentDigest, LateCount, RejectedRow

# The quarantine is part of the catalog: so many rows are a load of history that should have said what it covers.
MOST_QUARANTINED = 100_000


def judge_batch(
    reader: CatalogReader, definition: Definition, rows: PartSet, batch_id: str, covers: PartSet
) -> Lateness:
    """`covers` is what the caller says that the batch covers; empty if nobody said."""
    before = reader.batch(definition.name, batch_id)
    # Not all that it covered: if nobody said what, that is from its first row to its last, and has late parts in between.
    taken = PartSet.of_indexes(part.index for part in before.parts) if before else PartSet()
    newest = None
    if not covers:
        newest = before.measured_against if before else reader.newest_part(definition.name, batch_id)
    return judge_parts(
        definition.late_rows,
        definition.partitioning,
        rows,
        covers=covers,
        newest_before=newest,
        taken_before=taken,
    )


def count_late(definition: Definition, parts: Mapping[int, ContentDigest], lateness: Lateness) -> LateCount:
    def rows_in(wanted: PartSet) -> int:
        return sum(digest.rows for index, digest in parts.items() if index in wanted)

    too_late = rows_in(lateness.too_late)
    taken = rows_in(lateness.late - lateness.too_late)
    if definition.late_rows.action == "quarantine":
        return LateCount(taken, quarantined=too_late)
    return LateCount(taken, ignored=too_late)


def set_aside(
    bench: Workbench, definition: Definition, location: str, source: str, parts: PartSet, count: int
) -> tuple[RejectedRow, ...]:
    """The staged rows of these parts for the quarantine, as JSON, from which they can be loaded again."""
    if count > MOST_QUARANTINED:
        raise TooManyLateRowsError(
            f"{count} rows for {definition.describe_parts(PartSet.between(parts.first, parts.last))} are late by more than "
            f"{format_length(definition.late_rows.after_seconds)}, too many to be set aside. If this is a load of history, "
            "say what it covers (covers=..., viewdf load --from --to). Nothing was loaded."
        )
    length = format_length(definition.late_rows.after_seconds)
    return tuple(
        RejectedRow(
            source,
            0,
            f"late by more than {length}: {definition.describe_part(index)} is closed by {definition.late_rows}",
            row,
        )
        for index, row in bench.open_engine().read_staged_rows(location, definition.columns, parts)
    )
