"""Many parts at once: fewer jobs, and the very same part versions as one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lake import FIRST as FIRST_HOUR
from lake import Lake, hour, row
from network import minute

from airflow_provider_viewdf.actions import refresh_batch
from airflow_provider_viewdf.actions.workbench import Workbench
from airflow_provider_viewdf.errors import StepFailedError
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.versions import Producer
from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440  # 10:00
STREAM = "CREATE STREAM S (ts TIMESTAMP ORDERED, k STRING, x INT) PARTITION LENGTH 60;\n"

# Each is refused by Spark as a lateral join, or not; and tells parts apart, or does not.
QUERIES = {
    "Filtered": "SELECT * FROM S WHERE x > 1",
    "Grouped": "SELECT k, sum(x) AS total, count(*) AS ct FROM S GROUP BY k HAVING count(*) > 0",
    "Counted": "SELECT count(*) AS ct, max(x) AS most FROM S",
    "Numbered": "SELECT k, row_number() OVER (PARTITION BY k ORDER BY ts) AS rn, sum(x) OVER () AS total FROM S",
    "Cheapest": "SELECT k, x FROM S ORDER BY x, k, ts LIMIT 1",
    "Clocked": "SELECT k, now() AS made, current_date() AS day, PART AS p, PART_TIMESTAMP AS at FROM S",
    "Alone": "SELECT a.k, b.x FROM S a LEFT JOIN (SELECT k, x FROM S WHERE x > 2) b ON a.k = b.k",
    "Compared": "SELECT k, x FROM S WHERE x >= (SELECT avg(x) FROM S)",
    "Rolled": "SELECT k, sum(x) AS total FROM S GROUP BY ROLLUP (k)",
    "Common": "WITH c AS (SELECT k, x FROM S) SELECT a.k, b.x FROM c a JOIN c b USING (k)",
    "Joined": "SELECT d.label, count(*) AS ct FROM S JOIN d USING (k) GROUP BY d.label",
    "Nothing": "SELECT k FROM S WHERE x > 1000",
    "Both": "SELECT k FROM S UNION ALL SELECT CAST(count(*) AS STRING) FROM S",
}
RULES = """
CREATE VIEW Window AS INITIALIZE Window[i] AS SELECT k, sum(x) AS total, min(PART) AS oldest FROM S[i-2 .. i] GROUP BY k
  UPDATE Window[j] AS SELECT k, sum(x), min(PART) FROM S[j-2 .. j] GROUP BY k PARTITION LENGTH 60;
CREATE VIEW Change AS INITIALIZE Change[i] AS SELECT k, 0 AS x FROM S[i]
  UPDATE Change[j] AS SELECT b.k, b.x - a.x FROM S[j-1] a JOIN S[j] b ON a.k = b.k PARTITION LENGTH 60;
CREATE VIEW Twos AS INITIALIZE Twos[i] AS SELECT k, count(*) AS ct FROM S[i*2 .. i*2+1] GROUP BY k
  UPDATE Twos[j] AS SELECT k, count(*) FROM S[j*2 .. j*2+1] GROUP BY k PARTITION LENGTH 120;
CREATE VIEW Back AS INITIALIZE Back[i] AS SELECT s.k, t.ct FROM S[i] s JOIN Twos[i/2] t USING (k)
  UPDATE Back[j] AS SELECT s.k, t.ct FROM S[j] s JOIN Twos[j/2] t USING (k) PARTITION LENGTH 60;
CREATE VIEW Filling AS INITIALIZE Filling[i] AS SELECT k, count(*) AS ct, min(PART) AS oldest FROM S[i-2 .. i PARTIAL] GROUP BY k
  UPDATE Filling[j] AS SELECT k, count(*), min(PART) FROM S[j-2 .. j PARTIAL] GROUP BY k PARTITION LENGTH 60;
