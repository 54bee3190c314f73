"""Install the package and its pinned dependencies for this Python, and say how far it is, but little else."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import deque
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off"]
STEPS = {
    "Collecting": "collecting packages",
    "Downloading": "downloading packages",
    "Building": "building the package",
    "Installing collected": "installing packages (a minute or two)",
}


def main() -> int:
    """Run pip, show a line for each kind of work with a count, and all of pip's last words if it fails."""
    pinned = sum("==" in line for line in (PROJECT / "constraints.txt").read_text().splitlines())
    print(f"Installing about {pinned} pinned packages into {Path(sys.prefix).name}", flush=True)
    started = time.monotonic()
    last_words: deque[str] = deque(maxlen=40)
    counts: dict[str, int] = {}
    process = subprocess.Popen(
        [*COMMAND, "-c", "constraints.txt", "-e", ".[dev]"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=PROJECT,
    )
    assert process.stdout is not None
    for line in process.stdout:
        last_words.append(line)
        step = next((step for word, step in STEPS.items() if line.lstrip().startswith(word)), None)
        if step is not None:
            counts[step] = counts.get(step, 0) + 1
            show(step, counts[step], time.monotonic() - started)
    if sys.stdout.isatty():
        print()
    if process.wait() != 0:
        print(f"pip could not install the packages; its last lines:\n{''.join(last_words)}", file=sys.stderr)
        return 1
    print(f"Installed in {time.monotonic() - started:.0f} s", flush=True)
    return 0


def show(step: str, count: int, seconds: float) -> None:
    """One line that rewrites itself on a terminal; every fiftieth elsewhere, so that a log stays short."""
    if sys.stdout.isatty():
        print(f"\r\033[K  {seconds:4.0f} s  {step}: {count}", end="", flush=True)
    elif count % 50 == 1:
        print(f"  {seconds:4.0f} s  {step}: {count}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
