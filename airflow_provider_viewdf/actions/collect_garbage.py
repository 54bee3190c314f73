"""Remove what nobody can read any more: replaced versions, helper parts out of reach, and what crashed writes left."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from airflow_provider_viewdf.actions.leases import is_dead
from airflow_provider_viewdf.actions.retire_helpers import retire_helper_parts
from airflow_provider_viewdf.actions.workbench import Known, Workbench, find_writer
from airflow_provider_viewdf.engine.external_files import resolve_template
from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.fail_points import reach
from airflow_provider_viewdf.reports import CleanUpReport
from airflow_provider_viewdf.versions import ARCHIVED, directory_of


def collect_garbage(bench: Workbench, grace: timedelta) -> CleanUpReport:
    """Delete files that have been of no use for longer than `grace`, so that running queries keep theirs."""
    before = datetime.now(UTC) - grace
    retired = retire_helper_parts(bench)
    reach("gc: helpers retired")
    with bench.catalog.snapshot() as reader:
        replaced = reader.replaced_versions(before)
        unused = reader.retired_locations(before)
        in_use = reader.locations_in_use(before)
    # The files of an external part are not ours: only what is remembered of them goes.
    gone = [
        directory_of(version.location)
        for version in replaced
        if version.location not in ("", ARCHIVED) and not version.files
    ]
    # A directory that parts share is removed with the last of them.
    paths = [path for path in dict.fromkeys((*gone, *unused)) if path and path not in in_use]
    for path in paths:
        bench.files.discard(path)
        reach("gc: directory removed")
    bench.catalog.forget_versions(replaced)
    reach("gc: versions forgotten")
    bench.catalog.forget_retired([path for path in unused if path not in in_use])
    reach("gc: places forgotten")
    # Listed before the catalog is read: a version published in between is then known, not an orphan.
    directories = [*bench.files.list_version_directories(), *bench.files.list_staging_directories()]
    found = [directory.location for directory in directories if directory.modified_at < before]
    writers = _find_writers_alive(bench)
    with bench.catalog.snapshot() as reader:
        known = reader.known_locations()
        written_by_others = _find_places_of_others(bench, bench.read_known(reader))
    orphans = [
        location
        for location in found
        if location not in known and find_writer(location) not in writers and not written_by_others(location)
    ]
    for location in orphans:
        bench.files.discard(location)
        reach("gc: orphan removed")
    for location in (*paths, *orphans):
        bench.files.delete_empty_directories(location)
    return CleanUpReport(len(replaced), len(orphans), (*paths, *orphans), retired)


def _find_writers_alive(bench: Workbench) -> set[str]:
    """Who may be about to publish what it wrote, however little the grace period.

    The leases of the others are ended first. Should one of them be alive after all, the catalog refuses what it publishes.
    """
    writers = bench.catalog.writers()
    ended = [writer for writer in writers if writer.is_expired or is_dead(writer.owner)]
    if ended:
        bench.catalog.release_leases([writer.token for writer in ended])
    reach("gc: writers ended")
    return {writer.name for writer in writers} - {writer.name for writer in ended}


def _find_places_of_others(bench: Workbench, known: Known) -> Callable[[str], bool]:
    """Tells the locations in the warehouse at which other people's files lie: of external streams and dimension tables."""
    root = f"{bench.files.root}/"
    templates = [resolve_template(item, bench.files) for item in known.definitions.values() if item.is_external]
    dimensions = [
        resolved
        for item in known.definitions.values()
        if item.kind == "dimension" and (resolved := _resolve_fixed_part(bench, item.location))
    ]

    def is_of_others(location: str) -> bool:
        place = f"{root}{location}"
        return any(template.meets(place.split("/")) for template in templates) or any(
            f"{place}/".startswith(other) or other.startswith(f"{place}/") for other in dimensions
        )

    return is_of_others


def _resolve_fixed_part(bench: Workbench, location: str) -> str:
    """The place of a dimension table, up to the first character that makes it a pattern."""
    fixed = re.split(r"[*?\[{]", location, maxsplit=1)[0].rstrip("/")
    try:
        return bench.files.resolve(fixed)
    except UsageError:
        return ""  # it does not lie in the warehouse
