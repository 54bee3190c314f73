"""The catalog against a model of it in plain dictionaries, over random histories."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from catalog_samples import batch_of, content, noon_plus, record
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete, update

from airflow_provider_viewdf.catalog import Catalog, CatalogReader, DefinitionChange, open_catalog
from airflow_provider_viewdf.catalog.tables import catalog_state, metadata
from airflow_provider_viewdf.definitions import Rule
from airflow_provider_viewdf.errors import ConflictError
from airflow_provider_viewdf.parts import PartRange, PartSet
from airflow_provider_viewdf.versions import Batch, InputRange, Publication, StaleRange

TABLES = ("M", "V", "W")
LOW, HIGH = -4, 8
FAR_FUTURE = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass
class ModelVersion:
    location: str
    number: int
    inputs: tuple[InputRange, ...]
    inputs_digest: str
    rule: Rule | None
    definition_digest: str
    created_at: datetime
    is_replaced: bool = False


@dataclass
class Model:
    """What a catalog holds, part by part and reason by reason."""

    generation: int = 0
    starts: dict[str, int | None] = field(default_factory=dict)
    versions: dict[tuple[str, int, int], ModelVersion] = field(default_factory=dict)
    current: dict[tuple[str, int], int] = field(default_factory=dict)
    last: dict[tuple[str, int], int] = field(default_factory=dict)
    stale: set[tuple[str, str, int]] = field(default_factory=set)
    batches: dict[tuple[str, str], Batch] = field(default_factory=dict)

    def existing(self, table: str) -> list[int]:
        return sorted(index for name, index in self.current if name == table)

    def digest(self, inputs: tuple[InputRange, ...]) -> str:
        parts = sorted({(item.table, index) for item in inputs for index in range(item.low, item.high + 1)})
        lines = (f"{t.lower()} {i} {self.current[t, i]}\n" for t, i in parts if (t, i) in self.current)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def mark(self, item: StaleRange) -> None:
        for index in item.parts:
            if (item.table, index) in self.current:
                self.stale.add((item.table, item.reason, index))

    def publish(self, offered: Publication, at: datetime) -> tuple[int, bool] | None:
        """Version number and whether the content changed; None for a conflict."""
        place = (offered.table, offered.index)
        number = self.current.get(place)
        if number != offered.replaces or (offered.inputs and self.digest(offered.inputs) != offered.inputs_digest):
            return None
        is_changed = number is None or self.versions[(*place, number)].number != offered.digest.high
        if is_changed:
            if number is not None:
                self.versions[(*place, number)].is_replaced = True
            number = self.last.get(place, 0) + 1
            self.current[place] = self.last[place] = number
            self.versions[(*place, number)] = ModelVersion(
                offered.location, offered.digest.high, (), "", None, "", created_at=at
            )
            for item in offered.stale:
                self.mark(item)
        assert number is not None
        version = self.versions[(*place, number)]
        version.inputs, version.inputs_digest = offered.inputs, offered.inputs_digest
        version.rule, version.definition_digest = offered.rule, offered.definition_digest
        self.stale = {item for item in self.stale if (item[0], item[2]) != place}
        return number, is_changed

    def drop(self, table: str) -> None:
        for place in [place for place in self.current if place[0] == table]:
            self.versions[(*place, self.current.pop(place))].is_replaced = True
        self.stale = {item for item in self.stale if item[0] != table}
        self.batches = {key: batch for key, batch in self.batches.items() if key[0] != table}


indexes = st.integers(LOW, HIGH)
ranges = st.tuples(indexes, indexes).map(lambda ends: PartRange(min(ends), max(ends)))
stale_lists = st.lists(
    st.builds(StaleRange, st.sampled_from(("V", "W")), ranges, st.sampled_from(("late", "later", "latest"))), max_size=2
)


@dataclass(frozen=True)
class Offer:
    """A publication that is still to learn what it replaces and reads."""

    table: str
    index: int
    number: int
    inputs: tuple[InputRange, ...]
    rule: Rule | None
    definition_digest: str
    stale: list[StaleRange]


offers = st.builds(
    Offer,
    table=st.sampled_from(TABLES),
    index=indexes,
    number=st.integers(0, 2),
    inputs=st.lists(
        st.builds(lambda table, span: InputRange(table, span.low, span.high), st.sampled_from(TABLES), ranges),
        max_size=2,
    ).map(tuple),
    rule=st.sampled_from((None, "initialize", "update")),
    definition_digest=st.sampled_from(("d1", "d2")),
    stale=stale_lists,
)
# What is wrong with the last publication of a call.
mistakes = st.sampled_from(("",) * 6 + ("version", "inputs"))


class CatalogMachine(RuleBasedStateMachine):
    """Does the same to a catalog and to a model of it, and compares everything that can be read."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self.catalog = catalog
        self.model = Model()
        self.minutes = 0

    @initialize()
    def define_tables(self) -> None:
        empty_catalog(self.catalog)
        records = [record("M", "stream"), record("V"), record("W")]
        changes = [DefinitionChange(item, "keep") for item in records]
        self.model.generation = self.catalog.save_definitions(changes, generation=0, produced_by="cli")
        self.model.starts = dict.fromkeys(TABLES)

    @rule(wanted=st.lists(offers, min_size=1, max_size=5), mistake=mistakes)
    def publish(self, wanted: list[Offer], mistake: str) -> None:
        self.publish_all(wanted, mistake)

    @rule(
        wanted=st.lists(offers, max_size=3),
        mistake=mistakes,
        batch_id=st.sampled_from(("a", "b", "c")),
        covers=ranges,
    )
    def load(self, wanted: list[Offer], mistake: str, batch_id: str, covers: PartRange) -> None:
        self.publish_all([replace(offer, table="M") for offer in wanted], mistake, batch_id, covers)

    def publish_all(
        self, wanted: list[Offer], mistake: str, batch_id: str = "", covers: PartRange | None = None
    ) -> None:
        self.minutes += 1
        at = noon_plus(self.minutes)
        after = deepcopy(self.model)
        publications: list[Publication] = []
        expected: list[tuple[int, bool]] = []
        is_refused = False
        for number, offer in enumerate(wanted):
            is_last = number == len(wanted) - 1
            publication = self.offer(after, offer, f"{self.minutes}-{number}", mistake if is_last else "")
            publications.append(publication)
            outcome = after.publish(publication, at)
            if outcome is None:
                is_refused = True
                break
            expected.append(outcome)
        batch = None if covers is None else self.batch(batch_id, covers, publications)
        arguments = {"generation": self.model.generation, "produced_by": "cli", "batch": batch, "at": at}
        if is_refused:
            with pytest.raises(ConflictError):
                self.catalog.publish(publications, **arguments)
            return
        published = self.catalog.publish(publications, **arguments)
        assert [(item.version.version, item.is_changed) for item in published] == expected
        if batch is not None:
            after.batches["M", batch.batch_id] = batch
        self.model = after

    def offer(self, model: Model, offer: Offer, place: str, mistake: str = "") -> Publication:
        replaces = model.current.get((offer.table, offer.index))
        digest = model.digest(offer.inputs)
        return Publication(
            table=offer.table,
            index=offer.index,
            replaces=(replaces or 0) + 1 if mistake == "version" else replaces,
            location=f"{offer.table}/{place}",
            digest=content(offer.number),
            definition_digest=offer.definition_digest,
            inputs=offer.inputs,
            inputs_digest=digest[::-1] if mistake == "inputs" else digest,
            rule=offer.rule,
            stale=tuple(offer.stale),
        )

    def batch(self, batch_id: str, covers: PartRange, publications: list[Publication]) -> Batch:
        brought = {item.index: item.digest for item in publications if item.table == "M"}
        return batch_of("M", batch_id, PartSet.of([covers]), sorted(brought.items()), minutes=self.minutes)

    @rule(
        table=st.sampled_from(TABLES),
        effect=st.sampled_from(("keep", "stale", "drop")),
        others=stale_lists,
    )
    def change_definition(self, table: str, effect: str, others: list[StaleRange]) -> None:
        saved = record(table, "stream" if table == "M" else "view", start_index=self.model.starts[table])
        change = DefinitionChange(saved, effect, tuple(others))  # type: ignore[arg-type]
        self.model.generation = self.catalog.save_definitions(
            [change], generation=self.model.generation, produced_by="cli"
        )
        if effect == "drop":
            self.model.drop(table)
        if effect == "stale":
            self.model.mark(StaleRange(table, PartRange(LOW, HIGH), "definition changed"))
        for item in others:
            self.model.mark(item)

    @rule(table=st.sampled_from(TABLES), start=st.none() | indexes)
    def set_start(self, table: str, start: int | None) -> None:
        self.model.generation = self.catalog.set_start(table, start, generation=self.model.generation)
        self.model.starts[table] = start

    @rule(offer=offers)
    def publish_on_an_older_generation(self, offer: Offer) -> None:
        publication = self.offer(self.model, offer, "late")
        with pytest.raises(ConflictError):
            self.catalog.publish([publication], generation=self.model.generation - 1, produced_by="cli")

    @rule(index=indexes)
    def forget_replaced_versions(self, index: int) -> None:
        with self.catalog.snapshot() as reader:
            replaced = [item for item in reader.replaced_versions(FAR_FUTURE) if item.index >= index]
        self.catalog.forget_versions(replaced)
        for item in replaced:
            assert self.model.versions.pop((item.table, item.index, item.version)).is_replaced

    @invariant()
    def catalog_holds_what_the_model_holds(self) -> None:
        with self.catalog.snapshot() as reader:
            assert reader.generation == self.model.generation
            assert {item.name: item.start_index for item in reader.definitions()} == self.model.starts
            for table in self.model.starts:
                self.compare_parts(reader, table)
                self.compare_staleness(reader, table)
            self.compare_batches(reader)
            self.compare_history(reader)

    def compare_parts(self, reader: CatalogReader, table: str) -> None:
        model = self.model
        expected = model.existing(table)
        parts = reader.existing_parts(table)
        assert parts == PartSet.of_indexes(expected)
        found = reader.current_versions(table)
        assert [(item.index, item.version) for item in found] == [(i, model.current[table, i]) for i in expected]
        for item in found:
            version = model.versions[table, item.index, item.version]
            assert item.digest == content(version.number)
            assert (item.location, item.inputs, item.inputs_digest, item.rule, item.definition_digest) == (
                version.location,
                version.inputs,
                version.inputs_digest,
                version.rule,
                version.definition_digest,
            )
        some = PartSet.of_indexes(range(LOW, HIGH, 2))
        assert [item.index for item in reader.current_versions(table, some)] == [i for i in expected if i in some]
        made = [i for i in expected if model.versions[table, i, model.current[table, i]].rule == "update"]
        assert list(reader.parts_made_by(table, "update")) == made
        assert reader.read_inputs([InputRange(table, LOW, 2)])[1] == model.digest((InputRange(table, LOW, 2),))
        summary = reader.summary(table)
        assert (summary.parts, summary.rows) == (parts, len(expected))
        times = [model.versions[table, i, model.current[table, i]].created_at for i in expected]
        assert summary.last_updated == max(times, default=None)

    def compare_staleness(self, reader: CatalogReader, table: str) -> None:
        found = reader.stale_ranges(table)
        assert {(item.table, item.reason, index) for item in found for index in item.parts} == {
            item for item in self.model.stale if item[0] == table
        }
        for reason in {item.reason for item in found}:
            of_reason = tuple(item.parts for item in found if item.reason == reason)
            assert PartSet.of(of_reason).ranges == of_reason
        assert reader.summary(table).stale == PartSet.of_indexes(
            index for name, _, index in self.model.stale if name == table
        )

    def compare_batches(self, reader: CatalogReader) -> None:
        expected = sorted(self.model.batches.values(), key=lambda item: (item.loaded_at, item.batch_id))
        assert reader.batches("M") == expected
        by_part: dict[int, dict[str, object]] = {}
        for batch in expected:
            for part in batch.parts:
                by_part.setdefault(part.index, {})[batch.batch_id] = part.digest
        assert reader.batches_of_parts("M", PartSet.everything()) == by_part

    def compare_history(self, reader: CatalogReader) -> None:
        versions = self.model.versions
        replaced = {(item.table, item.index, item.version) for item in reader.replaced_versions(FAR_FUTURE)}
        assert replaced == {key for key, item in versions.items() if item.is_replaced}
        assert reader.known_locations() == {item.location for item in versions.values()}
        middle = noon_plus(self.minutes // 2)
        changed = {(item.table, item.index, item.version) for item in reader.changed_since(middle)}
        assert changed == {key for key, item in versions.items() if not item.is_replaced and item.created_at >= middle}
        history = {
            (item.table, item.index, item.version)
            for table in TABLES
            for index in (LOW, 0)
            for item in reader.version_history(table, index)
        }
        assert history == {key for key in versions if key[1] in (LOW, 0)}


def empty_catalog(catalog: Catalog) -> None:
    """Quicker than a database for each example."""
    with catalog._database.writing() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not catalog_state:
                connection.execute(delete(table))
        connection.execute(update(catalog_state).values(generation=0))


@pytest.fixture
def run_machine() -> Iterator[Callable[[str, int], None]]:
    opened: list[Catalog] = []

    def run(url: str, examples: int) -> None:
        catalog = open_catalog(url)
        opened.append(catalog)
        run_state_machine_as_test(
            lambda: CatalogMachine(catalog),
            settings=settings(
                max_examples=examples,
                stateful_step_count=15,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )

    yield run
    for catalog in opened:
        catalog.close()


@pytest.mark.timeout(900)
def test_sqlite_catalog_behaves_like_its_model(run_machine: Callable[[str, int], None], tmp_path: Path) -> None:
    run_machine(f"sqlite:///{tmp_path}/catalog.db", 120)


@pytest.mark.timeout(900)
def test_postgresql_catalog_behaves_like_its_model(run_machine: Callable[[str, int], None], postgres_url: str) -> None:
    run_machine(postgres_url, 15)
