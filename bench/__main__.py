"""`make bench`: what updates cost, as ratios of things that were measured side by side in one run.

Each experiment runs in a process of its own, and leaves a file in bench/results; `report` makes docs/benchmarks.md of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module

from bench.measure import console

# By name, the module whose `run` does it, and what that is told.
EXPERIMENTS: dict[str, tuple[str, dict[str, str]]] = {
    "catalog": ("catalog_scale", {}),
    "many_parts": ("many_parts", {}),
    "where_time_goes": ("where_time_goes", {}),
    "airflow_tasks": ("airflow_tasks", {}),
    "large_parts": ("large_parts", {}),
    "patterns": ("patterns", {}),
    "windows_sum": ("windows", {"aggregate": "SUM"}),
    "windows_max": ("windows", {"aggregate": "MAX"}),
}


def main() -> None:
    arguments = _parse()
    names = arguments.experiments or list(EXPERIMENTS)
    if names == ["report"]:
        _write_report()
    elif len(names) == 1:
        _run_here(names[0], arguments)
    else:
        _run_each(names)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("experiments", nargs="*", help=f"{', '.join(EXPERIMENTS)}, or report; all if none is named")
    parser.add_argument("--rows", type=int, help="rows in a part")
    parser.add_argument("--repeats", type=int, help="how many rounds are timed (default: 7)")
    parser.add_argument("--windows", type=_read_numbers, help="windows: sizes in parts, such as 10,60")
    parser.add_argument("--views", type=int, help="catalog: how many views")
    parser.add_argument("--sizes", type=_read_numbers, help="catalog: parts of each view, such as 20000,200000")
    parser.add_argument("--full", action="store_true", help="the papers' sizes; takes hours")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.experiments if name not in EXPERIMENTS and name != "report"]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]}; there are {', '.join(EXPERIMENTS)}")
    return arguments


def _read_numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _run_here(name: str, arguments: argparse.Namespace) -> None:
    module, told = EXPERIMENTS[name]
    options = {
        key: value
        for key in ("rows", "repeats", "windows", "views", "sizes")
        if (value := getattr(arguments, key)) is not None
    }
    console.rule(name)
    started = datetime.now(UTC)
    import_module(f"bench.{module}").run(full=arguments.full, **told, **options).save(started)


def _run_each(names: list[str]) -> None:
    """In processes of their own: a classic Spark and Spark Connect do not go together in one, and none warms up another."""
    options = [item for item in sys.argv[1:] if item not in names]
    failed = [
        name
        for name in names
        if name != "report" and subprocess.run([sys.executable, "-m", "bench", name, *options], check=False).returncode
    ]
    _write_report()
    if failed:
        raise SystemExit(f"These experiments failed: {', '.join(failed)}.")


def _write_report() -> None:
    from bench.report import write_report

    console.print(f"Written: docs/{write_report().name}")


if __name__ == "__main__":
    main()
