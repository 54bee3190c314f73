"""Publishing parts: compare and swap, early cutoff, and what becomes stale. One transaction for all of it.

Everything that the publications touch is read first, changed in memory in their order, and written at the end,
so that a load of many thousand parts takes a handful of statements. This is sound because the caller has
locked the catalog against every other writer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, insert, update

from airflow_provider_viewdf.catalog.extents import Extents
from airflow_provider_viewdf.catalog.inputs import parts_of_inputs
from airflow_provider_viewdf.catalog.numbers import VersionNumbers
from airflow_provider_viewdf.catalog.ranges import bounds
from airflow_provider_viewdf.catalog.reader import ConnectionReader, read_archives
from airflow_provider_viewdf.catalog.rows import version_row
from airflow_provider_viewdf.catalog.staleness import Staleness
from airflow_provider_viewdf.catalog.tables import part_versions, parts_table, row_totals
from airflow_provider_viewdf.catalog.upsert import insert_or_add, insert_or_update
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.errors import ConflictError
from airflow_provider_viewdf.parts import EARLIEST, LATEST, PartRange, PartSet
from airflow_provider_viewdf.versions import InputRange, PartVersion, Publication, Published, StaleRange


class Publishing:
    """The state of one call of `Catalog.publish`."""

    def __init__(
        self, connection: Connection, publications: Sequence[Publication], *, produced_by: str, at: datetime
    ) -> None:
        self._connection = connection
        self._produced_by = produced_by
        self._at = at
        reader = ConnectionReader(connection)
        self._names = reader.names
        written = _written_parts(publications)
        boxes = _boxes(publications)
        self._numbers = VersionNumbers(connection, _needed_parts(publications, written))
        self._archives = read_archives(connection)
        self._extents = Extents(connection, boxes)
        self._staleness = Staleness(connection, boxes)
        self._current: dict[tuple[str, int], PartVersion] = {
            (key, version.index): version
            for key, parts in written.items()
            for version in reader.current_versions(key, parts)
        }
        self._new: dict[tuple[str, int, int], PartVersion] = {}
        self._kept: dict[tuple[str, int, int], PartVersion] = {}
        self._replaced: list[tuple[str, int, int]] = []
        self._more_rows: Counter[str] = Counter()

    def apply(self, publication: Publication) -> Published:
        self._check_kept(publication)
        self._check_version(publication)
        self._check_inputs(publication)
        key, index = fold(publication.table), publication.index
        present = self._current.get((key, index))
        if present is not None and present.digest == publication.digest:
            published = self._keep(publication, present)
        else:
            published = self._replace(publication, present)
        self._current[key, index] = published.version
        self._staleness.remove(key, index)
        return published

    def _check_kept(self, publication: Publication) -> None:
        if publication.index < self._archives.get(fold(publication.table), EARLIEST):
            raise ConflictError(f"{self._describe(publication)} was archived meanwhile. Nothing was written.")

    def _check_version(self, publication: Publication) -> None:
        present = self._numbers.current(fold(publication.table), publication.index)
        if present == publication.replaces:
            return
        expected = "no version" if publication.replaces is None else f"version {publication.replaces}"
        found = "none" if present is None else f"version {present}"
        raise ConflictError(
            f"{self._describe(publication)} was expected to have {expected}, but has {found}: someone else "
            "published it meanwhile. Nothing was written; try again."
        )

    def _check_inputs(self, publication: Publication) -> None:
        if publication.inputs and self._numbers.digest(publication.inputs) != publication.inputs_digest:
            inputs = ", ".join(f"{item.table}[{PartRange(item.low, item.high)}]" for item in publication.inputs)
            raise ConflictError(
                f"{self._describe(publication)} was made from {inputs}, of which something changed meanwhile. "
                "Nothing was written; try again."
            )

    def _describe(self, publication: Publication) -> str:
        return f"{self._names[fold(publication.table)]}[{publication.index}]"

    def _keep(self, publication: Publication, present: PartVersion) -> Published:
        """Early cutoff: the content is the same, so the version stays, with what it is made from now."""
        version = replace(
            present,
            # The rows of a retired or damaged version are back.
            location=publication.location if present.is_retired or present.is_lost else present.location,
            definition_digest=publication.definition_digest,
            inputs=publication.inputs,
            inputs_digest=publication.inputs_digest,
            rule=publication.rule,
        )
        number = (fold(version.table), version.index, version.version)
        (self._new if number in self._new else self._kept)[number] = version
        return Published(version, is_changed=False, stale=())

    def _replace(self, publication: Publication, present: PartVersion | None) -> Published:
        key, index = fold(publication.table), publication.index
        if present is not None:
            self._replaced.append((key, index, present.version))
        number = self._numbers.next(key, index)
        version = PartVersion(
            table=self._names[key],
            index=index,
            version=number,
            location=publication.location,
            digest=publication.digest,
            definition_digest=publication.definition_digest,
            inputs=publication.inputs,
            inputs_digest=publication.inputs_digest,
            rule=publication.rule,
            created_at=self._at,
            produced_by=self._produced_by,
            files=publication.files,
        )
        self._new[key, index, number] = version
        self._more_rows[key] += version.rows - (present.rows if present is not None else 0)
        self._extents.add(key, index)
        stale = tuple(found for item in publication.stale for found in self._mark(item))
        return Published(version, is_changed=True, stale=stale)

    def _mark(self, item: StaleRange) -> list[StaleRange]:
        key = fold(item.table)
        # What is archived is not computed again, so it is not stale either.
        kept = PartSet.between(self._archives.get(key, EARLIEST), LATEST)
        existing = list((PartSet.of(self._extents.cut(key, item.parts)) & kept).ranges)
        self._staleness.add(key, existing, item.reason)
        return [StaleRange(self._names.get(key, item.table), found, item.reason) for found in existing]

    def write(self) -> None:
        execute = self._connection.execute
        if self._new:
            execute(insert(part_versions), [version_row(version) for version in self._new.values()])
            newest = {(key, index): number for key, index, number in self._new}
            execute(
                insert_or_update(self._connection, parts_table, ("version", "last_version")),
                [
                    {"table_key": key, "part_index": index, "version": number, "last_version": number}
                    for (key, index), number in newest.items()
                ],
            )
        if self._replaced:
            execute(
                update(part_versions).where(_IS_NUMBERED).values(replaced_at=self._at),
                [_number_row(number) for number in self._replaced],
            )
        if self._kept:
            columns = ("location", "definition_digest", "inputs", "inputs_digest", "rule")
            rows = {number: version_row(version) for number, version in self._kept.items()}
            execute(
                update(part_versions).where(_IS_NUMBERED).values({name: bindparam(f"new_{name}") for name in columns}),
                [
                    {**_number_row(number), **{f"new_{name}": row[name] for name in columns}}
                    for number, row in rows.items()
                ],
            )
        if self._more_rows:
            more_rows = [{"table_key": key, "rows": more} for key, more in self._more_rows.items()]
            execute(insert_or_add(self._connection, row_totals, "rows"), more_rows)
        self._extents.write()
        self._staleness.write()


_IS_NUMBERED = and_(
    part_versions.c.table_key == bindparam("of_table"),
    part_versions.c.part_index == bindparam("of_index"),
    part_versions.c.version == bindparam("of_version"),
)


def _number_row(number: tuple[str, int, int]) -> dict[str, str | int]:
    key, index, version = number
    return {"of_table": key, "of_index": index, "of_version": version}


def _written_parts(publications: Sequence[Publication]) -> dict[str, PartSet]:
    indexes: dict[str, list[int]] = {}
    for publication in publications:
        indexes.setdefault(fold(publication.table), []).append(publication.index)
    return {key: PartSet.of_indexes(found) for key, found in indexes.items()}


def _needed_parts(publications: Sequence[Publication], written: dict[str, PartSet]) -> dict[str, PartSet]:
    """The parts whose version numbers matter: those written and those read."""
    inputs: list[InputRange] = [item for publication in publications for item in publication.inputs]
    read = parts_of_inputs(inputs)
    return {key: read.get(key, PartSet()) | written.get(key, PartSet()) for key in read.keys() | written.keys()}


def _boxes(publications: Sequence[Publication]) -> dict[str, PartRange]:
    """Around everything that may grow, shrink or become stale: a range per table."""
    touched: dict[str, list[PartRange]] = {}
    for publication in publications:
        touched.setdefault(fold(publication.table), []).append(PartRange(publication.index, publication.index))
        for item in publication.stale:
            touched.setdefault(fold(item.table), []).append(item.parts)
    return {key: box for key, ranges in touched.items() if (box := bounds(ranges)) is not None}
