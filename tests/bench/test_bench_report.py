"""The bench's own arithmetic and its report, over made-up timings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import catalog_scale, report, results
from bench.measure import Ratio, Timing, measure, ratio_of, ratio_of_medians
from bench.results import Figure, Goal, Result, Series, goal_of, read_results
from bench.window_strategies import list_steps


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds() -> None:
    slow, fast = Timing("slow", (2.0, 40.0, 6.0)), Timing("fast", (1.0, 10.0, 2.0))
    assert ratio_of(slow, fast) == Ratio(3.0, 2.5, 3.5)
    assert ratio_of_medians(slow, fast) == Ratio(3.0, 0.2, 40.0)


def test_contestants_take_turns_and_the_pinned_one_comes_first() -> None:
    seen: list[str] = []
    contestants = {name: (lambda number, name=name: seen.append(f"{name}{number}")) for name in "pab"}
    timings = measure(contestants, [7, 8], pinned=1, prepare=lambda number: seen.append(f"prepare{number}"))
    assert [seen[:2], seen[4:6]] == [["prepare7", "p7"], ["prepare8", "p8"]]
    assert [sorted(seen[2:4]), sorted(seen[6:])] == [["a7", "b7"], ["a8", "b8"]]
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"p": 2, "a": 2, "b": 2}


def test_no_contestant_always_follows_the_same_one() -> None:
    orders: list[list[str]] = [[] for _ in range(7)]
    names = [chr(ord("a") + number) for number in range(20)]
    measure({name: (lambda number, name=name: orders[number].append(name)) for name in names}, range(7))
    followed = {name: {order[order.index(name) - 1] for order in orders} for name in names}
    assert all(sorted(order) == names for order in orders)
    assert all(len(before) >= 4 for before in followed.values())


@pytest.mark.parametrize("strategy", ["delta", "prefix", "dyadic", "merge"])
@pytest.mark.parametrize("window", [1, 2, 5, 8, 10])
def test_every_strategy_comes_to_the_sum_of_the_window(strategy: str, window: int) -> None:
    tables: dict[str, int] = {}
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
    for number, value in enumerate(values):
        tables[f"p{number}"] = value
        for step in list_steps(strategy, window, number):
            minus = tables[step.minus] if step.minus else 0
            tables[step.name] = sum(tables[name] for name in step.plus) - minus
        if number >= window - 1:
            assert tables[f"view{number}"] == sum(values[number - window + 1 : number + 1])


def test_dyadic_reads_few_blocks_however_wide_the_window() -> None:
    *_, last = list_steps("dyadic", 60, 100)
    assert list(last.plus) == [
        *("block8_100", "block8_92", "block8_84", "block8_76", "block8_68", "block8_60", "block8_52"),
        *("p44", "p43", "p42", "p41"),
    ]


def test_the_report_is_made_from_the_saved_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(report, "DOCS", tmp_path)
    monkeypatch.setattr(report, "PICTURES", tmp_path / "benchmarks")
    ours, naive = Timing("ViewDF", (1.0, 1.1, 1.2)), Timing("naive <20>", (12.0, 10.0, 11.0))
    series = [Series(x, {"ViewDF": ours, "naive <20>": naive}) for x in (1000, 1_000_000)]
    saved = Result(
        "patterns",
        {"rows": 1_000_000, "first": 1},
        [Figure("Pattern update by rows", "rows", series, "Figure 6"), Figure("All", "rows", series[:1])],
        [
            goal_of("naive / ViewDF", series[0].ratio("naive <20>", "ViewDF"), 10, at_most=False),
            Goal("fixed cost", 0.7, 0.5, at_most=True, unit=" s", why="Spark plans for that long."),
        ],
        ["Noise: none."],
        {"phases": [{"phase": "reading", "seconds": 0.1}]},
    )
    saved.save(datetime.now(UTC))
    (read,) = read_results()
    assert (read.result.figures, read.result.goals) == (saved.figures, saved.goals)

    text = report.write_report().read_text()
    assert "| naive / ViewDF | 9.17 | 9.13 to 10.58 | at least 10 | **no** |" in text
    assert "| fixed cost | 0.70 s |  | at most 0.5 s | **no** |" in text
    assert "- fixed cost: Spark plans for that long." in text
    assert "| ViewDF | 1.1 s (1 to 1.2) | 1.1 s (1 to 1.2) |" in text
    assert "| reading | 0.1 |" in text
    pictures = sorted((tmp_path / "benchmarks").glob("*.svg"))
    assert [picture.name for picture in pictures] == ["patterns-all.svg", "patterns-pattern-update-by-rows.svg"]
    for picture in pictures:
        texts = [item.text for item in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
        assert "naive <20>" in texts
        assert picture.name in text


def test_a_small_catalog_is_filled_and_timed_on_both_databases() -> None:
    """The one experiment without Spark, as a whole: it makes its own entries in the catalog's tables, which others change."""
    result = catalog_scale.run(views=4, sizes=(150, 200), repeats=1)
    assert [figure.title for figure in result.figures] == [
        "Catalog in SQLite, 4 views",
        "Catalog in PostgreSQL, 4 views",
    ]
