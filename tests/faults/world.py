"""A small warehouse for tests that break things, what its views must hold, and a look at it that uses none of its code.

The look goes by plain SQL over the catalog and by pyarrow over the files, the expectation by plain Python.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
from postgres import PostgresServer
from sqlalchemy import create_engine, text
from worker import Operation, Place, perform

FIRST = 23668440  # 2015-01-01 10:00 in minutes
HOUR = 394474

SCRIPT = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k STRING, x INT) PARTITION LENGTH 60;
CREATE STREAM E (ts TIMESTAMP ORDERED, k STRING, v INT) PARTITION LENGTH '1 hour'
  LOCATION 'lake/{yyyy-MM-dd}/{HH}' FORMAT csv COMPLETE WHEN '_SUCCESS';
CREATE VIEW Chain AS
  INITIALIZE Chain[i] AS SELECT k, CAST(sum(x) AS BIGINT) AS total FROM S[i] GROUP BY k
  UPDATE Chain[j] AS
    SELECT k, CAST(sum(total) AS BIGINT) FROM (
      SELECT k, CAST(x AS BIGINT) AS total FROM S[j] UNION ALL SELECT k, total FROM Chain[j-1]) GROUP BY k
  PARTITION LENGTH 60;
CREATE VIEW Plain AS SELECT k, 2 * x AS y FROM S;
CREATE VIEW Recent AS SELECT sum(x) AS total FROM S [WINDOW 2 minutes] WITH (strategy = 'merge') RETAIN '2 minutes';
"""

EXTRA = "CREATE VIEW Extra AS SELECT k FROM S STARTING LATEST;"

Row = tuple[int, int, str, int]  # minute, second, batch, number
Rows = tuple[Row, ...]
Content = dict[int, Counter[tuple[Any, ...]]]

# The rows of a batch say which batch they are of; a corrected one shares none with what it was before.
FIRST_A: Rows = ((0, 1, "a", 1), (1, 1, "a", 2), (2, 1, "a", 3), (4, 1, "a", 4))
FIRST_B: Rows = ((1, 5, "b", 10), (3, 5, "b", 20))
NEXT_A: Rows = ((0, 1, "a", 101), (1, 2, "a", 102), (3, 1, "a", 103), (5, 1, "a", 104))
LATE_C: Rows = ((2, 9, "c", 1000), (6, 9, "c", 2000))

LOAD_FIRST: tuple[Operation, ...] = (("load", "a", FIRST_A, 0, 5), ("load", "b", FIRST_B, 1, 4))
CORRECT: Operation = ("load", "a", NEXT_A, 0, 6)
LATE: Operation = ("load", "c", LATE_C, 6, 7)
EMPTY: Operation = ("declare empty", 5)
REFRESH: Operation = ("refresh",)


@dataclass(frozen=True)
class State:
    """What was loaded into S: by batch its rows; and the minutes that exist."""

    batches: Mapping[str, Rows] = field(default_factory=dict)
    existing: frozenset[int] = frozenset()

    def after(self, operation: Operation) -> State:
        if operation[0] == "load":
            _, batch, rows, first, end = operation
            existing = {*self.existing, *range(first, end), *(row[0] for row in rows)}
            return State({**self.batches, batch: rows}, frozenset(existing))
        if operation[0] == "declare empty":
            return replace(self, existing=self.existing | {operation[1]})
        return self

    def rows(self, part: int) -> list[tuple[str, int]]:
        return [(k, x) for rows in self.batches.values() for m, _, k, x in rows if m == part]

    def expect(self) -> dict[str, Content]:
        """By table: the rows of each of its parts."""
        first, last = min(self.existing), max(self.existing)
        assert set(range(first, last + 1)) == self.existing
        expected: dict[str, Content] = {"s": {}, "chain": {}, "plain": {}, "recent": {}}
        totals: Counter[str] = Counter()
        for part in range(first, last + 1):
            rows = self.rows(part)
            for k, x in rows:
                totals[k] += x
            expected["s"][part] = Counter((k, x) for k, x in rows)
            expected["plain"][part] = Counter((k, 2 * x) for k, x in rows)
            expected["chain"][part] = Counter(dict(totals).items())
            if part > first:
                window = [x for _, x in (*self.rows(part - 1), *rows)]
                expected["recent"][part] = Counter([(sum(window) if window else None,)])
        return expected


def states_along(state: State, operations: Iterable[Operation]) -> list[State]:
    """The state before the first of these, and after each."""
    states = [state]
    for operation in operations:
        states.append(states[-1].after(operation))
    return states


COLUMNS = {"s": ("k", "x"), "chain": ("k", "total"), "plain": ("k", "y"), "recent": ("total",)}


@dataclass(frozen=True)
class Seen:
    """One part as it is stored: its version, how many rows the catalog says it has, and where they are."""

    table: str
    part: int
    version: int
    rows: int
    location: str

    @property
    def has_files(self) -> bool:
        return self.location not in ("", "archived:") and "://" not in self.location

    @property
    def directory(self) -> str:
        return self.location.partition("#")[0]


