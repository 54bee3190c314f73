"""What was measured, kept as JSON with the machine, the versions and the date that it belongs to."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.measure import Ratio, Timing, console, ratio_of

RESULTS = Path(__file__).parent / "results"

PACKAGES = ("pyspark", "duckdb", "psycopg", "sqlalchemy", "apache-airflow", "pyarrow")


@dataclass(frozen=True, slots=True)
class Series:
    """Contestants that were timed in the same rounds, at one point of an experiment (`x`: so many rows, so large a window)."""

    x: float
    timings: Mapping[str, Timing]

    def ratio(self, above: str, below: str) -> Ratio:
        return ratio_of(self.timings[above], self.timings[below])


@dataclass(frozen=True, slots=True)
class Figure:
    """One experiment over several points, to be drawn: seconds by `x_name`."""

    title: str
    x_name: str
    series: Sequence[Series]
    like: str = ""  # which figure of the papers it repeats
    is_logarithmic: bool = True


@dataclass(frozen=True, slots=True)
class Goal:
    """What was measured, and what it should be: at most, or at least, a number. `why` tells what stands in the way."""

    what: str
    measured: float
    bound: float
    at_most: bool
    spread: tuple[float, float] | None = None
    unit: str = ""
    why: str = ""

    @property
    def is_met(self) -> bool:
        return self.measured <= self.bound if self.at_most else self.measured >= self.bound

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        spread = f" ({self.spread[0]:.2f} to {self.spread[1]:.2f})" if self.spread else ""
        verdict = "met   " if self.is_met else "missed"
        return f"{verdict}  {self.what}: {self.measured:.2f}{self.unit}{spread} (goal {sign} {self.bound:g}{self.unit})"


def goal_of(what: str, ratio: Ratio, bound: float, *, at_most: bool, why: str = "") -> Goal:
    return Goal(what, ratio.median, bound, at_most, (ratio.low, ratio.high), why=why)


@dataclass(slots=True)
class Result:
    """All that one experiment found."""

    name: str
    settings: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def save(self, started: datetime) -> Path:
        RESULTS.mkdir(exist_ok=True)
        file = RESULTS / f"{self.name}.json"
        content = {
            "experiment": self.name,
            "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round((datetime.now(UTC) - started).total_seconds()),
            "machine": describe_machine(),
            "versions": {"python": platform.python_version(), **_find_versions()},
            "settings": self.settings,
            "figures": [_figure_to_json(figure) for figure in self.figures],
            "goals": [asdict(goal) for goal in self.goals],
            "notes": self.notes,
            "tables": self.tables,
        }
        file.write_text(json.dumps(content, indent=1) + "\n")
        for goal in self.goals:
            console.print(str(goal), markup=False)
        console.print(f"Saved in bench/results/{file.name}")
        return file


@dataclass(frozen=True, slots=True)
class SavedResult:
    """A result as it was read from its file, with what surrounds it."""

    result: Result
    measured_at: str
    seconds: int
    machine: dict[str, Any]
    versions: dict[str, str]


def read_results() -> list[SavedResult]:
    return [read_result(file) for file in sorted(RESULTS.glob("*.json"))]


def read_result(file: Path) -> SavedResult:
    content = json.loads(file.read_text())
    goals = [Goal(**{**item, "spread": tuple(item["spread"]) if item["spread"] else None}) for item in content["goals"]]
    figures = [_figure_from_json(item) for item in content["figures"]]
    result = Result(
        content["experiment"], content["settings"], figures, goals, content["notes"], content.get("tables", {})
    )
    return SavedResult(result, content["measured_at"], content["seconds"], content["machine"], content["versions"])


def _figure_to_json(figure: Figure) -> dict[str, Any]:
    series = [
        {"x": item.x, "seconds": {name: timing.seconds for name, timing in item.timings.items()}}
        for item in figure.series
    ]
    return {
        "title": figure.title,
        "x_name": figure.x_name,
        "like": figure.like,
        "is_logarithmic": figure.is_logarithmic,
        "series": series,
    }


def _figure_from_json(item: dict[str, Any]) -> Figure:
    series = [
        Series(point["x"], {name: Timing(name, tuple(found)) for name, found in point["seconds"].items()})
        for point in item["series"]
    ]
    return Figure(item["title"], item["x_name"], series, item["like"], item["is_logarithmic"])


def describe_machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "processor": _name_processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 1),
    }


def _name_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _find_versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found
