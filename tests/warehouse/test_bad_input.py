"""Everything that semantics calls bad input: each gets its sentence, and nothing changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from network import NETWORK, measurement, minute

from airflow_provider_viewdf.errors import (
    ChangedDefinitionError,
    ImplausibleBatchError,
    MissingDimensionError,
    MissingPartError,
    PlacedError,
    RejectedRowsError,
    UnknownColumnError,
    UnknownTableError,
    UsageError,
    ViewDFError,
)
from airflow_provider_viewdf.warehouse import Warehouse

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;\n"


def view(initialize: str, update: str) -> str:
    return f"{STREAM}CREATE VIEW V AS INITIALIZE V[i] AS {initialize}\nUPDATE V[j] AS {update}\nPARTITION LENGTH 60"


@pytest.mark.parametrize(
    ("script", "place", "says"),
    [
        (
            view("SELECT loss FROM N[i]", "SELECT loss FROM M[j]"),
            (2, 54),
            "There is no table or view N; create it first, or correct the name.",
        ),
        (
            view("SELECT los FROM M[i]", "SELECT loss FROM M[j]"),
            (2, 44),
            "The INITIALIZE query of V names the column los, which nothing that it reads has; there is loss, ts, dest, src.",
        ),
        (
            view("SELECT loss FROM M[k]", "SELECT loss FROM M[j]"),
            (2, 56),
            "The subscript variable k is not in scope; INITIALIZE V[i] declares i.",
        ),
        (
            view("SELECT loss FROM M[i .. i-1]", "SELECT loss FROM M[j]"),
            (2, 54),
            "The range i .. i - 1 runs backwards; write the earlier part first.",
        ),
        (
            view("SELECT loss FROM M[i]", "SELECT loss FROM V[j]"),
            (3, 33),
            "UPDATE V[j] reads V[j], which is not in its past; a view can read itself only at earlier parts, such as V[j - 1].",
        ),
        (
            view("SELECT loss FROM M[i]", "SELECT loss FROM M[j % 60]"),
            (3, 35),
            "j % 60 cannot be inverted: it goes up and down, so which parts read a given part of M could not be told. Use a subscript that only rises, such as j - 1 or j / 60.",
        ),
        (
            view("SELECT loss FROM M[i]", "SELECT loss, src FROM M[j]"),
            (3, 1),
            "UPDATE of V yields 2 columns, but INITIALIZE yields 1 column: loss. Make them the same, in the same order.",
        ),
        (
            view("SELECT loss FROM M[i]", "SELECT src FROM M[j]"),
            (3, 1),
            "Column 1 of V is loss int by INITIALIZE, and UPDATE yields string, which does not fit into it without loss; use CAST in one of them.",
        ),
        (
            view("SELECT loss FROM M[i]", "SELECT rand() AS loss FROM M[j]"),
            (3, 23),
            "rand() cannot be used in the view V: its value is not determined by what the view reads.",
        ),
        (
            view("SELECT nosuch(loss) FROM M[i]", "SELECT loss FROM M[j]"),
            (2, 44),
            "Spark refuses the INITIALIZE query of V: Cannot resolve routine `nosuch`.",
        ),
        (STREAM + STREAM, (2, 15), "M is defined twice; the first definition is in line 1."),
        (
            STREAM + "CREATE VIEW `../x` AS SELECT loss FROM M",
            (2, 13),
            "../x cannot be a name; a name consists of letters, digits and _, and does not begin with a digit.",
        ),
        (
            STREAM + "CREATE VIEW V AS SELECT m.loss FROM M m JOIN d ON m.src = d.src",
            (2, 46),
            "There is no table or view d; create it first, or correct the name.",
        ),
    ],
)
def test_a_bad_script_gets_its_sentence_and_changes_nothing(
    warehouse: Warehouse, script: str, place: tuple[int, int], says: str
) -> None:
    with pytest.raises(ViewDFError) as raised:
        warehouse.apply(script)
    assert isinstance(raised.value, PlacedError)
    sentence, line, carets = str(raised.value).split("\n")
    # Spark lists the columns that there are in an order of its own.
    sentence, says = (re.sub(r"there is .*", "there is ...", text) for text in (sentence, says))
    assert sentence == f"Line {place[0]}, column {place[1]}: {says}"
    assert line.strip() == script.splitlines()[place[0] - 1].strip()
    assert carets.index("^") == place[1] + 1
    assert warehouse.definitions() == []


def test_a_changed_view_with_parts_needs_a_choice(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    warehouse.load("M", [measurement(0, 12)])
    warehouse.refresh()
    changed = NETWORK.replace("ct >= 4", "ct >= 1")
    with pytest.raises(ChangedDefinitionError) as raised:
        warehouse.apply(changed)
    assert str(raised.value) == (
        "View2 is already defined differently and has parts; nothing was changed. Choose: restate, with "
        'changed="restate" (viewdf apply --restate), computes them anew, or only those from a time on with '
        'restate_from=TIME (--from TIME); forward only, with changed="forward" (viewdf apply --forward-only), leaves them '
        "as they are and computes new parts by the new definition. To restate every part would make these parts stale:\n"
        "  View2[23668440], 1 part, because definition changed  (2015-01-01T10:00)"
    )
    assert warehouse.query("SELECT * FROM View2").collect() == []
    warehouse.apply(changed, changed="restate")
    report = warehouse.refresh()
    assert [(step.view, step.reason) for step in report.steps] == [("View2", "definition changed")]
    assert len(warehouse.query("SELECT * FROM View2").collect()) == 1


def test_the_same_script_again_changes_nothing(warehouse: Warehouse) -> None:
    warehouse.apply(NETWORK)
    warehouse.load("M", [measurement(0, 12)])
    warehouse.refresh()
    warehouse.apply("-- a comment\n" + NETWORK.replace("SELECT", "select"))
    assert warehouse.refresh().steps == ()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"loss": "abc"}, "rows, line 2: column loss: 'abc' is not an int"),
        ({"ts": None}, "rows, line 2: column ts: no event time"),
    ],
)
def test_a_row_that_does_not_fit_keeps_its_batch_out(warehouse: Warehouse, row: dict[str, Any], reason: str) -> None:
    warehouse.apply(STREAM)
    rows = [measurement(0, 1), {**measurement(0, 2), **row}]
    with pytest.raises(RejectedRowsError) as raised:
        warehouse.load("M", rows)
    assert str(raised.value) == (
        f"1 row does not fit M: {reason}. Nothing was loaded; correct the rows, or load with "
        'on_error="quarantine" to set them aside.'
    )
    assert not warehouse.existing_parts("M")

    result = warehouse.load("M", rows, on_error="quarantine")
    assert (result.rows, len(result.rejected)) == (1, 1)
    found = warehouse.query("SELECT line, reason FROM M_quarantine").collect()
    assert [(item.line, item.reason) for item in found] == [(2, reason.split(": ", 1)[1])]


def test_a_csv_row_is_rejected_with_file_and_line(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.apply(STREAM)
    file = tmp_path / "in.csv"
    file.write_text("ts,src,dest,loss\n2015-01-01 10:00,a,b,1\nyesterday,a,b,2\n")
    with pytest.raises(RejectedRowsError, match=r"in\.csv, line 3: column ts: 'yesterday'"):
        warehouse.load("M", str(file))


def test_a_wrong_year_is_refused_unless_confirmed(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM)
    warehouse.load("M", [measurement(0, 1)])
    wrong = [{**measurement(0, 1), "ts": minute(60 * 24 * 40)}]
    with pytest.raises(ImplausibleBatchError, match="more than 31 days beyond what M has"):
        warehouse.load("M", wrong, covers=(minute(60 * 24 * 40), minute(60 * 24 * 40 + 1)))
    assert len(warehouse.existing_parts("M")) == 1
    warehouse.load("M", wrong, covers=(minute(60 * 24 * 40), minute(60 * 24 * 40 + 1)), confirm=True)
    assert len(warehouse.existing_parts("M")) == 2


def test_unknown_names_in_queries_and_calls(warehouse: Warehouse) -> None:
    warehouse.apply(STREAM)
    for act, error, sentence in (
        (
            lambda: warehouse.query("SELECT * FROM Nowhere"),
            UnknownTableError,
            "Line 1, column 15: There is no table or view Nowhere; create it first, or correct the name.",
        ),
        (
            lambda: warehouse.query("SELECT los AS x FROM M"),
            UnknownColumnError,
            "Line 1, column 8: The query names the column los, which nothing that it reads has; there is loss, ",
        ),
        (
            lambda: warehouse.load("Nowhere", []),
            UnknownTableError,
            "Nothing is defined with the name Nowhere; there is: M.",
        ),
        (lambda: warehouse.refresh(["M"]), UsageError, "M is no view but a table; name a view."),
        (
            lambda: warehouse.query("SELECT * FROM M[5]"),
            MissingPartError,
            "The query reads M[5] (1970-01-01T00:05), which has not been loaded. Load it, or declare it empty: "
            "viewdf declare-empty M --at 1970-01-01T00:05",
        ),
    ):
        with pytest.raises(error) as raised:
            act()
        assert str(raised.value).startswith(sentence)


def test_a_missing_dimension_table_is_named(warehouse: Warehouse) -> None:
    warehouse.apply(
        STREAM
        + "CREATE TABLE d (src STRING, city STRING) LOCATION 'd.csv' FORMAT csv;"
        + "CREATE VIEW V AS SELECT m.loss, d.city FROM M m JOIN d ON m.src = d.src"
    )
    warehouse.load("M", [measurement(0, 1)])
    with pytest.raises(MissingDimensionError) as raised:
        warehouse.refresh()
    assert re.fullmatch(
        r"The dimension table d has no files at file:///.*/wh/d\.csv: put them there, or correct its LOCATION\.",
        str(raised.value),
    )
    assert not warehouse.existing_parts("V")


def test_an_unknown_column_is_named_with_what_there_is(warehouse: Warehouse) -> None:
    with pytest.raises(UnknownColumnError, match="names the column los, which nothing that it reads has"):
        warehouse.apply(view("SELECT los FROM M[i]", "SELECT loss FROM M[j]"))
