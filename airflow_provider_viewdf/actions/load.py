"""Load a batch: route its rows to parts by event time, and publish all of them at once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from airflow_provider_viewdf.actions.lateness import count_late, judge_batch, set_aside
from airflow_provider_viewdf.actions.leases import hold_lease
from airflow_provider_viewdf.actions.look import empty_parts_that_are_gone
from airflow_provider_viewdf.actions.unique import check_unique, set_repeated_aside
from airflow_provider_viewdf.actions.workbench import Known, Workbench, read_snapshot
from airflow_provider_viewdf.catalog import CatalogReader
from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.engine.engine import StreamPart
from airflow_provider_viewdf.engine.sources import describe_source, stage_rows
from airflow_provider_viewdf.errors import (
    ArchivedPartError,
    CatalogUnavailableError,
    ConflictError,
    ImplausibleBatchError,
    LoadError,
    QueryRefusedError,
    RejectedRowsError,
    StepFailedError,
    UsageError,
)
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.parts import EARLIEST, PartRange, PartSet, as_time, format_time
from airflow_provider_viewdf.planning import Bounds
from airflow_provider_viewdf.planning.lateness import Lateness
from airflow_provider_viewdf.planning.retention import describe_retention
from airflow_provider_viewdf.planning.snapshot import descendants_of
from airflow_provider_viewdf.reports import LoadResult
from airflow_provider_viewdf.versions import (
    LOST,
    Batch,
    BatchPart,
    ContentDigest,
    LateCount,
    PartVersion,
    Publication,
    RejectedRow,
    StaleRange,
    directory_of,
)

OnError = Literal["reject", "quarantine"]
Covers = tuple[datetime | str, datetime | str]

ATTEMPTS = 5
LONGEST_STRETCH = timedelta(days=31)
MOST_PARTS = 1_000_000
SHOWN_ROWS = 5


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of a batch, checked and typed, waiting under `location`, and what they bring into each part."""

    location: str
    source: str
    parts: Mapping[int, ContentDigest]
    rejected: tuple[RejectedRow, ...]
    earliest: str = ""
    latest: str = ""

    @property
    def rows(self) -> int:
        return sum(digest.rows for digest in self.parts.values())


def load_batch(
    bench: Workbench,
    table: str,
    source: Any,
    *,
    batch_id: str | None,
    covers: Covers | None,
    on_error: OnError,
    confirm: bool,
) -> LoadResult:
    if on_error not in ("reject", "quarantine"):
        raise UsageError(f'on_error is "reject" or "quarantine", not {on_error!r}.')
    started = time.monotonic()
    definition = bench.known().find_stream(table)
    if definition.is_external:
        raise UsageError(
            f"{definition.name} is external: its rows are in the files at {definition.location}, so none can be loaded; "
            f"put files there, and register them: viewdf look {definition.name}."
        )
    span = find_covered(definition, covers)
    with bench.at_work() as working:
        scratch = f".staging/{working.new_name()}"
        try:
            staged = _stage(working, definition, source, f"{scratch}/in")
            reach("load: staged")
            if staged.rejected and on_error == "reject":
                raise _refuse_rows(definition, staged)
            batch_id = batch_id or _name_batch(staged, span)
            done = _publish(working, definition, staged, batch_id, span, scratch, on_error, confirm=confirm, because="")
        except OSError as error:
            raise LoadError(
                f"The warehouse at {bench.files.root} cannot be written: {error.strerror or error}. Nothing was loaded; "
                "load it again when that is mended."
            ) from error
        finally:
            bench.files.delete(scratch)
            bench.files.delete_empty_directories(scratch)
    seconds = time.monotonic() - started
    taken = done.staged
    return LoadResult(
        definition.name,
        batch_id,
        taken.rows,
        done.covers,
        done.changed,
        taken.rejected,
        seconds,
        done.late,
        done.restored,
    )