"""


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {"ts": minute(m, second), "k": k, "x": (m * 7 + second) % 5}
        for m in range(first, last)
        if m % 4 != 3
        for second, k in enumerate(["a", "b", "a", None][: m % 5])
    ]


def fill(folder: Path, spark: Any, queries: dict[str, str], limit: int) -> dict[str, Any]:
    """Load, refresh, change, refresh: the parts with their rows, and everything the catalog has about them."""
    (folder / "d.csv").write_text("k,label\na,first\nb,second\n")
    script = STREAM + f"CREATE TABLE d (k STRING, label STRING) LOCATION '{folder}/d.csv' FORMAT csv;\n"
    script += "".join(f"CREATE VIEW {name} AS {query};\n" for name, query in queries.items()) + RULES
    names = [*queries, "Window", "Change", "Twos", "Back", "Filling"]
    with Warehouse.open(folder / f"wh{limit}", spark=spark) as warehouse:
        warehouse.apply(script)
        warehouse.load("S", rows(0, 6), batch_id="a", covers=(minute(0), minute(6)))
        steps = [warehouse.refresh(batch_limit=limit).steps]
        warehouse.load("S", [*rows(0, 2), *rows(3, 6)], batch_id="a", covers=(minute(0), minute(6)))
        warehouse.load("S", [{"ts": minute(4, 30), "k": "a", "x": 1000}], batch_id="late")
        steps.append(warehouse.refresh(batch_limit=limit).steps)
        return {
            "steps": [
                sorted((s.view, s.index, s.rule, s.reason, s.outcome, s.rows, s.version, s.inputs) for s in done)
                for done in steps
            ],
            "rows": {
                name: Counter(map(str, warehouse.query(f"SELECT *, PART AS of_part FROM {name}").collect()))
                for name in names
            },
            "versions": [
                [(v.version, v.digest, v.inputs, v.inputs_digest, v.rule, v.definition_digest, bool(v.location))]
                for name in names
                for index in warehouse.existing_parts(name)
                for v in warehouse.version_history(
                    name, minute(0) + (index * (2 if name == "Twos" else 1) - FIRST) * (minute(1) - minute(0))
                )
            ],
        }


@pytest.mark.timeout(900)
def test_many_at_once_and_one_by_one_are_the_same_versions(
    tmp_path: Path, open_spark: Callable[[str], Any], spark_kind: str
) -> None:
    if spark_kind == "connect":
        queries = {name: QUERIES[name] for name in ("Grouped", "Clocked", "Alone")}
    else:
        queries = QUERIES
    spark = open_spark(spark_kind)
    one, many = fill(tmp_path, spark, queries, 1), fill(tmp_path, spark, queries, 100)
    assert one["steps"][0]
    assert one["steps"][1]
    for what in ("rows", "steps", "versions"):
        assert many[what] == one[what], what


def count_jobs(spark: Any) -> int:
    """How many jobs Spark has ever started: every job that its own status store, which feeds the UI, has seen."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return max((jobs.apply(number).jobId() for number in range(jobs.size())), default=-1) + 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "query", [QUERIES["Grouped"], "SELECT a.k, b.x FROM S a LEFT JOIN S b ON a.k = b.k AND b.x > 2"]
)
def test_a_hundred_parts_take_at_most_four_jobs(query: str, tmp_path: Path, open_spark: Callable[[str], Any]) -> None:
    spark = open_spark("classic")
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.apply(STREAM + f"CREATE VIEW V AS {query}")
        warehouse.load("S", rows(0, 100), covers=(minute(0), minute(100)))
        before = count_jobs(spark)
        assert len(warehouse.refresh().published) == 100
        assert count_jobs(spark) - before <= 4
        assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
        assert spark.conf.get("spark.sql.autoBroadcastJoinThreshold") not in ("-1", None)


def test_a_part_that_fails_is_named_and_those_before_it_are_there(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM + "CREATE VIEW V AS SELECT k, 10 / x AS y FROM S")
    warehouse.load("S", [{"ts": minute(m), "k": "a", "x": 0 if m == 2 else 1} for m in range(4)])
    with pytest.raises(StepFailedError) as raised:
        warehouse.refresh()
    assert str(raised.value).startswith(f"V[{FIRST + 2}] (2015-01-01T10:02) could not be computed by UPDATE: ")
    assert warehouse.existing_parts("V") == PartSet.between(FIRST, FIRST + 1)


def test_a_conflict_on_one_part_does_not_lose_the_others(warehouse: Warehouse, spark: Any, tmp_path: Path) -> None:
    warehouse.apply(STREAM + "CREATE VIEW V AS SELECT k, sum(x) AS total FROM S GROUP BY k")
    warehouse.load("S", [{"ts": minute(m), "k": "a", "x": 1} for m in range(5)])
    original = warehouse._bench
    calls = []

    def open_engine() -> Any:
        # Late data comes between reading the inputs and publishing what was made of them.
        if not calls:
            calls.append(1)
            warehouse.load("S", [{"ts": minute(3, 5), "k": "a", "x": 5}])
        return original.open_engine()

    bench = Workbench(original.catalog, original.files, open_engine, Producer())
    report = Warehouse(bench, warehouse._engine).refresh()
    assert sorted((step.index - FIRST, step.version) for step in report.steps) == [(m, 1) for m in range(5)]
    answer = warehouse.query("SELECT PART AS p, total FROM V").collect()
    assert sorted((row.p - FIRST, row.total) for row in answer) == [(0, 1), (1, 1), (2, 1), (3, 6), (4, 1)]
    assert warehouse.refresh().steps == ()
    files = [path for path in (tmp_path / "wh" / "V").rglob("*.parquet") if not path.name.startswith(".")]
    assert len(files) == 5
    assert not (tmp_path / "wh" / ".staging").exists()


