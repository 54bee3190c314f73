from __future__ import annotations

import pytest

from airflow_provider_viewdf.errors import LanguageError
from airflow_provider_viewdf.language import parse_script

STREAM = "CREATE STREAM S (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60"


def retained(script: str) -> dict[str, int]:
    return {item.name: item.retain_seconds for item in parse_script(script)}


def test_tables_and_views_say_how_long_their_parts_are_kept() -> None:
    script = f"""{STREAM} RETAIN '90 days';
      CREATE VIEW V AS SELECT x FROM S RETAIN '3600' STARTING '2015-01-01';
      CREATE VIEW W AS INITIALIZE W[i] AS SELECT x FROM S[i] UPDATE W[j] AS SELECT x FROM S[j]
        PARTITION LENGTH 60 RETAIN '1 week';
      CREATE VIEW X AS SELECT x FROM S"""
    assert retained(script) == {"S": 90 * 86400, "V": 3600, "W": 7 * 86400, "X": 0}


def test_retain_may_stand_before_the_length_and_be_a_column() -> None:
    assert retained("CREATE STREAM S (ts TIMESTAMP ORDERED, retain INT) RETAIN '1 day' PARTITION LENGTH 60") == {
        "S": 86400
    }


def test_how_long_parts_are_kept_does_not_change_what_a_definition_means() -> None:
    short, long = parse_script(f"{STREAM} RETAIN '1 day'"), parse_script(f"{STREAM} RETAIN '2 days'")
    assert short[0].digest == long[0].digest == parse_script(STREAM)[0].digest


@pytest.mark.parametrize(
    ("clause", "sentence"),
    [
        ("RETAIN", "A length of time is missing after RETAIN; write RETAIN '7 days'."),
        ("RETAIN 90 days", "A length of time is missing after RETAIN; write RETAIN '7 days'."),
        (
            "RETAIN 'ever'",
            "'ever' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
        ),
        ("RETAIN '0 days'", "A length of time must be at least one second; write RETAIN '7 days'."),
        ("RETAIN '1 day' RETAIN '2 days'", "RETAIN is given twice."),
    ],
)
def test_a_retain_that_says_nothing_is_refused(clause: str, sentence: str) -> None:
    with pytest.raises(LanguageError) as raised:
        parse_script(f"{STREAM} {clause}")
    assert raised.value.reason == sentence


def test_a_dimension_table_has_no_parts_to_keep() -> None:
    with pytest.raises(LanguageError) as raised:
        parse_script("CREATE TABLE d (k INT) LOCATION 'd' FORMAT csv RETAIN '1 day'")
    assert raised.value.reason == "RETAIN is not expected here in CREATE TABLE."