def declare_parts_empty(bench: Workbench, table: str, covers: Covers, why: str) -> LoadResult:
    """Record that parts have no rows and never will. Parts that have rows keep them.

    External parts whose files are all gone have none any more.
    """
    if not why.strip():
        raise UsageError("Say why: the reason is kept, and shown by status.")
    started = time.monotonic()
    definition = bench.known().find_stream(table)
    span = find_covered(definition, covers)
    staged = Staged("", "declared empty", {}, ())
    batch_id = (
        f"declared-empty/{definition.partitioning.format(span.first)}/{definition.partitioning.format(span.last)}"
    )
    done = _publish(bench, definition, staged, batch_id, span, "", "reject", confirm=True, because=why)
    reach("declare empty: recorded")
    changed = done.changed
    if definition.is_external:
        changed |= empty_parts_that_are_gone(bench, definition.name, done.covers)
    return LoadResult(definition.name, batch_id, 0, done.covers, changed, (), time.monotonic() - started)


def find_covered(definition: Definition, covers: Covers | None) -> PartSet:
    if covers is None:
        return PartSet()
    start, end = as_time(covers[0]), as_time(covers[1])
    span = definition.partitioning.parts_within(start, end)
    if span is None:
        raise UsageError(f"covers must be a time and a later one, not {covers[0]} and {covers[1]}.")
    return PartSet((span,))


def _stage(bench: Workbench, definition: Definition, source: Any, location: str) -> Staged:
    if _is_dataframe(source):
        engine = bench.open_engine()
        frame = engine.stage_dataframe(
            source, definition.columns, definition.ordered, definition.length_seconds, location
        )
        parts = engine.summarize_staging(location, definition.columns) if frame.rows else {}
        return Staged(location, "DataFrame", parts, frame.rejected, _name_time(frame.first), _name_time(frame.last))
    staged = stage_rows(source, definition, bench.files.path(location), bench.files.filesystem)
    parts = bench.open_engine().summarize_staging(location, definition.columns) if staged.rows else {}
    return Staged(
        location,
        describe_source(source),
        parts,
        staged.rejected,
        staged.first[1] if staged.first else "",
        staged.last[1] if staged.last else "",
    )


def _name_time(time: datetime | None) -> str:
    return "" if time is None else f"a row of {format_time(time)}"


