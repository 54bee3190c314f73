"""What every action works with: the catalog, the part files, Spark, and who is at work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_provider_viewdf.actions.leases import LEASE_SECONDS, name_owner, renewing
from airflow_provider_viewdf.catalog import Catalog, CatalogReader
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.engine.part_files import PartFiles
from airflow_provider_viewdf.errors import DamagedPartError, UnknownTableError, UsageError
from airflow_provider_viewdf.language import parse_stored_script
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning import Snapshot
from airflow_provider_viewdf.translate.translation import Translation
from airflow_provider_viewdf.versions import DefinitionRecord, PartVersion, Producer, directory_of

if TYPE_CHECKING:
    from airflow_provider_viewdf.engine.engine import DimensionTable, Engine, InputTable


@dataclass(frozen=True, slots=True)
class Known:
    """The definitions of one generation of the catalog, by folded name."""

    generation: int
    definitions: Mapping[str, Definition]
    records: Mapping[str, DefinitionRecord]

    @property
    def starts(self) -> dict[str, int]:
        return {key: record.start_index for key, record in self.records.items() if record.start_index is not None}

    def find(self, name: str) -> Definition:
        definition = self.definitions.get(fold(name))
        if definition is None:
            names = ", ".join(item.name for item in self.definitions.values()) or "nothing yet"
            raise UnknownTableError(f"Nothing is defined with the name {name}; there is: {names}.")
        return definition

    def find_view(self, name: str) -> Definition:
        definition = self.find(name)
        if definition.kind != "view":
            raise UsageError(f"{definition.name} is no view but a {_describe_kind(definition)}; name a view.")
        return definition

    def find_stream(self, name: str) -> Definition:
        definition = self.find(name)
        if definition.kind != "stream":
            raise UsageError(
                f"{definition.name} is a {_describe_kind(definition)}; rows are loaded into what CREATE STREAM defines."
            )
        return definition


def _describe_kind(definition: Definition) -> str:
    return {"stream": "table", "dimension": "dimension table", "view": "view"}[definition.kind]


@dataclass(slots=True)
class Workbench:
    catalog: Catalog
    files: PartFiles
    open_engine: Callable[[], Engine]
    produced_by: Producer
    _known: Known | None = field(default=None, repr=False)
    _writer: str = ""
    writer_token: str | None = None

    @contextmanager
    def at_work(self) -> Iterator[Workbench]:
        """A workbench to write files with. Their directories bear the name of a writer, so that gc sees that it is alive."""
        writer = uuid4().hex[:12]
        token = self.catalog.acquire_writer(writer, name_owner(), LEASE_SECONDS)
        working = replace(self, _writer=writer, writer_token=token)
        with renewing(self.catalog, [token], f"writer {writer}"):
            try:
                yield working
            finally:
                self._known = working._known

    def read_known(self, reader: CatalogReader) -> Known:
        """The definitions of a snapshot, parsed once for each generation."""
        if self._known is None or self._known.generation != reader.generation:
            records = {fold(record.name): record for record in reader.definitions()}
            parsed = parse_stored_script(";\n".join(_parsed_text(record) for record in records.values()))
            self._known = Known(
                reader.generation,
                {fold(item.name): _restore(item, records[fold(item.name)]) for item in parsed},
                records,
            )
        return self._known

    def known(self) -> Known:
        with self.catalog.snapshot() as reader:
            return self.read_known(reader)

    def new_location(self, definition: Definition, index: int, replaces: int | None) -> str:
        """A place for a new version, which no other writer can choose."""
        return f"{definition.name}/{index}/v{(replaces or 0) + 1}-{self.new_name()}"

    def new_name(self) -> str:
        """How the name of a directory ends that this writer makes: with the writer, and a number of its own."""
        assert self._writer, "only who is at work writes files"
        return f"{self._writer}-{uuid4().hex[:8]}"

    def find_vanished(self, versions: Sequence[PartVersion]) -> PartVersion | None:
        """One of these versions whose files are gone: they were read by an older state of the catalog than gc went by.

        None: whatever was read of them before was all there.
        """
        wanted: dict[str, list[PartVersion]] = {}
        for version in versions:
            if version.has_files:
                wanted.setdefault(fold(version.table), []).append(version)
        for key, found in wanted.items():
            with self.catalog.snapshot() as reader:
                parts = PartSet.of_indexes(version.index for version in found)
                current = {item.index: item.location for item in reader.current_versions(key, parts)}
            for version in found:
                # What is current has its files.
                if current.get(version.index) != version.location and not self.files.exists(
                    directory_of(version.location)
                ):
                    return version
        return None


_WRITER = re.compile(r"(?:^|-)([0-9a-f]{12})-[0-9a-f]{8}$")


def find_writer(location: str) -> str:
    """The writer of a directory, by its name; "" if it does not say."""
    match = _WRITER.search(location.rpartition("/")[2])
    return match.group(1) if match else ""


def _parsed_text(record: DefinitionRecord) -> str:
    return Translation.from_json(record.translation).view.text if record.translation else record.text


def _restore(definition: Definition, record: DefinitionRecord) -> Definition:
    return replace(
        definition,
        text=record.text,
        columns=record.columns,
        helper_of=record.helper_of,
        translation=Translation.from_json(record.translation) if record.translation else None,
    )


def read_snapshot(reader: CatalogReader, known: Known, names: Iterable[str]) -> Snapshot:
    """The state of these tables and views, for planning."""
    keys = [key for key in names if known.definitions[key].is_partitioned]
    views = [key for key in keys if known.definitions[key].kind == "view"]
    return Snapshot(
        definitions=known.definitions,
        existing={key: reader.existing_parts(key) for key in keys},
        stale={key: tuple(reader.stale_ranges(key)) for key in views},
        # Not those of an earlier definition: they stayed, and the rules of this one do not make them stale.
        initialized={key: reader.parts_made_by(key, "initialize", known.definitions[key].digest) for key in views},
        starts=known.starts,
        archived={key: before for key in keys if (before := reader.archived_before(key)) is not None},
        retired={key: reader.retired_parts(key) for key in views if known.definitions[key].helper_of},
    )


def dimension_table(definition: Definition, name: str | None = None) -> DimensionTable:
    from airflow_provider_viewdf.engine.engine import DimensionTable

    return DimensionTable(
        name or definition.name, definition.columns, definition.location, definition.format, definition.options
    )


def input_table(
    bench: Workbench,
    definition: Definition,
    name: str,
    versions: Sequence[PartVersion],
    *,
    has_part_column: bool,
    reader: str = "",
) -> InputTable:
    """A temporary view over the files of part versions, of the warehouse or of an external stream, for a view that reads it."""
    from airflow_provider_viewdf.engine.engine import InputTable

    lost = PartSet.of_indexes(version.index for version in versions if version.is_lost)
    if lost:
        raise DamagedPartError(
            f"{definition.describe_parts(lost)} lost rows when files were damaged. What brought them has to be loaded again; "
            f"this lists it: viewdf repair {definition.name}"
        )
    locations = tuple((version.index, version.location) for version in versions if version.location)
    external = None
    if definition.is_external:
        from airflow_provider_viewdf.engine.external_files import resolve_template
        from airflow_provider_viewdf.engine.file_readers import ExternalInput

        external = ExternalInput(
            definition.name,
            tuple(f"{version.location}/{file.name}" for version in versions for file in version.files),
            definition.format,
            definition.options,
            resolve_template(definition, bench.files),
            definition.length_seconds,
        )
    return InputTable(name, definition.columns_for(reader), locations, has_part_column, external)
