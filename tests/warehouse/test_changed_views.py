"""Changed definitions of views that have parts: restated, restated from a time on, or left, as the caller chooses."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from network import NETWORK, measurement, minute
from sqlalchemy import event

from airflow_provider_viewdf.errors import (
    ChangedDefinitionError,
    DefinitionError,
    StillReadError,
    UnknownTableError,
    UsageError,
)
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

FIRST = 23668440  # 10:00
STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;"
PLAIN = STREAM + "CREATE VIEW V AS SELECT loss FROM M; CREATE VIEW W AS SELECT loss + 1 AS more FROM V;"
SUM = (
    STREAM + "CREATE VIEW S AS INITIALIZE S[i] AS SELECT sum(loss) AS total FROM M[i] "
    "UPDATE S[j] AS SELECT sum(x) FROM (SELECT loss AS x FROM M[j] UNION ALL SELECT total FROM S[j-1]) PARTITION LENGTH 60"
)
REMEDY = (
    'Restate every part with changed="restate" (viewdf apply --restate), or define a view of another name; nothing was '
    "changed."
)


def by_part(warehouse: Warehouse, view: str, column: str) -> dict[int, Any]:
    rows = warehouse.query(f"SELECT PART - {FIRST} AS part, {column} AS x FROM {view}").collect()
    return {row.part: row.x for row in rows}


def load(warehouse: Warehouse, *numbers: int) -> None:
    for number in numbers:
        warehouse.load("M", [measurement(number, number + 1)], batch_id=f"minute {number}")


def test_restating_from_a_time_leaves_older_parts_and_shows_what_it_does_first(warehouse: Warehouse) -> None:
    warehouse.apply(SUM)
    warehouse.load("M", [measurement(number, 1) for number in range(5)])
    warehouse.refresh()
    changed = SUM.replace("SELECT loss AS x", "SELECT loss * 10 AS x")
    preview = warehouse.preview_apply(changed, changed="restate", restate_from=minute(3))
    assert preview.lines == (
        f"S[{FIRST + 3} .. {FIRST + 4}], 2 parts, because definition changed  (2015-01-01T10:03 .. 2015-01-01T10:04)",
    )
    assert warehouse.refresh(dry_run=True).steps == ()
    told: list[Any] = []
    warehouse.apply(changed, changed="restate", restate_from="2015-01-01T10:03", on_preview=told.append)
    assert told == [preview]
    assert warehouse.status("S")[0].stale == PartSet.between(FIRST + 3, FIRST + 4)
    assert [step.index for step in warehouse.refresh().steps] == [FIRST + 3, FIRST + 4]
    assert by_part(warehouse, "S", "total") == {0: 1, 1: 2, 2: 3, 3: 13, 4: 23}
    assert warehouse.status("S")[0].earlier_definition == PartSet.between(FIRST, FIRST + 2)
    report = warehouse.verify()
    assert (report.is_ok, [(name, str(parts)) for name, parts in report.left_out]) == (
        True,
        [("S", f"{FIRST} .. {FIRST + 2}")],
    )
    assert [str(parts) for _, parts in report.checked] == [f"{FIRST + 3} .. {FIRST + 4}"]


def test_forward_only_leaves_old_parts_until_late_data_reaches_them(warehouse: Warehouse) -> None:
    warehouse.apply(PLAIN)
    load(warehouse, 0, 1)
    warehouse.refresh()
    changed = PLAIN.replace("SELECT loss FROM M", "SELECT loss * 10 AS loss FROM M")
    assert warehouse.preview_apply(changed, changed="forward").lines == ()
    warehouse.apply(changed, changed="forward")
    assert warehouse.refresh().steps == ()
    load(warehouse, 2)
    warehouse.refresh()
    assert by_part(warehouse, "W", "more") == {0: 2, 1: 3, 2: 31}
    report = warehouse.verify()
    assert report.is_ok
    assert [(name, str(parts)) for name, parts in report.left_out] == [("V", f"{FIRST} .. {FIRST + 1}")]
    warehouse.load("M", [measurement(1, 5)], batch_id="minute 1")
    warehouse.refresh()
    assert by_part(warehouse, "W", "more") == {0: 2, 1: 51, 2: 31}
    assert warehouse.status("V")[0].earlier_definition == PartSet.between(FIRST, FIRST)
    assert warehouse.verify().is_ok


def test_forward_only_goes_on_from_the_old_parts_of_a_view_that_reads_its_past(warehouse: Warehouse) -> None:
    warehouse.apply(SUM)
    load(warehouse, 0, 1)
    warehouse.refresh()
    # Both queries are the same now, so the first part would be made by UPDATE: it stays nevertheless.
    warehouse.apply(SUM.replace("SELECT loss AS x", "SELECT loss * 10 AS x"), changed="forward")
    load(warehouse, 2)
    assert [step.index for step in warehouse.refresh().steps] == [FIRST + 2]
    assert by_part(warehouse, "S", "total") == {0: 1, 1: 3, 2: 33}
    assert warehouse.verify().is_ok


def test_first_part_stays_though_the_new_definition_would_make_it_by_another_rule(warehouse: Warehouse) -> None:
    warehouse.apply(SUM)
    load(warehouse, 0, 1)
    warehouse.refresh()
    warehouse.apply(STREAM + "CREATE VIEW S AS SELECT sum(loss) AS total FROM M", changed="forward")
    assert warehouse.refresh().steps == ()


def test_columns_may_come_and_go_where_no_old_part_is_read_again(warehouse: Warehouse) -> None:
    warehouse.apply(PLAIN)
    load(warehouse, 0)
    warehouse.refresh()
    warehouse.apply(PLAIN.replace("SELECT loss FROM M", "SELECT src, loss FROM M"), changed="forward")
    load(warehouse, 1)
    warehouse.refresh()
    assert by_part(warehouse, "V", "src") == {0: None, 1: "a"}
    assert by_part(warehouse, "W", "more") == {0: 2, 1: 3}
    assert warehouse.verify().is_ok


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            SUM.replace("sum(loss) AS total", "sum(loss) AS total, count(*) AS n").replace(
                "sum(x)", "sum(x), count(*)"
            ),
            "S reads its own past, and its columns change from (total bigint) to (total bigint, n bigint), so its old "
            "parts cannot stay.",
        ),
        (
            SUM.replace("sum(loss) AS total", "CAST(sum(loss) AS DOUBLE) AS total"),
            "Column total of S changes from bigint to double, so its old parts cannot stay.",
        ),
        (
            STREAM + "CREATE VIEW S AS SELECT sum(loss) AS total FROM M PARTITION LENGTH 120",
            "S gets another PARTITION LENGTH, so its old parts cannot stay.",
        ),
        (SUM + " STARTING '2015-01-01'", "S gets another STARTING, so its old parts cannot stay."),
    ],
    ids=["columns", "type", "length", "start"],
)
def test_forward_only_needs_old_parts_that_can_be_read_beside_new_ones(
    warehouse: Warehouse, script: str, says: str
) -> None:
    warehouse.apply(SUM)
    load(warehouse, 0)
    warehouse.refresh(["S"])
    before = warehouse.definitions()
    with pytest.raises(ChangedDefinitionError) as raised:
        warehouse.apply(script, changed="forward")
    assert str(raised.value) == f"{says} {REMEDY}"
    assert warehouse.definitions() == before
    warehouse.apply(script, changed="restate")


def test_views_that_follow_the_columns_of_a_restated_one_are_made_anew_and_named(warehouse: Warehouse) -> None:
    script = STREAM + "CREATE VIEW V AS SELECT loss FROM M; CREATE VIEW All AS SELECT * FROM V"
    warehouse.apply(script)
    load(warehouse, 0)
    warehouse.refresh()
    changed = script.replace("SELECT loss", "SELECT src, loss")
    preview = warehouse.preview_apply(changed, changed="restate")
    assert [(group.view, str(group.parts), group.reason) for group in preview.groups] == [
        ("V", str(FIRST), "definition changed"),
        ("All", str(FIRST), "the columns of what it reads changed"),
    ]
    warehouse.apply(changed, changed="restate")
    warehouse.refresh()
    assert by_part(warehouse, "All", "src") == {0: "a"}


def test_refusal_names_every_changed_view_and_what_follows(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    warehouse.load("M", [measurement(number, 12) for number in range(4)])
    warehouse.refresh()
    changed = NETWORK.replace("loss > 10", "loss > 11")
    with pytest.raises(ChangedDefinitionError) as raised:
        warehouse.apply(changed)
    sentence, *tree = str(raised.value).splitlines()
    assert sentence.startswith(
        "Helper is already defined differently and has parts; nothing was changed. Choose: restate,"
    )
    span = "(2015-01-01T10:00 .. 2015-01-01T10:03)"
    assert tree == [
        f"  Helper[{FIRST} .. {FIRST + 3}], 4 parts, because definition changed  {span}",
        f"    View2[{FIRST} .. {FIRST + 3}], 4 parts, because Helper[{FIRST} .. {FIRST + 3}] changed  {span}",
    ]
    preview = warehouse.preview_apply(changed)
    assert preview.needs_choice == ("Helper",)
    assert [f"  {line}" for line in preview.lines] == tree


def test_choices_that_make_no_sense(warehouse: Warehouse) -> None:
    with pytest.raises(UsageError) as unknown:
        warehouse.apply(STREAM, changed="rename")  # type: ignore[arg-type]
    assert str(unknown.value) == """changed is "refuse", "restate" or "forward", not 'rename'."""
    with pytest.raises(UsageError) as alone:
        warehouse.apply(STREAM, restate_from=minute(0))
    assert str(alone.value) == 'restate_from says from when on to restate; give it with changed="restate".'


def test_what_others_read_cannot_be_dropped(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.apply(PLAIN + "CREATE VIEW X AS SELECT v.loss FROM V v JOIN W w ON v.loss = w.more")
    load(warehouse, 0)
    warehouse.refresh()
    for script, error, says in (
        (
            "DROP VIEW v",
            StillReadError,
            "V cannot be dropped, since W and X would read it still; drop those too, or define them anew without it. "
            "Nothing was changed.",
        ),
        (
            "DROP STREAM M",
            StillReadError,
            "M cannot be dropped, since V would read it still; drop that too, or define it anew without it. Nothing was "
            "changed.",
        ),
        ("DROP STREAM V", DefinitionError, "V is no stream but a view; write DROP VIEW V."),
        (
            "DROP VIEW Nowhere",
            UnknownTableError,
            "There is no view Nowhere to drop; write DROP VIEW IF EXISTS Nowhere if it may be gone already.",
        ),
    ):
        with pytest.raises(error) as raised:
            warehouse.apply(script)
        assert raised.value.reason == says
    assert [item.name for item in warehouse.definitions()] == ["M", "V", "W", "X"]
    assert warehouse.apply("DROP VIEW IF EXISTS Nowhere") == []
    assert warehouse.preview_apply("DROP VIEW X").dropped == ("X",)

    warehouse.apply("DROP VIEW V; DROP VIEW W; CREATE VIEW X AS SELECT loss FROM M", changed="restate")
    assert [item.name for item in warehouse.definitions()] == ["M", "X"]
    warehouse.refresh()
    assert by_part(warehouse, "X", "loss") == {0: 1}
    warehouse.apply("DROP VIEW X; DROP STREAM M")
    assert warehouse.definitions() == []
    warehouse.gc(timedelta(seconds=-60))
    assert [item.name for item in (tmp_path / "wh").rglob("*.parquet")] == []
    warehouse.apply(PLAIN)
    assert warehouse.existing_parts("M") == PartSet()
    load(warehouse, 1)
    warehouse.refresh()
    assert by_part(warehouse, "W", "more") == {1: 3}


PATTERN = "CREATE VIEW P AS SELECT src, count(*) AS ct FROM M PATTERN [a, b] WHERE b.loss > a.loss GROUP BY src"
BUSY = "CREATE VIEW Busy AS SELECT src, sum(loss) AS lost FROM M [WINDOW 3 minutes] GROUP BY src"


def test_a_script_that_is_applied_already_costs_a_look_at_the_definitions(warehouse: Warehouse, tmp_path: Path) -> None:
    script = f"{PLAIN} {PATTERN}; {BUSY}"
    first = warehouse.apply(script, start=minute(0))
    load(warehouse, 0, 1)
    asked: list[str] = []
    with Warehouse.open(tmp_path / "wh") as other:
        event.listen(
            other._bench.catalog._database.engine,
            "before_cursor_execute",
            lambda connection, cursor, statement, *_: asked.append(statement),
        )
        assert other.apply(script, start=minute(0)) == first
        assert not [statement for statement in asked if "part" in statement or "extents" in statement]
        assert other.apply(f"  {BUSY}; {STREAM}", start=minute(0)) == [first[-1], first[0]]
        # What is not quite the same is looked at, and still changes nothing.
        asked.clear()
        assert other.apply(script.replace("SELECT", "select"), start=minute(0)) == first
        assert [statement for statement in asked if "extents" in statement]


def test_a_script_that_repeats_or_drops_what_is_there_is_not_taken_for_applied(warehouse: Warehouse) -> None:
    warehouse.apply(PLAIN)
    with pytest.raises(DefinitionError, match="M is defined twice"):
        warehouse.apply(STREAM + STREAM)
    assert [item.name for item in warehouse.apply(f"{STREAM} DROP VIEW W")] == ["M"]
    assert [item.name for item in warehouse.definitions()] == ["M", "V"]


def test_a_view_that_reads_the_same_is_translated_anew_if_what_it_reads_changes(warehouse: Warehouse) -> None:
    unique = STREAM.replace("loss INT", "loss INT, UNIQUE (src, dest)")
    (_, before) = warehouse.apply(f"{unique} {PATTERN.replace('src', 'src, dest')}")
    (_, after) = warehouse.apply(f"{STREAM} {PATTERN.replace('src', 'src, dest')}")
    assert after.text == before.text
    # Nobody promises any more that no two rows of a part are alike in these.
    assert after.translation != before.translation


def test_an_applied_script_may_have_its_views_begin_earlier(warehouse: Warehouse) -> None:
    load_and_start = f"{STREAM} CREATE VIEW V AS SELECT loss FROM M;"
    warehouse.apply(load_and_start, start=minute(2))
    load(warehouse, 0, 1, 2)
    warehouse.refresh()
    assert sorted(by_part(warehouse, "V", "loss")) == [2]
    warehouse.apply(load_and_start, start=minute(1))
    warehouse.refresh()
    assert sorted(by_part(warehouse, "V", "loss")) == [1, 2]


def test_what_a_translated_view_relies_on_changes_only_together_with_it(warehouse: Warehouse) -> None:
    unique = STREAM.replace("loss INT", "loss INT, UNIQUE (src, dest)")
    pattern = "CREATE VIEW P AS SELECT src, count(*) AS ct FROM M PATTERN [a, b+] WHERE a.loss > 1 AND b.loss > 1 GROUP BY src, dest;"
    window = "CREATE VIEW W AS SELECT src, sum(x) AS total FROM V [WINDOW 5 minutes] GROUP BY src;"
    middle = "CREATE VIEW V AS SELECT src, loss AS x FROM M;"
    warehouse.apply(unique + middle + pattern)
    warehouse.apply(window)
    before = {item.name: item.digest for item in warehouse.definitions()}
    for script, source, view in [
        (STREAM, "M", "P"),
        (unique.replace("INT,", "DOUBLE,"), "M", "P"),
        (middle.replace("loss AS x", "CAST(loss AS DOUBLE) AS x"), "V", "W"),
    ]:
        with pytest.raises(ChangedDefinitionError) as refused:
            warehouse.apply(script)
        assert str(refused.value) == (
            f"{source} would change, and {view} was translated for the columns that {source} has now; nothing was changed. "
            f"Define {view} in the same script, so that it is translated anew."
        )
    assert {item.name: item.digest for item in warehouse.definitions()} == before
    warehouse.apply(STREAM + middle + pattern)
    warehouse.apply(middle.replace("loss AS x", "CAST(loss AS DOUBLE) AS x") + window)
    assert "UNIQUE" not in warehouse.explain("P")
    assert "Strategy delta" not in warehouse.explain("W")