def _is_dataframe(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.")


def _refuse_rows(definition: Definition, staged: Staged) -> RejectedRowsError:
    count = len(staged.rejected)
    shown = "; ".join(str(row) for row in staged.rejected[:SHOWN_ROWS])
    more = f"; and {count - SHOWN_ROWS} more" if count > SHOWN_ROWS else ""
    rows = "1 row does not fit" if count == 1 else f"{count} rows do not fit"
    return RejectedRowsError(
        f"{rows} {definition.name}: {shown}{more}. Nothing was loaded; correct the rows, or load with "
        'on_error="quarantine" to set them aside.',
        staged.rejected,
    )


def _name_batch(staged: Staged, covers: PartSet) -> str:
    """The id of a batch that nobody named: the same content is the same batch."""
    content = "|".join(f"{index}={digest}" for index, digest in sorted(staged.parts.items()))
    rejected = "|".join(f"{row.line}:{row.row}" for row in staged.rejected)
    return (
        "content-" + hashlib.sha256(f"{content}#{rejected}#{covers if not content else ''}".encode()).hexdigest()[:24]
    )


@dataclass(frozen=True, slots=True)
class _Done:
    """What a load came to: the parts that the batch covers, those that it changed, the rows taken, and the late ones.

    `restored` are the parts whose files had been damaged, and which have all their rows again.
    """

    covers: PartSet
    changed: PartSet
    staged: Staged
    late: LateCount
    restored: PartSet = field(default_factory=PartSet)


def _sift(bench: Workbench, definition: Definition, staged: Staged, lateness: Lateness) -> tuple[Staged, LateCount]:
    """The batch without the rows that come too late, and how many are late."""
    late = count_late(definition, staged.parts, lateness)
    if not lateness.too_late:
        return staged, late
    rejected = staged.rejected
    if late.quarantined:
        rejected += set_aside(bench, definition, staged.location, staged.source, lateness.too_late, late.quarantined)
    parts = {index: digest for index, digest in staged.parts.items() if index not in lateness.too_late}
    # The earliest row may be one of those that are gone.
    return replace(staged, parts=parts, rejected=rejected, earliest=""), late


def _sift_repeated(bench: Workbench, definition: Definition, staged: Staged, written: str, kept: str) -> Staged:
    """The batch without the rows that are alike in what is UNIQUE."""
    aside = set_repeated_aside(bench, definition, written, staged.location, staged.source, kept)
    parts = bench.open_engine().summarize_staging(kept, definition.columns)
    # The earliest row may be one of those that are gone.
    return replace(staged, location=kept, parts=parts, rejected=staged.rejected + aside, earliest="", latest="")


def _publish(
    bench: Workbench,
    definition: Definition,
    staged: Staged,
    batch_id: str,
    covers: PartSet,
    scratch: str,
    on_error: OnError,
    *,
    confirm: bool,
    because: str,
) -> _Done:
    """Publish a batch; again, if others changed meanwhile what it was based on.

    Loads of one table go on side by side until one has come too late. That one, and those that begin after it, queue up: else a
    load into parts that many others change could be too late again and again.
    """
    queue = f"load {definition.name}"
    with ExitStack() as place:
        is_queued = False
        for attempt in range(ATTEMPTS):
            if not is_queued and (attempt or bench.catalog.lease_holder(queue, 0) is not None):
                place.enter_context(hold_lease(bench.catalog, queue, 0))
                is_queued = True
            out = f"{scratch}/out{attempt}"
            is_last = attempt == ATTEMPTS - 1
            done = _publish_once(
                bench,
                definition,
                staged,
                batch_id,
                covers,
                out,
                on_error,
                confirm=confirm,
                because=because,
                is_last=is_last,
            )
            if isinstance(done, _Done):
                return done
            staged = done
    raise AssertionError("unreachable")


def _publish_once(
    bench: Workbench,
    definition: Definition,
    everything: Staged,
    batch_id: str,
    covers: PartSet,
    out: str,
    on_error: OnError,
    *,
    confirm: bool,
    because: str,
    is_last: bool,
) -> _Done | Staged:
    """What is to be published by another attempt, if this one came too late or some rows must stay out, and is not the last."""
    with bench.catalog.snapshot() as reader:
        known = bench.read_known(reader)
        definition = known.find_stream(definition.name)
        lateness = judge_batch(reader, definition, PartSet.of_indexes(everything.parts), batch_id, covers)
        staged, late = _sift(bench, definition, everything, lateness)
        rows = PartSet.of_indexes(staged.parts)
        covered = covers if covers or not rows else PartSet.between(rows.first, rows.last)
        if not confirm:
            _check_plausible(definition, reader.existing_parts(definition.name), staged, rows, covered, covers)
        before = reader.batch(definition.name, batch_id)
        change = _find_change(reader, known, definition, staged, before, batch_id, covered, because, late)
    if before is not None and bench.produced_by.is_outdone_by(before.produced_by):
        raise ConflictError(
            f"The batch {batch_id} of {definition.name} was loaded by {before.produced_by}, which is later than this try. "
            "Nothing was loaded."
        )
    if change is None:
        return _Done(covered, PartSet(), staged, late)
    read = list(change.current.values())
    try:
        readable = _find_readable(bench, definition, change)
        written = _write(bench, definition, staged, batch_id, change, readable, out)
    except (StepFailedError, QueryRefusedError):
        if not is_last and bench.find_vanished(read):
            return everything
        raise
    if definition.unique and written and (problem := check_unique(bench, definition, out)) is not None:
        if on_error == "reject" or is_last:
            raise problem
        return _sift_repeated(bench, definition, everything, out, f"{out}-in")
    locations = _move(bench, definition, change, written, out)
    batch = Batch(
        table=definition.name,
        batch_id=batch_id,
        source=staged.source,
        covers=covered,
        parts=tuple(BatchPart(index, digest) for index, digest in sorted(staged.parts.items())),
        rejected=staged.rejected,
        loaded_at=datetime.now(UTC),
        produced_by=str(bench.produced_by),
        declared_empty_because=because,
        late=late,
        measured_against=lateness.newest,
    )
    try:
        if vanished := bench.find_vanished(read):
            raise _lost_while_read(definition, vanished)
        published = bench.catalog.publish(
            _offer(definition, change, readable, locations),
            generation=known.generation,
            produced_by=str(bench.produced_by),
            batch=batch,
            batch_before=before,
            writer=bench.writer_token,
        )
    except ConflictError:
        _delete_all(bench, locations.values())
        if is_last:
            raise
        return everything
    except CatalogUnavailableError:
        # The database went away, and the batch may have been published after all: then there is nothing to do the next time,
        # and the files are in use. If not, gc finds them, as after any other error.
        if is_last:
            raise
        return everything
    reach("load: published")
    current = {directory_of(item.version.location) for item in published}
    _delete_all(bench, [location for location in locations.values() if location not in current])
    changed = PartSet.of_indexes(item.version.index for item in published if item.is_changed)
    lost = PartSet.of_indexes(index for index, version in change.current.items() if version.is_lost)
    restored = lost - PartSet.of_indexes(item.version.index for item in published if item.version.is_lost)
    return _Done(covered, changed, staged, late, restored)


def _delete_all(bench: Workbench, locations: Iterable[str]) -> None:
    for location in locations:
        bench.files.delete(location)


def _lost_while_read(definition: Definition, version: PartVersion) -> ConflictError:
    return ConflictError(
        f"The files of {definition.describe_part(version.index)} were removed while they were read. "
        "Nothing was loaded; try again."
    )


def _check_plausible(
    definition: Definition, existing: PartSet, staged: Staged, rows: PartSet, covered: PartSet, covers: PartSet
) -> None:
    if not covered and not rows:
        return
    everything = covered | rows
    remedy = "correct it, or confirm that it is meant (confirm=True, viewdf load --confirm)"
    if len(everything) > MOST_PARTS:
        culprit = f"from {staged.earliest} to {staged.latest}" if not covers else "by its covers"
        raise ImplausibleBatchError(
            f"The batch covers {len(everything)} parts of {definition.name}, {everything.format(definition.partitioning)}, "
            f"{culprit}, which is more than a million; {remedy}. Nothing was loaded."
        )
    known = existing | covers if existing else covers
    if not known:
        return
    longest = LONGEST_STRETCH // timedelta(seconds=definition.length_seconds)
    for index, row in ((everything.first, staged.earliest), (everything.last, staged.latest)):
        base = existing if existing else known
        stretch = max(base.first - index, index - base.last)
        if stretch > longest:
            at = f" ({row})" if row and index in rows else ""
            raise ImplausibleBatchError(
                f"The batch reaches {definition.describe_part(index)}{at}, more than 31 days beyond what "
                f"{definition.name} has, {PartSet.between(base.first, base.last).format(definition.partitioning)}; "
                f"{remedy}. Nothing was loaded."
            )


# What batches brought, by part and batch.
_ByBatch = Mapping[int, Mapping[str, ContentDigest]]


@dataclass(frozen=True, slots=True)
class _Change:
    """What a batch changes: by part its digest after, what other batches brought, and the versions there are now."""

    digests: Mapping[int, ContentDigest]
    others: _ByBatch
    current: Mapping[int, PartVersion]
    bounds: Bounds

    def needs_files(self, index: int) -> bool:
        """Whether the rows of a part have to be written: there are some, and they do not lie where they are."""
        present = self.current.get(index)
        return self.digests[index].rows > 0 and (
            present is None or present.digest != self.digests[index] or present.is_lost
        )


def _find_change(
    reader: CatalogReader,
    known: Known,
    definition: Definition,
    staged: Staged,
    before: Batch | None,
    batch_id: str,
    covered: PartSet,
    because: str,
    late: LateCount,
) -> _Change | None:
    """None if the batch is there already, exactly so."""
    had = {part.index: part.digest for part in before.parts} if before else {}
    affected = PartSet.of_indexes(index for index in {*had, *staged.parts} if had.get(index) != staged.parts.get(index))
    created = (covered | PartSet.of_indexes(staged.parts)) - reader.existing_parts(definition.name)
    # Rows that were lost are written again, although the batch is what it was.
    present = reader.current_versions(definition.name, PartSet.of_indexes(staged.parts)) if staged.parts else []
    affected |= PartSet.of_indexes(version.index for version in present if version.is_lost)
    if (
        before is not None
        and not affected
        and not created
        and before.covers == covered
        and before.rejected == staged.rejected
        and before.declared_empty_because == because
        and before.late == late
    ):
        return None
    touched = affected | created
    _refuse_archived(reader, definition, touched)
    by_batch = reader.batches_of_parts(definition.name, affected)
    digests: dict[int, ContentDigest] = {}
    others: dict[int, dict[str, ContentDigest]] = {}
    for index in touched:
        others[index] = {other: digest for other, digest in by_batch.get(index, {}).items() if other != batch_id}
        digests[index] = sum(others[index].values(), staged.parts.get(index, ContentDigest()))
    current = {version.index: version for version in reader.current_versions(definition.name, touched)}
    names = descendants_of(known.definitions, definition.name)
    snapshot = read_snapshot(reader, known, known.definitions if names else [fold(definition.name)])
    grown = {**snapshot.existing, fold(definition.name): snapshot.existing_parts(fold(definition.name)) | touched}
    # By the rules as they are once the batch is in: it may have moved the first part.
    bounds = Bounds(replace(snapshot, existing=grown))
    return _Change(digests, others, current, bounds)


def _refuse_archived(reader: CatalogReader, definition: Definition, touched: PartSet) -> None:
    before = reader.archived_before(definition.name)
    gone = touched & PartSet.between(EARLIEST, before - 1) if before is not None else PartSet()
    if gone:
        raise ArchivedPartError(
            f"The batch changes {definition.describe_parts(gone)}, archived: {describe_retention(definition)}. "
            "Nothing was loaded; take the rows of that time out of the batch."
        )


def _write(
    bench: Workbench,
    definition: Definition,
    staged: Staged,
    batch_id: str,
    change: _Change,
    readable: _ByBatch,
    out: str,
) -> list[int]:
    """Write the new content of every part that changes and has rows, below `<out>/__part=<index>`: which parts these are."""
    written = [
        index for index in change.digests if change.needs_files(index) and (readable[index] or index in staged.parts)
    ]
    if written:
        parts = [
            StreamPart(
                index,
                change.current[index].location.removeprefix(LOST) if index in change.current else "",
                bool(readable[index]),
                index in staged.parts,
            )
            for index in written
        ]
        bench.open_engine().write_stream_parts(
            staged.location if staged.parts else None, batch_id, definition.columns, parts, out
        )
        reach("load: written")
    return written


def _move(
    bench: Workbench, definition: Definition, change: _Change, written: Sequence[int], out: str
) -> dict[int, str]:
    """Put what was written where the files of a version lie."""
    locations: dict[int, str] = {}
    for index in written:
        locations[index] = bench.new_location(definition, index, _number(change.current.get(index)))
        bench.files.move(f"{out}/__part={index}", locations[index])
        reach("load: moved")
    return locations


def _offer(
    definition: Definition, change: _Change, readable: _ByBatch, locations: Mapping[int, str]
) -> list[Publication]:
    late = _find_stale(definition, change)
    return [
        Publication(
            table=definition.name,
            index=index,
            replaces=_number(change.current.get(index)),
            # As long as the rows of another batch are lost, the part is.
            location=("" if readable[index] == change.others[index] else LOST) + locations.get(index, ""),
            digest=digest,
            definition_digest=definition.digest,
            inputs=(),
            inputs_digest="",
            rule=None,
            stale=late.get(index, ()),
        )
        for index, digest in sorted(change.digests.items())
    ]


def _find_readable(bench: Workbench, definition: Definition, change: _Change) -> _ByBatch:
    """By part: what other batches brought and can still be read. That is all of it, but for parts whose files were damaged."""
    found = dict(change.others)
    for index, version in change.current.items():
        if version.is_lost:
            place = directory_of(version.location)
            restored = bench.open_engine().digest_batches(definition.columns, place) if place else {}
            # Rows of a batch that was corrected meanwhile count as lost.
            found[index] = {
                batch: digest for batch, digest in change.others[index].items() if restored.get(batch) == digest
            }
    return found


def _number(version: PartVersion | None) -> int | None:
    return None if version is None else version.version


def _find_stale(definition: Definition, change: _Change) -> dict[int, tuple[StaleRange, ...]]:
    """What becomes stale, for the first part of each run of changed parts: one entry a run, however long it is."""
    changed = PartSet.of_indexes(
        index
        for index, digest in change.digests.items()
        if index not in change.current or change.current[index].digest != digest
    )
    return {
        run.low: change.bounds.stale_because(
            definition.name, run, f"late data in {definition.name}[{PartRange(run.low, run.high)}]"
        )
        for run in changed.ranges
    }
