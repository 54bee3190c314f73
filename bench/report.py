"""`python -m bench report`: docs/benchmarks.md and its pictures, from the results that were saved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import AGAIN, Timing
from bench.plots import draw_bars, draw_lines
from bench.results import Figure, Goal, SavedResult, read_results

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "benchmarks"

TITLES = {
    "patterns": "Patterns",
    "windows_sum": "Sliding windows: SUM",
    "windows_max": "Sliding windows: MAX",
    "large_parts": "Ten times the rows",
    "many_parts": "Many parts, and late rows",
    "where_time_goes": "Where the time of an update goes",
    "airflow_tasks": "A task of Airflow",
    "catalog": "A large catalog",
}

HEAD = """# Benchmarks

What updates cost, against what one would use instead. Everything here is made by `make bench`, or `make bench FULL=1` (the papers' sizes), from
`bench/results/*.json`, which has every single timing and how long the experiment took. `python -m bench patterns` runs one experiment.

The contestants at one size are timed in turns, in the same rounds of the same run, each round in another order, on the same files. Before
and after, it is checked that they have the same rows as answer. A ratio is the median of the ratios of the rounds, with the quartiles behind it.
What is marked "(again)" is timed twice in each round: how far it is from itself is noise. Different sizes of parts and of catalogs are measured one after
the other, so ratios between them have the noise of the machine in them.

The contestants: *naive* is the query over all the rows it needs, anew each time (the thesis's Direct). *By hand* is the same incremental update as PySpark
code with nothing around it. DuckDB and PySpark read and write the same Parquet files. PostgreSQL runs the paper's SQL on tables. The *floor* reads the inputs
and writes a part as large as the output, and computes nothing. The measurements of a part lie in the order of their times, in which the pairs are mixed.
"""


SIZES = "Goals for updates were set for parts of 1,000,000 rows. What was measured, at which size, is said with each experiment."


def write_report() -> Path:
    saved = sorted(read_results(), key=lambda item: [*TITLES, item.result.name].index(item.result.name))
    if not saved:
        raise SystemExit("There are no results in bench/results yet: run make bench first.")
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    texts = [HEAD, _write_goals(saved)] + [_write_experiment(item) for item in saved]
    file = DOCS / "benchmarks.md"
    file.write_text("\n".join(text.rstrip() + "\n" for text in texts))
    return file


def _write_goals(saved: Sequence[SavedResult]) -> str:
    lines = ["## Goals", "", SIZES, "", "| goal | measured | spread | wanted | reached |", "|---|---|---|---|---|"]
    for item in saved:
        lines += [_write_goal(goal) for goal in item.result.goals]
    missed = [goal for item in saved for goal in item.result.goals if not goal.is_met and goal.why]
    if missed:
        lines += ["", "Not reached:", "", *(f"- {goal.what}: {goal.why}" for goal in missed)]
    return "\n".join(lines)


def _write_goal(goal: Goal) -> str:
    spread = f"{goal.spread[0]:.2f} to {goal.spread[1]:.2f}" if goal.spread else ""
    sign = "at most" if goal.at_most else "at least"
    verdict = "yes" if goal.is_met else "**no**"
    return f"| {goal.what} | {goal.measured:.2f}{goal.unit} | {spread} | {sign} {goal.bound:g}{goal.unit} | {verdict} |"


def _write_experiment(item: SavedResult) -> str:
    result = item.result
    machine = item.machine
    versions = ", ".join(f"{name} {version}" for name, version in item.versions.items())
    settings = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in result.settings.items() if name != "first"
    )
    lines = [
        f"## {TITLES.get(result.name, result.name)}",
        "",
        f"Measured {item.measured_at[:10]} in {item.seconds // 60} min {item.seconds % 60} s, on {machine['cores']} cores "
        f"({machine['processor'] or machine['system']}), {machine['memory_gb']} GB; load before: {machine['load_before']}. "
        f"{versions}. {settings[:1].upper()}{settings[1:]}.",
        "",
        *(f"- {note}" for note in result.notes),
    ]
    for figure in result.figures:
        lines += ["", *_write_figure(result.name, figure)]
    for title, rows in result.tables.items():
        lines += ["", f"### {title[:1].upper()}{title[1:]}", "", *_write_table(rows)]
    return "\n".join(lines)


def _write_figure(experiment: str, figure: Figure) -> list[str]:
    name = re.sub(r"[^a-z0-9]+", "-", f"{experiment}-{figure.title}".lower()).strip("-")
    (PICTURES / f"{name}.svg").write_text(_draw(figure))
    lines = [f"### {figure.title}", ""]
    if figure.like:
        lines += [f"As {figure.like}.", ""]
    lines += [f"![{figure.title}](benchmarks/{name}.svg)", ""]
    names = list(dict.fromkeys(name for series in figure.series for name in series.timings))
    lines.append(f"| {figure.x_name} | {' | '.join(_write_number(series.x) for series in figure.series)} |")
    lines.append("|---|" + "---|" * len(figure.series))
    for contestant in names:
        cells = [_write_cell(series.timings.get(contestant)) for series in figure.series]
        lines.append(f"| {contestant} | {' | '.join(cells)} |")
    return lines


def _write_number(x: float) -> str:
    return f"{x:,.0f}" if x == int(x) else f"{x:g}"


def _write_cell(timing: Timing | None) -> str:
    return "" if timing is None else f"{timing.median:.3g} s ({timing.fastest:.3g} to {timing.slowest:.3g})"


def _draw(figure: Figure) -> str:
    if len(figure.series) == 1:
        return draw_bars(figure.title, {name: _bar(item) for name, item in figure.series[0].timings.items()})
    lines: dict[str, list[tuple[float, float, float, float]]] = {}
    for series in figure.series:
        for name, timing in series.timings.items():
            if not name.endswith(AGAIN):
                lines.setdefault(name, []).append((series.x, *_bar(timing)))
    return draw_lines(figure.title, figure.x_name, lines, is_logarithmic=figure.is_logarithmic)


def _bar(timing: Timing) -> tuple[float, float, float]:
    return timing.median, timing.fastest, timing.slowest


def _write_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        return []
    columns = list(rows[0])
    return [
        f"| {' | '.join(columns)} |",
        "|" + "---|" * len(columns),
        *(f"| {' | '.join(str(row[column]) for column in columns)} |" for row in rows),
    ]
