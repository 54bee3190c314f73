"""The LOCATION of an external stream: one directory for each part, and no two parts in one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import Definition
from airflow_provider_viewdf.errors import LanguageError, locate, underline
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.locations import LocationTemplate

HOURLY = "LOCATION 's3a://lake/events/dt={yyyy-MM-dd}/h={HH}' FORMAT csv"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def define(clauses: str, length: str = "'1 hour'") -> Definition:
    return parse_script(f"CREATE STREAM E (ts TIMESTAMP ORDERED, v INT) PARTITION LENGTH {length} {clauses}")[0]


@pytest.mark.parametrize(
    ("location", "length", "at", "directory"),
    [
        ("s3a://lake/dt={yyyy-MM-dd}/h={HH}", 3600, "2015-01-02T03:00", "s3a://lake/dt=2015-01-02/h=03"),
        ("{yyyy}/{MM}/{dd}/{HH}{mm}", 300, "2015-12-31T23:55", "2015/12/31/2355"),
        ("x/{yyyyMMdd_HHmmss}", 1, "0999-01-01T00:00:07", "x/09990101_000007"),
        ("week-of-{yyyy-MM-dd}", 7 * 86400, "2015-01-01T00:00", "week-of-2015-01-01"),
    ],
)
def test_the_directory_of_a_part_has_its_start_in_utc(location: str, length: int, at: str, directory: str) -> None:
    template = LocationTemplate.parse(location)
    template.check(length)

    start = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert template.directory_at(start) == directory
    elsewhere = start.astimezone(datetime.fromisoformat("2015-01-01T00:00+05:30").tzinfo)
    assert template.directory_at(elsewhere) == directory


PATTERNS = ("yyyy", "MM", "dd", "HH", "mm", "ss")


def name_directories(patterns: set[str], indexes: range, length: int) -> list[str]:
    template = LocationTemplate.parse("x/" + "".join(f"{{{name}}}" for name in PATTERNS if name in patterns))
    return [template.directory_at(EPOCH + timedelta(seconds=index * length)) for index in indexes]


def is_accepted(patterns: set[str], length: int) -> bool:
    try:
        LocationTemplate.parse("".join(f"{{{name}}}" for name in PATTERNS if name in patterns)).check(length)
    except LanguageError:
        return False
    return True


@settings(deadline=None, max_examples=300)
@given(st.sets(st.sampled_from(PATTERNS), min_size=1), st.integers(1, 400 * 86400), st.integers(0, 40 * 365 * 86400))
def test_an_accepted_location_gives_every_part_its_own_directory(patterns: set[str], length: int, near: int) -> None:
    if is_accepted(patterns, length):
        indexes = range(near // length - 40, near // length + 40)
        assert len(set(name_directories(patterns, indexes, length))) == len(indexes)


@pytest.mark.parametrize("length", [1, 60, 300, 3600, 5400, 86400, 604800, 30 * 86400, 31 * 86400])
def test_without_any_pattern_that_is_needed_two_parts_would_share_a_directory(length: int) -> None:
    needed = next(set(PATTERNS[:count]) for count in range(1, 7) if is_accepted(set(PATTERNS[:count]), length))
    for pattern in needed:
        assert not is_accepted(needed - {pattern}, length)
        # The pattern that is left out comes round after a minute, an hour, a day, a month, a year, or never.
        span = {"ss": 60, "mm": 3600, "HH": 86400, "dd": 800 * 86400, "MM": 3 * 366 * 86400, "yyyy": 30 * 366 * 86400}
        step = max(1, {"dd": 86400, "MM": 86400, "yyyy": 86400}.get(pattern, 1) // length)
        indexes = range(0, span[pattern] // length + 2, step)
        directories = name_directories(needed - {pattern}, indexes, length)
        assert len(set(directories)) < len(indexes), (pattern, length)


NEED = "parts of that length need {yyyy}, {MM}, {dd}, {HH}."
KNOWN = "there are yyyy, MM, dd, HH, mm and ss"
HOW = "write COMPLETE WHEN '_SUCCESS', or COMPLETE AFTER '10 minutes'."

REFUSED = {
    "too coarse": (
        "LOCATION «'x/{yyyy-MM-dd}'» FORMAT csv",
        f"The LOCATION does not tell all parts of 1 hour apart: it lacks {{HH}}; {NEED}",
    ),
    "minutes for months": (
        "LOCATION «'x/{yyyy-mm-dd}/{HH}'» FORMAT csv",
        f"The LOCATION does not tell all parts of 1 hour apart: it lacks {{MM}}; {NEED}",
    ),
    "no pattern": (
        "LOCATION «'x'» FORMAT csv",
        f"The LOCATION does not tell all parts of 1 hour apart: it lacks {{yyyy}} and {{MM}} and {{dd}} and {{HH}}; {NEED}",
    ),
    "week year": (
        "LOCATION 'x/{«YYYY»-MM-dd-HH}' FORMAT csv",
        f"YYYY is no date pattern; {KNOWN}, and the year is yyyy.",
    ),
    "half a day's hours": (
        "LOCATION 'x/{yyyyMMdd«hh»}' FORMAT csv",
        f"hh is no date pattern; {KNOWN}, and the hour is HH.",
    ),
    "one letter too few": (
        "LOCATION 'x/{yyyy-«M»-dd-HH}' FORMAT csv",
        f"M is no date pattern; {KNOWN}, and the month is MM.",
    ),
    "another letter": ("LOCATION 'x/{yyyyMMdd«T»HH}' FORMAT csv", f"T is no date pattern; {KNOWN}."),
    "not closed": ("LOCATION 'x/«{»yyyy' FORMAT csv", "This { is not closed."),
    "not opened": ("LOCATION 'x/«}»' FORMAT csv", "This } closes no {."),
    "nested": ("LOCATION 'x/{«{»yyyy}}' FORMAT csv", "This { stands inside of another one."),
    "empty": ("LOCATION 'x/«{}»' FORMAT csv", "The braces are empty; write a date pattern in them, like {yyyy-MM-dd}."),
    "out of the warehouse": (
        "LOCATION «'../{yyyyMMddHH}'» FORMAT csv",
        "A relative LOCATION lies in the warehouse; write it without '..', '//' and '\\'.",
    ),
    "no such format": ("LOCATION 'x/{yyyyMMddHH}' FORMAT «orc»", "The FORMAT must be csv, json or parquet."),
    "complete how": (f"{HOURLY} «COMPLETE»", f"WHEN or AFTER is missing after COMPLETE; {HOW}"),
    "complete when what": (
        f"{HOURLY} COMPLETE «WHEN»",
        f"The name of a file is missing after COMPLETE WHEN; {HOW}",
    ),
    "complete elsewhere": (
        f"{HOURLY} COMPLETE WHEN «'../done'»",
        f"'../done' is not the name of a file in the directory of a part; {HOW}",
    ),
    "complete after what": (
        f"{HOURLY} COMPLETE «AFTER» 10",
        f"A length of time in quotes is missing after COMPLETE AFTER; {HOW}",
    ),
    "complete after no length": (
        f"{HOURLY} COMPLETE AFTER «'a while'»",
        "'a while' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
    ),
    "complete twice": (
        f"{HOURLY} COMPLETE WHEN 'x' «COMPLETE» AFTER '1 hour'",
        "COMPLETE is given twice.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_location_is_refused_with_its_place(case: str) -> None:
    marked, sentence = REFUSED[case]
    head = "CREATE STREAM E (ts TIMESTAMP ORDERED, v INT) PARTITION LENGTH '1 hour' "
    start = len(head) + marked.index("«")
    end = len(head) + marked.index("»") - 1
    text = head + marked.replace("«", "").replace("»", "")
    with pytest.raises(LanguageError) as error:
        parse_script(text)

    line, column = locate(text, start)
    assert str(error.value) == f"Line {line}, column {column}: {sentence}\n{underline(text, start, end)}"


@pytest.mark.parametrize(
    ("clauses", "sentence"),
    [
        ("LOCATION 'x/{yyyyMMddHH}'", "The stream E has no FORMAT; add FORMAT csv, FORMAT json or FORMAT parquet."),
        (
            "COMPLETE WHEN '_SUCCESS'",
            "The stream E has no LOCATION; add one, like LOCATION 'events/{yyyy-MM-dd}', or leave out what only an external "
            "stream has.",
        ),
    ],
)
def test_an_external_stream_needs_location_and_format(clauses: str, sentence: str) -> None:
    with pytest.raises(LanguageError) as error:
        define(clauses)

    assert error.value.reason == sentence
    assert error.value.column == len("CREATE STREAM ") + 1


def test_what_makes_a_part_complete_is_no_part_of_its_content() -> None:
    plain, when, after = (
        define(f"{HOURLY}{text}") for text in ("", " COMPLETE WHEN '_OK'", " COMPLETE AFTER '2 hours'")
    )

    assert (plain.complete_when, plain.complete_after_seconds) == ("", None)
    assert (when.complete_when, when.complete_after_seconds) == ("_OK", None)
    assert (after.complete_when, after.complete_after_seconds) == ("", 7200)
    assert len({plain.digest, when.digest, after.digest}) == 1
    assert all(item.is_external for item in (plain, when, after))
    assert define(f"{HOURLY} OPTIONS (sep ';') COMPLETE AFTER '0'", "3600").options == (("sep", ";"),)


def test_a_stream_without_location_is_not_external() -> None:
    assert not parse_script("CREATE STREAM M (ts TIMESTAMP ORDERED) PARTITION LENGTH 60")[0].is_external


def test_a_template_meets_the_directories_of_its_parts_and_those_around_them() -> None:
    template = LocationTemplate.parse("lake/{yyyy}/{MM}-{dd}")

    for path in ("lake", "lake/2015", "lake/2015/01-31", "lake/2015/01-31/deep/er"):
        assert template.meets(path.split("/")), path
    for path in ("lakes", "lake/394474", "lake/2015/v1-abc", "V/2015/01-31"):
        assert not template.meets(path.split("/")), path
