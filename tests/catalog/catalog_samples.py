"""Short ways to write definitions, publications and batches, and to look into a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from airflow_provider_viewdf.catalog import Catalog, DefinitionChange
from airflow_provider_viewdf.definitions import Column, Kind, Rule
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.versions import (
    Batch,
    BatchPart,
    ContentDigest,
    DefinitionRecord,
    InputRange,
    PartVersion,
    Publication,
    Published,
    StaleRange,
)

NOON = datetime(2015, 1, 1, 12, tzinfo=UTC)


def noon_plus(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def record(name: str, kind: Kind = "view", digest: str = "d1", start_index: int | None = None) -> DefinitionRecord:
    return DefinitionRecord(
        name=name,
        kind=kind,
        text=f"CREATE {name}",
        digest=digest,
        columns=(Column("id", "int"), Column("loss", "decimal(10,2)")),
        length_seconds=60,
        start_index=start_index,
        helper_of="",
        updated_at=NOON,
        produced_by="cli",
    )


def define(catalog: Catalog, *records: DefinitionRecord, generation: int = 0) -> int:
    """Save definitions that touch no parts: the new generation."""
    changes = [DefinitionChange(item, "keep") for item in records]
    return catalog.save_definitions(changes, generation=generation, produced_by="cli")


def define_m_and_v(catalog: Catalog) -> int:
    return define(catalog, record("M", "stream"), record("V"))


def content(number: int, rows: int = 1) -> ContentDigest:
    """Different numbers are different rows."""
    return ContentDigest(rows, number, -number)


def publication(
    table: str,
    index: int,
    number: int = 1,
    *,
    replaces: int | None = None,
    inputs: Sequence[InputRange] = (),
    inputs_digest: str = "",
    rule: Rule | None = None,
    definition_digest: str = "d1",
    stale: Iterable[StaleRange] = (),
) -> Publication:
    return Publication(
        table=table,
        index=index,
        replaces=replaces,
        location=f"{table}/{index}/content{number}",
        digest=content(number),
        definition_digest=definition_digest,
        inputs=tuple(inputs),
        inputs_digest=inputs_digest,
        rule=rule,
        stale=tuple(stale),
    )


def stale(table: str, low: int, high: int, reason: str = "late data in M") -> StaleRange:
    return StaleRange(table, PartRange(low, high), reason)


def publish(
    catalog: Catalog, *publications: Publication, generation: int = 1, batch: Batch | None = None, minutes: float = 0
) -> list[Published]:
    return catalog.publish(publications, generation=generation, produced_by="cli", batch=batch, at=noon_plus(minutes))


def batch_of(
    table: str,
    batch_id: str,
    covers: PartSet,
    parts: Iterable[tuple[int, ContentDigest]] = (),
    minutes: float = 0,
    because: str = "",
) -> Batch:
    return Batch(
        table=table,
        batch_id=batch_id,
        source=f"{batch_id}.csv",
        covers=covers,
        parts=tuple(BatchPart(index, digest) for index, digest in parts),
        rejected=(),
        loaded_at=noon_plus(minutes),
        produced_by="cli",
        declared_empty_because=because,
    )


def numbers(versions: Iterable[PartVersion]) -> list[tuple[str, int, int]]:
    return [(item.table, item.index, item.version) for item in versions]


def current(catalog: Catalog, table: str, parts: PartSet | None = None) -> list[PartVersion]:
    with catalog.snapshot() as reader:
        return reader.current_versions(table, parts)


def stale_of(catalog: Catalog, table: str | None = None) -> list[tuple[str, str, str]]:
    with catalog.snapshot() as reader:
        return [(item.table, str(item.parts), item.reason) for item in reader.stale_ranges(table)]


def existing(catalog: Catalog, table: str) -> str:
    with catalog.snapshot() as reader:
        return str(reader.existing_parts(table))
