"""The paper's own SQL in PostgreSQL: a table for each part, and each update a CREATE TABLE AS.

Loading the rows of a part is not timed, as it is not for the others. The server does not wait for the disk (fsync is off), which
is in its favour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import psycopg

from bench.contestants import parquet


class PostgresLoader:
    """Brings the rows of a part into a table of its own."""

    def __init__(self, url: str, parts: Sequence[str], directory: Path) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.parts = parts
        self.file = directory / "rows.csv"

    def load(self, number: int) -> None:
        rows = f"SELECT src, dest, loss FROM {parquet(self.parts[number])}"
        duckdb.sql(f"COPY ({rows}) TO '{self.file}' (HEADER false)")
        self.connection.execute(f"CREATE TABLE m{number} (src INT, dest INT, loss INT)".encode())
        copy_in = f"COPY m{number} FROM STDIN (FORMAT csv)".encode()
        with self.connection.cursor() as cursor, cursor.copy(copy_in) as copy, self.file.open("rb") as file:
            while data := file.read(1 << 20):
                copy.write(data)
        self.connection.execute(f"ANALYZE m{number}".encode())


class PostgresTables:
    """The tables of one contestant, in a schema of its own. The rows of the stream are there for all of them."""

    def __init__(self, url: str, directory: Path) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.execute(f"CREATE SCHEMA {directory.name}")
        self.execute(f"SET search_path = {directory.name}, public")

    def answer(self, number: int) -> str | None:
        file = self.directory / f"view{number}.csv"
        with self.connection.cursor() as cursor, file.open("wb") as rows:
            with cursor.copy(f"COPY view{number} TO STDOUT (FORMAT csv, HEADER true)".encode()) as copy:
                for data in copy:
                    rows.write(data)
        return f"read_csv('{file}')"

    def execute(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    def make(self, name: str, sql: str) -> None:
        self.execute(f"CREATE TABLE {name} AS {sql}")
        # As autovacuum would soon: without statistics the next join is planned at random.
        self.execute(f"ANALYZE {name}")


class PostgresPattern(PostgresTables):
    """`Helper` and `View2` of section 2, from part `begin` on."""

    def __init__(self, url: str, directory: Path, begin: int) -> None:
        super().__init__(url, directory)
        self.begin = begin

    def update(self, number: int) -> None:
        if number > self.begin:
            helper = (
                "SELECT m.src, m.dest, coalesce(p.ct, 0) + 1 AS ct, coalesce(p.sum_loss, 0) + m.loss AS sum_loss "
                f"FROM m{number} m LEFT JOIN helper{number - 1} p ON m.src = p.src AND m.dest = p.dest WHERE m.loss > 10"
            )
        else:
            helper = f"SELECT src, dest, 1 AS ct, loss AS sum_loss FROM m{number} WHERE loss > 10"
        self.make(f"helper{number}", helper)
        self.make(f"view{number}", f"SELECT * FROM helper{number} WHERE ct >= 4")


class PostgresWindow(PostgresTables):
    """`Helper` and `View6` (SUM, by cumulative sums) or `View5` (MAX, by merging partial maxima) of section 5.2."""

    def __init__(self, url: str, directory: Path, window: int, merge: str) -> None:
        super().__init__(url, directory)
        self.window, self.merge = window, merge

    def update(self, number: int) -> None:
        self.make_helper(number)
        if self.merge == "MAX":
            self._make_max(number)
        else:
            self._make_sum(number)

    def make_helper(self, number: int) -> None:
        rows = f"SELECT src, dest, {self.merge}(loss) AS value, count(*) AS n FROM m{number} GROUP BY src, dest"
        if number and self.merge == "SUM":
            rows = (
                "SELECT src, dest, sum(value) AS value, sum(n) AS n "
                f"FROM ({rows} UNION ALL SELECT * FROM helper{number - 1}) h GROUP BY src, dest"
            )
        self.make(f"helper{number}", rows)

    def _make_max(self, number: int) -> None:
        parts = range(max(0, number - self.window + 1), number + 1)
        union = " UNION ALL ".join(f"SELECT * FROM helper{index}" for index in parts)
        self.make(
            f"view{number}", f"SELECT src, dest, max(value) AS value, sum(n) AS n FROM ({union}) h GROUP BY src, dest"
        )

    def _make_sum(self, number: int) -> None:
        view = f"SELECT src, dest, value, n FROM helper{number}"
        if number >= self.window:
            view = (
                "SELECT h.src, h.dest, h.value - coalesce(p.value, 0) AS value, h.n - coalesce(p.n, 0) AS n "
                f"FROM helper{number} h LEFT JOIN helper{number - self.window} p ON h.src = p.src AND h.dest = p.dest "
                "WHERE h.n > coalesce(p.n, 0)"
            )
        self.make(f"view{number}", view)
