"""`make bench`: what updates cost, as ratios of things that were measured side by side in one run."""

from __future__ import annotations

import argparse

from bench import patterns, windows
from bench.measure import console

BENCHES = {"patterns": patterns.run, "windows": windows.run}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("benches", nargs="*", choices=[*BENCHES, []], help="which; all if none is named")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows in a part")
    parser.add_argument("--repeats", type=int, default=7, help="how many updates are timed")
    arguments = parser.parse_args()
    for name in arguments.benches or BENCHES:
        console.rule(name)
        BENCHES[name](arguments.rows, arguments.repeats)


if __name__ == "__main__":
    main()
