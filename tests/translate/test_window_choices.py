"""Which strategy is chosen, what is shared, and that both stay what they are."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import Definition, fold
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.translate.window.dyadic import find_blocks
from airflow_provider_viewdf.translate.window.frame import Frame

STREAM = """CREATE STREAM S (ts TIMESTAMP ORDERED, g STRING, a INT, big BIGINT, m DECIMAL(10,2), f FLOAT, d DOUBLE)
PARTITION LENGTH 60;"""


def parse(script: str, known: dict[str, Definition] | None = None) -> dict[str, Definition]:
    return {fold(item.name): item for item in parse_script(script, known or {})}


def strategy_of(query: str) -> tuple[str, str]:
    translation = parse(f"{STREAM} CREATE VIEW V AS {query}")["v"].translation
    assert translation is not None
    choices = dict(translation.choices)
    return choices["strategy"], choices["reason"]


@pytest.mark.parametrize(
    ("query", "strategy"),
    [
        ("SELECT sum(a) FROM S [WINDOW 60 minutes]", "delta"),
        ("SELECT g, avg(m), stddev(a), count(DISTINCT a) FROM S [WINDOW 60 minutes] GROUP BY g", "dyadic"),
        ("SELECT g, avg(m), stddev(a), sum(big), count(*) FROM S [WINDOW 60 minutes] GROUP BY g", "delta"),
        ("SELECT g FROM S [WINDOW 60 minutes] GROUP BY g", "delta"),
        ("SELECT sum(a) FROM S [WINDOW 3 minutes]", "merge"),
        ("SELECT sum(a) FROM S [WINDOW 1 minute]", "recompute"),
        ("SELECT sum(d) FROM S [WINDOW 60 minutes]", "dyadic"),
        ("SELECT sum(f) FROM S [WINDOW 10 minutes]", "merge"),
        ("SELECT sum(a + d) FROM S [WINDOW 10 minutes]", "merge"),
        ("SELECT sum(CAST(d AS DECIMAL(12,3))) FROM S [WINDOW 10 minutes]", "delta"),
        ("SELECT sum(a / 2) FROM S [WINDOW 10 minutes]", "merge"),
        ("SELECT max(a) FROM S [WINDOW 60 minutes]", "dyadic"),
        ("SELECT median(a), sum(a) FROM S [WINDOW 60 minutes]", "recompute"),
        ("SELECT sum(DISTINCT a) FROM S [WINDOW 60 minutes]", "recompute"),
        ("SELECT sum(length(g)) FROM S [WINDOW 60 minutes]", "recompute"),
        ("SELECT max(length(g)) FROM S [WINDOW 60 minutes]", "dyadic"),
        ("SELECT g, sum(a) FROM S [WINDOW 60 minutes] GROUP BY ROLLUP(g)", "recompute"),
        ("SELECT 7 AS seven, sum(a) FROM S [WINDOW 60 minutes] GROUP BY 1", "recompute"),
        ("SELECT DISTINCT sum(a) FROM S [WINDOW 60 minutes] GROUP BY g", "recompute"),
        ("SELECT sum(a) FROM S [WINDOW 60 minutes] WHERE ts > now() - INTERVAL 90 SECONDS", "recompute"),
        ("SELECT sum(sum(a)) OVER () AS x FROM S [WINDOW 60 minutes] GROUP BY g", "recompute"),
    ],
)
def test_the_strategy_follows_from_aggregates_types_and_width(query: str, strategy: str) -> None:
    assert strategy_of(query)[0] == strategy


def test_the_reason_says_what_stands_in_the_way() -> None:
    assert strategy_of("SELECT sum(a), max(a) FROM S [WINDOW 10 minutes]") == (
        "merge",
        "max(a) cannot be subtracted, and 10 parts are few, so their partial aggregates are merged every time.",
    )
    assert strategy_of("SELECT sum(length(g)) FROM S [WINDOW 10 minutes]") == (
        "recompute",
        "the type of length(g) is not known; with a CAST inside sum it would be.",
    )


def test_an_average_with_more_digits_than_a_quotient_of_sums_is_recomputed() -> None:
    assert strategy_of("SELECT avg(CAST(a AS DECIMAL(38,18))) FROM S [WINDOW 10 minutes]") == (
        "recompute",
        "the average of a DECIMAL(38,18) has more digits than a quotient of sums.",
    )
    assert strategy_of("SELECT avg(CAST(a AS DECIMAL(24,8))) FROM S [WINDOW 10 minutes]")[0] == "delta"


def test_a_quantile_with_more_digits_than_a_sketch_is_recomputed() -> None:
    assert strategy_of("SELECT approx_percentile(CAST(a AS DECIMAL(16,4)), 0.5) FROM S [WINDOW 10 minutes]") == (
        "recompute",
        "a DECIMAL(16,4) has more digits than the doubles of a sketch.",
    )
    assert (
        strategy_of("SELECT approx_percentile(CAST(a AS DECIMAL(15,4)), 0.5) FROM S [WINDOW 10 minutes]")[0] == "merge"
    )


def test_a_sketch_counts_empty_strings_and_one_zero() -> None:
    # Spark's hll_sketch_agg leaves out empty strings, and tells -0.0 from 0.0.
    found = parse(
        f"{STREAM} CREATE VIEW V AS SELECT approx_count_distinct(g), approx_count_distinct(d) FROM S [WINDOW 5 minutes]"
    )
    translation = found["v"].translation
    assert translation is not None
    assert [state["rows"] for state in json.loads(dict(translation.choices)["states"])][1:] == [
        "hll_sketch_agg(concat('=', CAST(g AS STRING)))",
        "hll_sketch_agg(concat('=', CAST(d + 0 AS STRING)))",
    ]


def test_states_of_different_aggregates_have_different_names() -> None:
    script = """CREATE STREAM C (ts TIMESTAMP ORDERED, x INT, if_x BOOLEAN, present_x INT) PARTITION LENGTH 60;
    CREATE VIEW V AS SELECT count(if_x), count_if(x > 0), count_if(x), first(present_x), first(x) IGNORE NULLS
    FROM C [WINDOW 5 minutes]"""
    translation = parse(script)["v"].translation
    assert translation is not None
    names = [state["name"] for state in json.loads(dict(translation.choices)["states"])]
    assert len(names) == 6
    assert names[1] == "count_if_x"
    assert names[3:] == ["true_count_x", "first_present_x", "present_first_x"]


JOINED = "SELECT l.g, l.a * r.a AS x FROM S AS l JOIN S AS r ON l.g = r.g"


@pytest.mark.parametrize(
    ("view", "strategy"),
    [
        (JOINED, "delta"),
        ("SELECT g, sum(m) AS x FROM S GROUP BY g", "delta"),
        ("SELECT g, max(a) + count(*) AS x FROM S [WINDOW 5 minutes] GROUP BY g", "delta"),
        ("SELECT *, a AS x FROM S", "delta"),
        ("SELECT q.* FROM (SELECT g, a AS x FROM S) AS q", "delta"),
        ("SELECT g, a AS x FROM S UNION ALL SELECT g, a + 1 AS y FROM S", "delta"),
        (
            "INITIALIZE P[i] AS SELECT g, a AS x FROM S[i] UPDATE P[j] AS SELECT g, a FROM S[j] PARTITION LENGTH 60",
            "delta",
        ),
        ("SELECT g, d * 2 AS x FROM S", "dyadic"),
        ("SELECT g, a AS x FROM S UNION ALL SELECT g, big FROM S", "recompute"),
        ("SELECT g, length(g) AS x FROM S", "recompute"),
        ("SELECT y AS g, z AS x FROM S AS t(u, y, z)", "recompute"),
    ],
)
def test_a_window_over_a_view_of_the_same_script_knows_its_types(view: str, strategy: str) -> None:
    window = "CREATE VIEW V AS SELECT g, sum(x) AS total FROM P [WINDOW 60 minutes] GROUP BY g;"
    translation = parse(f"{STREAM} {window} CREATE VIEW P AS {view}")["v"].translation
    assert translation is not None
    assert dict(translation.choices)["strategy"] == strategy


def test_partial_aggregates_that_would_save_nothing_are_not_kept() -> None:
    before = parse(f"{STREAM} CREATE VIEW V AS SELECT g, sum(a) AS total FROM S [WINDOW 60 minutes] GROUP BY g")
    measured = before | {
        "s": replace(before["s"], rows_per_part=1000.0),
        "s_per_1_minute_by_g": replace(before["s_per_1_minute_by_g"], rows_per_part=900.0),
    }
    other = "CREATE VIEW X AS SELECT g, {} AS x FROM S [WINDOW 60 minutes] GROUP BY g"
    found = [parse(other.format(text), known)["x"] for text in ("max(a)", "sum(big)") for known in (before, measured)]
    chosen = [dict(item.translation.choices)["strategy"] for item in found if item.translation]
    assert chosen == ["dyadic", "recompute", "delta", "delta"]


THREE = """
CREATE VIEW V5 AS SELECT g, sum(a) AS total FROM S [WINDOW 5 minutes] GROUP BY g;
CREATE VIEW V10 AS SELECT x.G, sum(x.A) AS total, avg(a) AS mean FROM S [WINDOW 10 minutes] AS x GROUP BY x.g;
CREATE VIEW V60 AS SELECT g AS h, max(a) AS most FROM S [WINDOW 60 minutes] GROUP BY 1;
"""


def partials_in(definitions: dict[str, Definition]) -> list[str]:
    return sorted(
        item.name
        for item in definitions.values()
        if item.helper_of and all(reference.table == "S" for reference in item.references)
    )


def test_windows_of_5_10_and_60_minutes_keep_one_view_of_partial_aggregates() -> None:
    assert partials_in(parse(STREAM + THREE)) == ["S_per_1_minute_by_g"]


def test_keys_in_another_order_are_the_same_keys() -> None:
    views = "".join(
        f"CREATE VIEW V{number} AS SELECT g, a, count(*) AS n FROM S [WINDOW 5 minutes] GROUP BY {keys};"
        for number, keys in enumerate(["g, a", "a, g", "2, 1", "a + 1, g, a", "g, a, a + 1"])
    )
    assert partials_in(parse(STREAM + views)) == ["S_per_1_minute_by_a_g", "S_per_1_minute_hba5d447"]


def test_another_filter_key_or_slide_is_not_shared() -> None:
    more = """
    CREATE VIEW A AS SELECT g, sum(a) AS total FROM S [WINDOW 5 minutes] WHERE a > 0 GROUP BY g;
    CREATE VIEW B AS SELECT sum(a) AS total FROM S [WINDOW 5 minutes];
    CREATE VIEW C AS SELECT g, sum(a) AS total FROM S [WINDOW 10 minutes SLIDE 2 minutes] GROUP BY g;
    """
    names = partials_in(parse(STREAM + THREE + more))
    assert names == ["S_per_1_minute", "S_per_1_minute_by_g", "S_per_1_minute_h09229c3", "S_per_2_minutes_by_g"]


def test_a_later_window_uses_what_is_there_or_gets_its_own_and_never_changes_it() -> None:
    before = parse(STREAM + THREE)
    digest = before["s_per_1_minute_by_g"].digest
    fits = parse("CREATE VIEW V7 AS SELECT g, avg(a) AS mean FROM S [WINDOW 7 minutes] GROUP BY g", before)
    assert fits["s_per_1_minute_by_g"].digest == digest
    assert fits["s_per_1_minute_by_g"].helper_of == "V7, V5, V10, V60"
    more = parse("CREATE VIEW V8 AS SELECT g, sum(m) AS total FROM S [WINDOW 8 minutes] GROUP BY g", before)
    assert partials_in(more) == ["S_per_1_minute_by_g_more2"]
    again = parse(THREE + "CREATE VIEW V8 AS SELECT g, sum(m) AS t FROM S [WINDOW 8 minutes] GROUP BY g", before)
    assert again["s_per_1_minute_by_g"].digest == digest
    assert partials_in(again) == ["S_per_1_minute_by_g", "S_per_1_minute_by_g_more2"]


def test_a_strategy_that_was_chosen_stays_until_the_text_changes() -> None:
    view = "CREATE VIEW V AS SELECT g, sum(a) AS total FROM S [WINDOW 60 minutes] GROUP BY g"
    first = parse(f"{STREAM} {view} WITH (strategy = 'merge')")
    translation = first["v"].translation
    assert translation is not None
    # As if merge had been chosen for the text without WITH.
    before = first | {"v": replace(first["v"], text=view)}
    assert parse(view, before)["v"].digest == first["v"].digest
    other = parse(view.replace("AS total", "AS sum_a"), before)["v"].translation
    assert other is not None
    assert dict(other.choices)["strategy"] == "delta"


@given(width=st.integers(1, 5000))
def test_blocks_cover_a_window_exactly(width: int) -> None:
    covered = [part for size, behind in find_blocks(width) for part in range(behind, behind + size)]
    assert sorted(covered) == list(range(width))
    # At most seven of each size, and fifteen of the largest.
    sizes = 1 + (width.bit_length() - 1) // 3
    assert len(find_blocks(width)) <= 7 * sizes + 8
    assert {size for size, _ in find_blocks(width)} <= {8**power for power in range(5)}


@given(
    source=st.integers(1, 5),
    slide=st.integers(1, 7),
    window=st.integers(1, 9),
    part=st.integers(-50, 50),
    back=st.integers(0, 9),
)
def test_the_subscripts_of_a_frame_are_the_time_of_the_window(
    source: int, slide: int, window: int, part: int, back: int
) -> None:
    frame = Frame(source, slide * source, window * source, is_partial=False)

    def value(subscript: str) -> int:
        return int(eval(subscript, {"j": part}))

    ends = frame.covered("j").split(" .. ")
    low, high = value(ends[0]), value(ends[-1])
    assert (high + 1) * frame.base_seconds == (part + 1) * frame.view_seconds
    assert (high + 1 - low) * frame.base_seconds == frame.window_seconds
    assert value(frame.at("j", back)) == high - back
    ends = frame.covered_source("j").split(" .. ")
    low, high = value(ends[0]), value(ends[-1])
    assert (high + 1) * source == (part + 1) * frame.view_seconds
    assert (high + 1 - low) * source == frame.window_seconds
    ends = frame.within_base("j").split(" .. ")
    low, high = value(ends[0]), value(ends[-1])
    assert (low * source, (high + 1) * source) == (part * frame.base_seconds, (part + 1) * frame.base_seconds)