class World:
    """A warehouse at a place, and what must be true of it."""

    def __init__(self, place: Place, state: State) -> None:
        self.place = place
        self.state = state

    @property
    def root(self) -> Path:
        return Path(self.place.directory)

    def ask_catalog(self, sql: str) -> list[Any]:
        url = self.place.catalog_url or f"sqlite:///{self.root}/catalog.sqlite"
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        try:
            with engine.connect() as connection:
                return list(connection.execute(text(sql)))
        finally:
            engine.dispose()

    def look(self) -> list[Seen]:
        """Every part that exists, in its current version."""
        return [
            Seen(*row)
            for row in self.ask_catalog(
                "SELECT p.table_key, p.part_index, p.version, v.rows, v.location FROM parts p JOIN part_versions v "
                "ON v.table_key = p.table_key AND v.part_index = p.part_index AND v.version = p.version"
            )
        ]

    def read(self, seen: Seen) -> list[dict[str, Any]]:
        files = sorted((self.root / seen.directory).glob("*.parquet"))
        assert files, f"{seen} has no files"
        rows = [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]
        return [row for row in rows if row["__part"] == seen.part] if "#" in seen.location else rows

    def read_tables(self) -> dict[str, Content]:
        """The rows of S and of the views that a person wrote. Of any part, all rows are there."""
        found: dict[str, Content] = {name: {} for name in COLUMNS}
        for seen in self.look():
            rows = self.read(seen) if seen.has_files else []
            assert len(rows) == (seen.rows if seen.has_files else 0), seen
            if seen.table in COLUMNS and seen.location != "archived:":
                found[seen.table][seen.part - FIRST] = Counter(
                    tuple(row[name] for name in COLUMNS[seen.table]) for row in rows
                )
        return found

    def check_versions(self, states: Sequence[State]) -> None:
        """Every part is wholly of one of these states; and all of S is of one."""
        expected = [state.expect() for state in states]
        found = self.read_tables()
        assert found["s"] in [item["s"] for item in expected]
        # What a look finds is registered at once.
        assert sorted(seen.part for seen in self.look() if seen.table == "e") in ([], [HOUR, HOUR + 1])
        for name, content in found.items():
            for part, rows in content.items():
                assert rows in [item[name].get(part) for item in expected], (name, part, rows)

    def check_answers(self, state: State) -> None:
        """Every view is what it would be from scratch, and knows it."""
        expected = state.expect()
        found = self.read_tables()
        archived = {(seen.table, seen.part - FIRST) for seen in self.look() if seen.location == "archived:"}
        for name, content in expected.items():
            kept = {part: rows for part, rows in content.items() if (name, part) not in archived}
            assert found[name] == kept, name
        # What was asked for and cannot be there yet, such as the first window, is marked too.
        stale = "SELECT p.table_key, p.part_index FROM parts p JOIN stale_ranges r ON r.table_key = p.table_key"
        assert self.ask_catalog(f"{stale} AND p.part_index BETWEEN r.low AND r.high WHERE p.version IS NOT NULL") == []

    def list_directories(self) -> set[str]:
        """Every directory that holds the files of a version, or rows on their way."""
        versions = [path for path in self.root.glob("[!.]*/*/*") if path.is_dir() and path.parts[-3] != "lake"]
        return {str(path.relative_to(self.root)) for path in (*versions, *self.root.glob(".staging/*"))}

    def list_referenced(self) -> set[str]:
        return {seen.directory for seen in self.look() if seen.has_files}


class Worlds:
    """Makes worlds in a second: each is a copy of one that was made once."""

    def __init__(self, folder: Path, spark: Any, postgres: PostgresServer) -> None:
        self._folder = folder
        self._spark = spark
        self._postgres = postgres
        self._made: dict[tuple[str, str], World] = {}
        self._count = 0

    def _new_folder(self) -> Path:
        self._count += 1
        return self._folder / f"world{self._count}"

    def make_empty(self, database: str) -> World:
        folder = self._new_folder()
        url = self._postgres.create_database() if database == "postgresql" else None
        return World(Place(str(folder), url), State())

    def copy(self, kind: str, database: str, remote: str = "") -> World:
        """A world that is settled, or littered: with much for gc to do."""
        if (kind, database) not in self._made:
            self._made[kind, database] = self._make(kind, database)
        original = self._made[kind, database]
        folder = self._new_folder()
        shutil.copytree(original.root, folder)
        url = original.place.catalog_url
        return World(
            Place(str(folder), None if url is None else self._postgres.copy_database(url), remote), original.state
        )

    def remove(self, world: World) -> None:
        shutil.rmtree(world.root, ignore_errors=True)
        if world.place.catalog_url is not None:
            self._postgres.drop_database(world.place.catalog_url)

    def _make(self, kind: str, database: str) -> World:
        if kind == "settled":
            world, operations = self.make_empty(database), [("apply", SCRIPT), *LOAD_FIRST, REFRESH]
            for hour in (10, 11):
                directory = world.root / "lake" / "2015-01-01" / str(hour)
                directory.mkdir(parents=True)
                (directory / "a.csv").write_text(f"ts,k,v\n2015-01-01 {hour}:05:00,e,{hour}\n")
                (directory / "_SUCCESS").touch()
        else:
            world, operations = self.copy("settled", database), [CORRECT, REFRESH, ("roll up",), ("retire",)]
            # Left behind by writers that are no more, and by one from before writers had names.
            for orphan in (f"S/{FIRST}/v9-0123456789ab-01234567", ".staging/0123456789ab-76543210", "Chain/7/v1-old"):
                (world.root / orphan).mkdir(parents=True)
                (world.root / orphan / "part.parquet").write_bytes(b"half")
        state = world.state
        with world.place.open(self._spark) as warehouse:
            for operation in operations:
                perform(warehouse, operation)
                state = state.after(operation)
        return World(world.place, state)
