"""Refresh many parts of one view at once: one statement, one write, one transaction. What fails is done part by part."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from airflow_provider_viewdf.actions.leases import hold_leases
from airflow_provider_viewdf.actions.refresh import (
    StepInputs,
    describe_inputs,
    is_due,
    make_publication,
    tell_vanished,
)
from airflow_provider_viewdf.actions.workbench import Known, Workbench, dimension_table, input_table
from airflow_provider_viewdf.compiler import BatchInput, CompiledBatch, compile_batch, find_inputs, unite_parts
from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.engine.batch_writes import PART_COLUMN, ValuesTable, compute_batch
from airflow_provider_viewdf.engine.engine import InputTable
from airflow_provider_viewdf.errors import ConflictError, LanguageError, QueryRefusedError, StepFailedError, ViewDFError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.planning import Agenda, Step
from airflow_provider_viewdf.reports import StepReport
from airflow_provider_viewdf.versions import ContentDigest, InputRange, PartVersion, Publication, Published

logger = logging.getLogger("airflow_provider_viewdf")

RunStep = Callable[[Workbench, Known, Agenda, Step], StepReport | None]

# So much input for all parts of a batch together.
MOST_ROWS = 5_000_000

# Beyond this much input a part has work enough for a job of its own, and a batch, which has to tell parts apart, takes longer.
LARGE_PART_ROWS = 200_000

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
        while len(steps) > 1 and key not in self._apart and not self._is_large(steps[0]):
            group = steps[:MOST_UNITED] if key in self._refused else steps
            with hold_leases(self.bench.catalog, group[0].view, [step.index for step in group]) as held:
                reports = self._run_together([step for step in group if step.index in held])
            if reports is not None:
                return reports
        return self._run_alone(steps[0])

    def _is_large(self, step: Step) -> bool:
        with self.bench.catalog.snapshot() as reader:
            versions, _ = reader.read_inputs(self._find_inputs(step))
        return sum(version.rows for version in versions) > LARGE_PART_ROWS

    def _find_inputs(self, step: Step) -> tuple[InputRange, ...]:
        definition = self.known.find(step.view)
        reads = find_inputs(definition, step.rule, step.index, self.known.definitions, self.agenda.bounds.first)
        return tuple(InputRange(table, parts.low, parts.high) for table, parts in reads)

    def _run_alone(self, step: Step) -> list[StepReport]:
        report = self.run_step(self.bench, self.known, self.agenda, step)
        return [] if report is None else [report]

    def _run_together(self, steps: Sequence[Step]) -> list[StepReport] | None:
        """None if it cannot be done in this way; `_refused` or `_apart` then has the query."""
        reach("refresh many: leased")
        started = time.monotonic()
        definition = self.known.find(steps[0].view)
        tasks = self._prepare(definition, steps)
        if not tasks:
            return []
        steps = [step for step in steps if step.index in tasks]
        out = f".staging/{self.bench.new_name()}"
        read = [version for task in tasks.values() for version in task.versions]
        try:
            digests = self._compute(definition, steps, tasks, out)
            if version := self.bench.find_vanished(read):
                self._apart.discard((fold(definition.name), steps[0].rule))
                self._note_conflict(tell_vanished(definition, version))
                return []
            if digests is None:
                return None
            reach("refresh many: computed")
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
                inputs = self._find_inputs(step)
                versions, inputs_digest = reader.read_inputs(inputs)
                own = sum(version.rows for version in versions)
                rows += own
                if tasks and (rows > MOST_ROWS or own > LARGE_PART_ROWS):
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
                reach("refresh many: moved")
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
        # If this fails, nobody knows what was published: gc finds what was not.
        done = {chosen.version.index: chosen for chosen in self._publish_all_or_each(offered)}
        reach("refresh many: published")
        for index, location in locations.items():
            if index not in done or done[index].version.location != location:
                self.bench.files.delete(location)
        for step in steps:
            if step.index in done:
                self.agenda.record(step, done[step.index].stale)
        return done

    def _publish_all_or_each(self, offered: Sequence[Publication]) -> Iterator[Published]:
        generation, produced_by, writer = self.known.generation, str(self.bench.produced_by), self.bench.writer_token
        try:
            yield from self.bench.catalog.publish(
                offered, generation=generation, produced_by=produced_by, writer=writer
            )
            return
        except ConflictError as conflict:
            logger.info("%s Publishing each part by itself.", conflict)
        for item in offered:
            try:
                yield from self.bench.catalog.publish(
                    [item], generation=generation, produced_by=produced_by, writer=writer
                )
            except ConflictError as conflict:
                with self.bench.catalog.snapshot() as reader:
                    if reader.generation != generation:
                        raise
                self._note_conflict(conflict)

    def _note_conflict(self, conflict: ConflictError) -> None:
        """What is in conflict stays on the agenda, but not for ever."""
        logger.info("%s Trying again.", conflict)
        self._conflicts += 1
        if self._conflicts > MOST_CONFLICTS:
            raise conflict
