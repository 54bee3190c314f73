"""Refresh many parts of one view at once: one statement, one write, one transaction. What fails is done part by part."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from airflow_provider_viewdf.actions.refresh import (
    LEASE_SECONDS,
    StepInputs,
    acquire_lease,
    describe_inputs,
    is_due,
    make_publication,
    name_owner,
)
from airflow_provider_viewdf.actions.workbench import Known, Workbench, dimension_table, input_table
from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.compiler import BatchInput, CompiledBatch, compile_batch, find_inputs, unite_parts
from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.engine.batch_writes import PART_COLUMN, ValuesTable, compute_batch
from airflow_provider_viewdf.engine.engine import InputTable
from airflow_provider_viewdf.errors import (
    CatalogUnavailableError,
    ConflictError,
    LanguageError,
    QueryRefusedError,
    StepFailedError,
    ViewDFError,
)
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning import Agenda, Step
from airflow_provider_viewdf.reports import StepReport
from airflow_provider_viewdf.versions import ContentDigest, InputRange, PartVersion, Publication, Published

logger = logging.getLogger("airflow_provider_viewdf")

RunStep = Callable[[Workbench, Known, Agenda, Step], StepReport | None]

# Beyond this much input a part has work enough for a job of its own.
MOST_ROWS = 5_000_000

# Somebody publishes the same parts, faster: rather planned anew than tried for ever.
MOST_CONFLICTS = 100

# Spark needs more than twice as long to plan twice as many statements.
MOST_UNITED = 50


@dataclass(slots=True)
class BatchRunner:
    """Runs groups of steps, and remembers which queries Spark cannot compute for many parts at once."""

    bench: Workbench
    known: Known
    agenda: Agenda
    run_step: RunStep
    _refused: set[tuple[str, Rule]] = field(default_factory=set)
    _apart: set[tuple[str, Rule]] = field(default_factory=set)
    _conflicts: int = 0

    def run(self, steps: Sequence[Step]) -> list[StepReport]:
        """Compute and publish these parts, or the first of them; those that someone else has done are left out."""
        key = (fold(steps[0].view), steps[0].rule)
        while len(steps) > 1 and key not in self._apart:
            group = steps[:MOST_UNITED] if key in self._refused else steps
            with _hold_leases(self.bench.catalog, group) as held:
                reports = self._run_together([step for step in group if step.index in held])
            if reports is not None:
                return reports
        return self._run_alone(steps[0])

    def _run_alone(self, step: Step) -> list[StepReport]:
        report = self.run_step(self.bench, self.known, self.agenda, step)
        return [] if report is None else [report]

    def _run_together(self, steps: Sequence[Step]) -> list[StepReport] | None:
        """None if it cannot be done in this way; `_refused` or `_apart` then has the query."""
        started = time.monotonic()
        definition = self.known.find(steps[0].view)
        tasks = self._prepare(definition, steps)
        if not tasks:
            return []
        steps = [step for step in steps if step.index in tasks]
        out = f".staging/{uuid4().hex}"
        try:
            digests = self._compute(definition, steps, tasks, out)
            if digests is None:
                return None
            locations = self._move(definition, tasks, digests, out)
        finally:
            self.bench.files.delete(out)
            self.bench.files.delete_empty_directories(out)
        published = self._publish(definition, steps, tasks, digests, locations)
        seconds = (time.monotonic() - started) / len(steps)
        return [
            StepReport(
                step.view,
                step.index,
                definition.partitioning.start_of(step.index),
                step.rule,
                step.reason,
                "published" if published[step.index].is_changed else "kept",
                published[step.index].version.rows,
                published[step.index].version.version,
                seconds,
                describe_inputs(tasks[step.index].versions),
            )
            for step in steps
            if step.index in published
        ]

    def _prepare(self, definition: Definition, steps: Sequence[Step]) -> dict[int, StepInputs]:
        """What these steps need, from one state of the catalog; steps beyond MOST_ROWS rows of input are left for later."""
        tasks: dict[int, StepInputs] = {}
        done: list[Step] = []
        rows = 0
        with self.bench.catalog.snapshot() as reader:
            if reader.generation != self.known.generation:
                raise ConflictError(
                    f"Definitions changed while parts of {definition.name} were to be computed. "
                    "Nothing was written; refresh again."
                )
            indexes = PartSet.of_indexes(step.index for step in steps)
            current = {version.index: version for version in reader.current_versions(definition.name, indexes)}
            stale = reader.stale_ranges(definition.name)
            for step in steps:
                present = current.get(step.index)
                if present is not None and not is_due(stale, step, present):
                    done.append(step)
                    continue
                reads = find_inputs(definition, step.rule, step.index, self.known.definitions, self.agenda.bounds.first)
                inputs = tuple(InputRange(table, parts.low, parts.high) for table, parts in reads)
                versions, inputs_digest = reader.read_inputs(inputs)
                rows += sum(version.rows for version in versions)
                if tasks and rows > MOST_ROWS:
                    break
                replaces = None if present is None else present.version
                tasks[step.index] = StepInputs(inputs, tuple(versions), inputs_digest, replaces)
            everything_stale = reader.stale_ranges() if done else []
        for step in done:
            self.agenda.record(step, everything_stale)
        return tasks

    def _compute(
        self, definition: Definition, steps: Sequence[Step], tasks: Mapping[int, StepInputs], out: str
    ) -> dict[int, ContentDigest] | None:
        rule = steps[0].rule
        key = (fold(definition.name), rule)
        indexes = [step.index for step in steps]
        try:
            if key not in self._refused:
                compiled = compile_batch(
                    definition, rule, indexes, self.known.definitions, uuid4().hex[:8], self.agenda.bounds.first
                )
                return self._write(definition, compiled, tasks, out)
        except (QueryRefusedError, LanguageError):
            logger.debug("%s cannot be computed for many parts at once, only as a union of them.", definition.name)
            self._refused.add(key)
            return None
        except StepFailedError as error:
            self._go_apart(definition, key, error)
            return None
        try:
            united = unite_parts(definition, rule, indexes, self.known.definitions, self.agenda.bounds.first)
            if united is not None:
                return self._write(definition, united, tasks, out)
            self._go_apart(definition, key, None)
        except (QueryRefusedError, LanguageError, StepFailedError) as error:
            self._go_apart(definition, key, error)
        return None

    def _go_apart(self, definition: Definition, key: tuple[str, Rule], error: ViewDFError | None) -> None:
        """One by one says better what is wrong with which part, and the others are done before it."""
        logger.info("Parts of %s are computed one by one%s", definition.name, f": {error}" if error else ".")
        self._apart.add(key)

    def _write(
        self, definition: Definition, compiled: CompiledBatch, tasks: Mapping[int, StepInputs], out: str
    ) -> dict[int, ContentDigest]:
        by_part = {(fold(item.table), item.index): item for task in tasks.values() for item in task.versions}
        return compute_batch(
            self.bench.open_engine(),
            compiled.sql,
            ValuesTable(compiled.values_name, compiled.values_columns, compiled.values) if compiled.values else None,
            [self._input_table(item, by_part) for item in compiled.inputs],
            [dimension_table(self.known.find(name)) for name in compiled.dimensions],
            definition.columns,
            out,
        )

    def _input_table(self, item: BatchInput, by_part: Mapping[tuple[str, int], PartVersion]) -> InputTable:
        definition = self.known.find(item.table)
        key = fold(item.table)
        for index in item.parts:
            if (key, index) not in by_part or by_part[key, index].has_lost_rows:
                raise ConflictError(
                    f"{definition.describe_part(index)} was there when the refresh was planned, and is gone. "
                    "Nothing was written; refresh again."
                )
        versions = [by_part[key, index] for index in item.parts]
        return input_table(self.bench, definition, item.name, versions, has_part_column=item.has_part_column)

    def _move(
        self, definition: Definition, tasks: Mapping[int, StepInputs], digests: Mapping[int, ContentDigest], out: str
    ) -> dict[int, str]:
        """Put the files of each part where a version's files lie."""
        locations: dict[int, str] = {}
        for index, task in tasks.items():
            if index in digests:
                locations[index] = self.bench.new_location(definition, index, task.replaces)
                self.bench.files.move(f"{out}/{PART_COLUMN}={index}", locations[index])
        return locations

    def _publish(
        self,
        definition: Definition,
        steps: Sequence[Step],
        tasks: Mapping[int, StepInputs],
        digests: Mapping[int, ContentDigest],
        locations: Mapping[int, str],
    ) -> dict[int, Published]:
        """All in one transaction; if one of them is in conflict with what others did, each in its own.

        A part that is in conflict stays on the agenda.
        """
        offered = [
            make_publication(
                definition,
                self.agenda,
                step,
                tasks[step.index],
                locations.get(step.index, ""),
                digests.get(step.index, ContentDigest()),
            )
            for step in steps
        ]
        done: dict[int, Published] = {}
        unused = dict(locations)
        try:
            for chosen in self._publish_all_or_each(offered):
                done[chosen.version.index] = chosen
        except CatalogUnavailableError:
            # They may have been published after all. If not, gc finds the files.
            unused.clear()
            raise
        finally:
            for index, location in unused.items():
                if index not in done or done[index].version.location != location:
                    self.bench.files.delete(location)
        for step in steps:
            if step.index in done:
                self.agenda.record(step, done[step.index].stale)
        return done

    def _publish_all_or_each(self, offered: Sequence[Publication]) -> Iterator[Published]:
        generation, produced_by = self.known.generation, str(self.bench.produced_by)
        try:
            yield from self.bench.catalog.publish(offered, generation=generation, produced_by=produced_by)
            return
        except ConflictError as conflict:
            logger.info("%s Publishing each part by itself.", conflict)
        for item in offered:
            try:
                yield from self.bench.catalog.publish([item], generation=generation, produced_by=produced_by)
            except ConflictError as conflict:
                with self.bench.catalog.snapshot() as reader:
                    if reader.generation != generation:
                        raise
                logger.info("%s Trying again.", conflict)
                self._conflicts += 1
                if self._conflicts > MOST_CONFLICTS:
                    raise


@contextmanager
def _hold_leases(catalog: Catalog, steps: Sequence[Step]) -> Iterator[set[int]]:
    """Be the only one at work on these parts: wait for the first, and take of the others those that nobody has.

    Whoever waits holds nothing, so no two can wait for each other.
    """
    view, owner = steps[0].view, name_owner()
    first = acquire_lease(catalog, view, steps[0].index, owner)
    tokens = catalog.acquire_leases(view, [step.index for step in steps[1:]], owner, LEASE_SECONDS)
    tokens[steps[0].index] = first
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            try:
                catalog.renew_leases(list(tokens.values()), LEASE_SECONDS)
            except Exception as error:
                # A lease only saves double work, so its loss is no reason to stop.
                logger.warning("The leases of %d parts of %s could not be renewed: %s", len(tokens), view, error)

    thread = threading.Thread(target=renew, name=f"leases of {view}", daemon=True)
    thread.start()
    try:
        yield set(tokens)
    finally:
        ended.set()
        thread.join()
        try:
            catalog.release_leases(list(tokens.values()))
        except CatalogUnavailableError as error:
            # They end by themselves. What went wrong before must not be hidden by this.
            logger.warning("The leases of %d parts of %s could not be released: %s", len(tokens), view, error)
