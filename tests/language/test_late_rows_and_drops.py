"""LATE ROWS, a clause of CREATE STREAM, and DROP, a statement of its own."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.definitions import LateRows, fold
from airflow_provider_viewdf.errors import DuplicateDefinitionError, LanguageError, UnknownTableError
from airflow_provider_viewdf.language import parse_drops, parse_script

STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, loss INT) PARTITION LENGTH 60"


@pytest.mark.parametrize(
    ("clause", "policy"),
    [
        ("", LateRows("refresh")),
        ("LATE ROWS REFRESH", LateRows("refresh")),
        ("LATE ROWS QUARANTINE AFTER '2 days'", LateRows("quarantine", 172800)),
        ("QUARANTINE AFTER '2 days'", LateRows("quarantine", 172800)),
        ("late rows ignore after '90 minutes'", LateRows("ignore", 5400)),
        ("IGNORE AFTER 2 days", LateRows("ignore", 172800)),
        ("IGNORE AFTER 60", LateRows("ignore", 60)),
        ("LATE ROWS QUARANTINE AFTER '0 seconds'", LateRows("quarantine", 0)),
    ],
)
def test_policy_of_a_stream(clause: str, policy: LateRows) -> None:
    assert parse_script(f"{STREAM} {clause}")[0].late_rows == policy
    before = STREAM.replace("PARTITION", f"{clause} PARTITION")
    assert parse_script(before)[0].late_rows == policy


def test_policy_is_no_part_of_the_digest_so_that_it_can_change_while_there_are_data() -> None:
    digests = {
        parse_script(f"{STREAM} {clause}")[0].digest
        for clause in ("", "LATE ROWS REFRESH", "IGNORE AFTER '1 day'", "QUARANTINE AFTER '2 days'")
    }
    assert len(digests) == 1


def test_policy_reads_back_as_it_is_written() -> None:
    assert str(LateRows("quarantine", 172800)) == "LATE ROWS QUARANTINE AFTER '2 days'"
    assert str(LateRows("ignore", 5400)) == "LATE ROWS IGNORE AFTER '90 minutes'"
    assert str(LateRows()) == "LATE ROWS REFRESH"


ONE_POLICY = "A stream has one policy for late rows; this is a second one."
REFUSED = {
    "no rows": (
        f"{STREAM} «LATE» QUARANTINE AFTER 60",
        "ROWS is missing after LATE; write LATE ROWS QUARANTINE AFTER '2 days'.",
    ),
    "no policy": (
        f"{STREAM} LATE «ROWS»",
        "LATE ROWS is followed by REFRESH, QUARANTINE AFTER '2 days' or IGNORE AFTER '2 days'.",
    ),
    "another policy": (
        f"{STREAM} LATE «ROWS» DELETE",
        "LATE ROWS is followed by REFRESH, QUARANTINE AFTER '2 days' or IGNORE AFTER '2 days'.",
    ),
    "refresh after": (
        f"{STREAM} LATE ROWS REFRESH «AFTER» '2 days'",
        "LATE ROWS REFRESH takes rows however late they are; leave out AFTER.",
    ),
    "no after": (
        f"{STREAM} LATE ROWS «IGNORE» '2 days'",
        "AFTER is missing after IGNORE; write IGNORE AFTER '2 days'.",
    ),
    "no length": (
        f"{STREAM} QUARANTINE «AFTER»",
        "The length of time is missing after AFTER; write QUARANTINE AFTER '2 days'.",
    ),
    "no length of time": (
        f"{STREAM} QUARANTINE AFTER «'two days'»",
        "'two days' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
    ),
    "two policies": (f"{STREAM} QUARANTINE AFTER '2 days' «IGNORE» AFTER '9 days'", ONE_POLICY),
    "two policies, in full": (f"{STREAM} QUARANTINE AFTER '2 days' «LATE» ROWS REFRESH", ONE_POLICY),
    "twice": (f"{STREAM} LATE ROWS REFRESH «LATE» ROWS REFRESH", "LATE is given twice."),
    "of a dimension table": (
        "CREATE TABLE d (a INT) LOCATION 'x' FORMAT csv «LATE» ROWS REFRESH",
        "LATE is not expected here in CREATE TABLE.",
    ),
    "drop nothing": ("«DROP»", "STREAM, TABLE or VIEW is missing after DROP."),
    "drop an index": ("DROP «INDEX» x", "Only a STREAM, a TABLE or a VIEW can be dropped, not INDEX."),
    "drop without name": ("DROP «VIEW»", "The name of the view is missing."),
    "drop with more": (
        "DROP VIEW V «CASCADE»",
        "CASCADE is not expected here; DROP VIEW V is a whole statement, and ends with a semicolon.",
    ),
}


@pytest.mark.parametrize(("marked", "sentence"), REFUSED.values(), ids=list(REFUSED))
def test_mistakes_are_told_with_their_place(marked: str, sentence: str) -> None:
    start = marked.index("«")
    text = marked.replace("«", "").replace("»", "")
    with pytest.raises(LanguageError) as caught:
        parse_script(text)
    assert (caught.value.reason, caught.value.start, caught.value.end) == (sentence, start, marked.index("»") - 1)


def test_drops_are_read_beside_definitions() -> None:
    script = f"DROP VIEW IF EXISTS Old; {STREAM}; drop stream S; DROP TABLE `city`"
    assert [(item.kind, item.name.text, item.if_exists) for item in parse_drops(script)] == [
        ("view", "Old", True),
        ("stream", "S", False),
        ("dimension", "city", False),
    ]
    assert [item.name for item in parse_script(script)] == ["M"]


def test_name_is_dropped_once_and_not_defined_as_well() -> None:
    with pytest.raises(DuplicateDefinitionError) as twice:
        parse_script("DROP VIEW V; DROP VIEW v")
    assert (twice.value.reason, twice.value.start) == ("v is dropped twice.", 23)
    with pytest.raises(DuplicateDefinitionError) as both:
        parse_script(f"{STREAM}; DROP STREAM m")
    assert both.value.reason == (
        "m is both dropped and defined in this script; to change a definition, leave out the DROP and apply the new one."
    )


def test_what_is_dropped_can_no_longer_be_read() -> None:
    known = {fold(item.name): item for item in parse_script(f"{STREAM}; CREATE VIEW V AS SELECT loss FROM M")}
    with pytest.raises(UnknownTableError):
        parse_script("DROP VIEW V; CREATE VIEW W AS SELECT loss FROM V", known)
    assert [item.name for item in parse_script("DROP VIEW V; CREATE VIEW W AS SELECT loss FROM M", known)] == ["W"]
