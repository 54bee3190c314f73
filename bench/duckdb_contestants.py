"""The same updates in DuckDB, over the same Parquet files, with as many threads as Spark has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from bench.contestants import parquet
from bench.window_strategies import Combine, list_steps


class DuckFolder:
    """Parts of a view as Parquet files below one directory, each in a directory of its own."""

    def __init__(self, parts: Sequence[str], directory: Path, threads: int) -> None:
        self.parts, self.directory = parts, directory
        self.database = duckdb.connect()
        self.database.execute(f"SET threads = {threads}")

    def answer(self, number: int) -> str | None:
        return parquet(self.directory / f"view{number}")

    def read(self, name: str) -> str:
        return parquet(self.directory / name)

    def write(self, name: str, sql: str) -> None:
        (self.directory / name).mkdir(parents=True, exist_ok=True)
        self.database.execute(f"COPY ({sql}) TO '{self.directory / name}/part.parquet' (FORMAT parquet)")


class DuckPattern(DuckFolder):
    def __init__(self, parts: Sequence[str], directory: Path, threads: int, begin: int) -> None:
        super().__init__(parts, directory, threads)
        self.begin = begin

    def update(self, number: int) -> None:
        if number > self.begin:
            before = f"LEFT JOIN {self.read(f'helper{number - 1}')} p ON m.src = p.src AND m.dest = p.dest"
            ct, total = "coalesce(p.ct, 0) + 1", "coalesce(p.sum_loss, 0) + m.loss"
        else:
            before, ct, total = "", "1::BIGINT", "m.loss::BIGINT"
        rows = parquet(self.parts[number])
        self.write(
            f"helper{number}",
            f"SELECT m.src, m.dest, {ct} AS ct, {total} AS sum_loss FROM {rows} m {before} WHERE m.loss > 10",
        )
        self.write(f"view{number}", f"SELECT * FROM {self.read(f'helper{number}')} WHERE ct >= 4")


class DuckPatternNaive(DuckFolder):
    def __init__(self, parts: Sequence[str], directory: Path, threads: int, scope: int) -> None:
        super().__init__(parts, directory, threads)
        self.scope = scope

    def update(self, number: int) -> None:
        rows = _read_all(self.parts[max(0, number - self.scope + 1) : number + 1])
        self.write(
            f"view{number}",
            f"""
            SELECT src, dest, count(*) AS ct, sum(loss) AS sum_loss
            FROM (SELECT *, sum(CASE WHEN loss > 10 THEN 0 ELSE 1 END)
                            OVER (PARTITION BY src, dest ORDER BY ts DESC) AS breaks FROM {rows})
            WHERE breaks = 0 GROUP BY src, dest HAVING count(*) >= 4
            """,
        )


class DuckWindow(DuckFolder):
    """A window by one of the strategies. `merge` is SUM or MAX."""

    def __init__(
        self, parts: Sequence[str], directory: Path, threads: int, window: int, merge: str, strategy: str
    ) -> None:
        super().__init__(parts, directory, threads)
        self.window, self.merge, self.strategy = window, merge, strategy

    def update(self, number: int) -> None:
        rows = parquet(self.parts[number])
        self.write(
            f"p{number}",
            f"SELECT src, dest, {self.merge}(loss)::BIGINT AS value, count(*) AS n FROM {rows} GROUP BY src, dest",
        )
        for step in list_steps(self.strategy, self.window, number):
            self._combine(step)

    def _combine(self, step: Combine) -> None:
        rows = f"SELECT * FROM {_read_all([str(self.directory / name) for name in step.plus])}"
        if step.minus is not None:
            rows += f" UNION ALL SELECT src, dest, -value, -n FROM {self.read(step.minus)}"
        self.write(
            step.name,
            f"SELECT src, dest, {self.merge}(value)::BIGINT AS value, sum(n)::BIGINT AS n FROM ({rows}) "
            "GROUP BY src, dest HAVING sum(n) > 0",
        )


class DuckWindowNaive(DuckFolder):
    def __init__(self, parts: Sequence[str], directory: Path, threads: int, window: int, merge: str) -> None:
        super().__init__(parts, directory, threads)
        self.window, self.merge = window, merge

    def update(self, number: int) -> None:
        rows = _read_all(self.parts[max(0, number - self.window + 1) : number + 1])
        self.write(
            f"view{number}",
            f"SELECT src, dest, {self.merge}(loss) AS value, count(*) AS n FROM {rows} GROUP BY src, dest",
        )


def _read_all(directories: Sequence[str]) -> str:
    files = ", ".join(f"'{directory}/*.parquet'" for directory in directories)
    return f"read_parquet([{files}])"
