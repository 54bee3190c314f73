"""A refresh, watched from outside: how long its phases take. It works the same on classic Spark and on Spark Connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from airflow_provider_viewdf.actions import refresh as refresh_action
from airflow_provider_viewdf.catalog import Catalog
from airflow_provider_viewdf.engine import sessions
from airflow_provider_viewdf.engine.engine import Engine
from airflow_provider_viewdf.engine.part_files import PartFiles
from airflow_provider_viewdf.planning import Agenda
from bench.instruments import CATALOG_METHODS, Clock

SESSION = "Spark: opening a session"
CATALOG, PUBLISHING, PLANNING = "catalog: reading and leases", "catalog: publishing", "planning and compiling"
VIEWS, ANALYSIS, RUNNING = "Spark: temporary views", "Spark: analysis", "Spark: the job"
FILES = "files: looking, deleting"
REST = "the rest"

PHASES = (SESSION, CATALOG, PLANNING, VIEWS, ANALYSIS, RUNNING, FILES, PUBLISHING)


@contextmanager
def watched(clock: Clock) -> Iterator[None]:
    """Have a clock count what the phases of refreshes take inside this block."""
    watched_methods: tuple[tuple[str, Any, list[str]], ...] = (
        (SESSION, sessions, ["open_session"]),
        (CATALOG, Catalog, [method for method in CATALOG_METHODS if method != "publish"]),
        (PUBLISHING, Catalog, ["publish"]),
        (PLANNING, refresh_action, ["begin_agenda", "compile_part"]),
        (PLANNING, Agenda, ["next_group", "record"]),
        (VIEWS, Engine, ["_create_views", "_drop_views"]),
        (ANALYSIS, Engine, ["_select", "_hash_row"]),
        (RUNNING, Engine, ["save"]),
        (FILES, PartFiles, ["exists", "delete", "make_room"]),
    )
    with ExitStack() as stack:
        for name, owner, methods in watched_methods:
            stack.enter_context(clock.watching(name, owner, *methods))
        yield


def fill_up(seconds: Mapping[str, float], whole: float) -> dict[str, float]:
    """Every phase, and what is left of the whole."""
    phases = {name: seconds.get(name, 0.0) for name in PHASES}
    return {**phases, REST: whole - sum(phases.values())}


def watch(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What some work returns, and how long its phases took."""
    clock = Clock()
    with clock.running(REST), watched(clock):
        answer = work()
    return answer, fill_up(clock.seconds, sum(clock.seconds.values()))
