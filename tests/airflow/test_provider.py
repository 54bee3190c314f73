"""What Airflow and Python see of the package."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tomllib
from importlib import import_module
from pathlib import Path

import airflow_provider_viewdf
from airflow_provider_viewdf.get_provider_info import get_provider_info

ROOT = Path(airflow_provider_viewdf.__file__).parents[1]


def run_python(source: str, home: Path) -> str:
    """What a fresh Python prints; of an Airflow whose home is empty."""
    import os

    environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, env=environment, cwd=home
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_every_module_of_the_provider_info_can_be_imported() -> None:
    info = get_provider_info()

    for kind in ("operators", "sensors", "hooks", "triggers"):
        for entry in info[kind]:
            for module in entry["python-modules"]:
                import_module(module)


def test_names_and_versions_agree_with_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert get_provider_info()["package-name"] == project["name"]
    assert airflow_provider_viewdf.__version__ == project["version"]


def test_airflow_knows_the_provider_its_hook_and_its_connection_form(tmp_path: Path) -> None:
    answer = json.loads(
        run_python(
            """
            import json
            from airflow.providers_manager import ProvidersManager
            manager = ProvidersManager()
            hook = manager.hooks["viewdf"]
            print(json.dumps({
                "provider": "airflow-provider-viewdf" in manager.providers,
                "class": hook.hook_class_name,
                "name": hook.hook_name,
            }))
            """,
            tmp_path,
        )
    )

    assert answer == {
        "provider": True,
        "class": "airflow_provider_viewdf.hooks.viewdf.ViewDFHook",
        "name": "ViewDF warehouse",
    }


def test_parsing_fifty_views_takes_less_than_a_second_and_no_pyspark(tmp_path: Path) -> None:
    views = ["CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60"]
    for number in range(50):
        before = f"V{number - 1}" if number else "M"
        views.append(
            f"CREATE VIEW V{number} AS\n"
            f"INITIALIZE V{number}[i] AS SELECT src, loss FROM {before}[i]\n"
            f"UPDATE V{number}[j] AS SELECT n.src, n.loss + p.loss FROM {before}[j] n "
            f"JOIN V{number}[j-1] p ON n.src = p.src\nPARTITION LENGTH 60"
        )
    (tmp_path / "views.sql").write_text(";\n".join(views))
    (tmp_path / "fifty.py").write_text(
        textwrap.dedent(
            """
            from datetime import UTC, datetime
            from airflow.sdk import DAG, CronDataIntervalTimetable
            from airflow_provider_viewdf import ViewDFTaskGroup

            schedule = CronDataIntervalTimetable("* * * * *", timezone="UTC")
            with DAG("fifty", schedule=schedule, start_date=datetime(2015, 1, 1, tzinfo=UTC)) as dag:
                ViewDFTaskGroup("network", sql="views.sql")
            """
        )
    )

    answer = json.loads(
        run_python(
            f"""
            import json, sys, time
            import airflow_provider_viewdf
            from airflow.sdk import DAG, CronDataIntervalTimetable
            airflow_provider_viewdf.ViewDFTaskGroup
            sys.path.insert(0, {str(tmp_path)!r})
            started = time.process_time()
            import fifty
            seconds = time.process_time() - started
            foreign = [name for name in sys.modules if name.partition(".")[0] in ("pyspark", "pandas", "duckdb")]
            ours = [name for name in sys.modules if name.startswith(("airflow_provider_viewdf.catalog",
                    "airflow_provider_viewdf.warehouse", "airflow_provider_viewdf.engine"))]
            print(json.dumps([len(fifty.dag.tasks), seconds, foreign, ours]))
            """,
            tmp_path,
        )
    )

    tasks, seconds, foreign, ours = answer
    assert tasks == 51
    assert foreign == []
    assert ours == [], "parsing needs neither catalog nor engine"
    assert seconds < 1