def test_nothing_to_do_opens_no_spark(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.apply(STREAM + "CREATE VIEW V AS SELECT k FROM S")
    warehouse.load("S", [{"ts": minute(m), "k": "a", "x": 1} for m in range(3)])
    warehouse.refresh()

    def refuse() -> Any:
        raise AssertionError("Spark was opened")

    with Warehouse.open(tmp_path / "wh", open_spark=refuse) as idle:
        idle.apply(STREAM + "CREATE VIEW V AS SELECT k FROM S")
        assert idle.refresh().steps == ()
        assert idle.refresh(parts={"V": PartSet.between(FIRST, FIRST)}, also_stale=True).steps == ()


def test_a_batch_limit_below_one_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(Exception) as raised:
        warehouse.refresh(batch_limit=0)
    assert str(raised.value) == "batch_limit is how many parts to compute at once, at least 1, not 0."


def test_parts_ahead_are_computed_if_they_can_be_up_to_the_limit(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM + "CREATE VIEW V AS SELECT k FROM S")
    warehouse.load("S", [{"ts": minute(m), "k": "a", "x": 1} for m in (0, 1, 2, 4, 5)], covers=(minute(0), minute(3)))
    asked = {"V": PartSet.between(FIRST + 1, FIRST + 1)}
    ahead = {"V": PartSet.between(FIRST, FIRST + 100)}
    report = warehouse.refresh(parts=asked, ahead=ahead, batch_limit=3)
    assert [step.index - FIRST for step in report.steps] == [0, 1, 2]
    assert (report.blocked, report.skipped) == ((), ())
    report = warehouse.refresh(parts=asked, also_stale=True, ahead=ahead, batch_limit=3)
    assert [step.index - FIRST for step in report.steps] == [4, 5]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_many_parts_over_files_of_others_are_computed_at_once(
    warehouse: Warehouse, tmp_path: Path, format: str
) -> None:
    lake = Lake(str(tmp_path / "lake"), format)
    for number in range(6):
        lake.write(number, [row(number, "a", number), row(number, "b", 1)])
        lake.write(number, [row(number, "a", 100)], "more")
    warehouse.apply(
        lake.define() + "; CREATE VIEW V AS SELECT k, sum(v) AS total FROM E GROUP BY k;"
        "CREATE VIEW W AS SELECT k, sum(v) AS total FROM E [WINDOW 3 hours] GROUP BY k WITH (strategy = 'recompute')"
    )
    warehouse.look("E", start=hour(0), end=hour(6))
    assert len(warehouse.refresh().steps) == 6 + 4
    first = FIRST_HOUR - 10
    found = warehouse.query("SELECT PART, total FROM V WHERE k = 'a' ORDER BY PART").collect()
    assert [(item[0] - first, item[1]) for item in found] == [(number, 100 + number) for number in range(6)]
    found = warehouse.query("SELECT PART, total FROM W WHERE k = 'a' ORDER BY PART").collect()
    assert [(item[0] - first, item[1]) for item in found] == [(number, 300 + 3 * number - 3) for number in range(2, 6)]
    lake.write(3, [row(3, "a", 1000)], "late")
    warehouse.look("E", start=hour(0), end=hour(6))
    assert sorted((step.view, step.index - first) for step in warehouse.refresh().steps) == [
        ("V", 3),
        ("W", 3),
        ("W", 4),
        ("W", 5),
    ]
    assert warehouse.verify().is_ok


def test_a_part_with_many_rows_of_input_is_computed_by_itself(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_batch, "LARGE_PART_ROWS", 3)
    sizes = [1, 2, 4, 3, 5, 5, 1, 1]
    together: list[int] = []
    compute = refresh_batch.compute_batch

    def compute_and_count(engine: Any, sql: str, values: Any, *others: Any) -> Any:
        together.append(len(values.rows))
        return compute(engine, sql, values, *others)

    monkeypatch.setattr(refresh_batch, "compute_batch", compute_and_count)
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.apply(STREAM + "CREATE VIEW V AS SELECT k, count(*) AS n FROM S GROUP BY k;")
        rows = [
            {"ts": minute(part, second), "k": "a", "x": 1} for part, size in enumerate(sizes) for second in range(size)
        ]
        warehouse.load("S", rows, batch_id="all")
        report = warehouse.refresh()
        assert [step.index - FIRST for step in report.steps] == list(range(len(sizes)))
        assert [row.n for row in warehouse.query("SELECT n FROM V ORDER BY PART").collect()] == sizes
        assert warehouse.refresh().steps == ()
        assert warehouse.verify().is_ok
    # Those before the first large one, the one between large ones by itself, and those after the last.
    assert together in ([2, 2], [2, 1, 2])
