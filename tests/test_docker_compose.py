from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

PROJECT = Path(__file__).parents[1]
COMPOSE_FILE = PROJECT / "docker-compose.yaml"
AIRFLOW_SERVICES = {"api-server", "scheduler", "dag-processor", "triggerer"}
SPARK_SERVICES = {"spark-master", "spark-worker", "spark-connect"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as Docker would read it with nothing in the environment."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE_FILE.read_text())
    assert "${" not in text, "a variable without a default"
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_every_component_is_there_and_says_whether_it_is_healthy(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == AIRFLOW_SERVICES | SPARK_SERVICES | {"init", "postgres"}
    assert {name for name in services if "healthcheck" in services[name]} == set(services) - {"init"}
    for name in AIRFLOW_SERVICES:
        assert services[name]["command"] == ["airflow", name]


def test_services_wait_only_for_services_that_can_be_waited_for(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            assert other in services, name
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other], name
            else:
                assert (how["condition"], services[other]["restart"]) == ("service_completed_successfully", "no")


def test_volumes_are_declared_and_files_exist(compose: dict[str, Any]) -> None:
    used = set()
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (PROJECT / source).exists() or source == "./dags"
            else:
                used.add(source)
        if "build" in service:
            assert (PROJECT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert used == set(compose["volumes"])


def test_spark_and_airflow_see_the_warehouse_at_the_same_path(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name in {"init", "spark-worker", "spark-connect"} | AIRFLOW_SERVICES:
        assert "warehouse:/warehouse" in services[name]["volumes"], name
    for name in {"init"} | SPARK_SERVICES | AIRFLOW_SERVICES:
        assert services[name]["image"] == "viewdf-airflow", "one image, so that client and server are of one version"


def test_spark_is_the_cluster_that_was_tried(compose: dict[str, Any]) -> None:
    """A master, two workers, and Spark Connect in front of them, as in tests/faults/test_cluster.py."""
    master, worker, connect = (compose["services"][name] for name in ("spark-master", "spark-worker", "spark-connect"))
    assert master["command"][:2] == ["spark-class", "org.apache.spark.deploy.master.Master"]
    assert worker["command"][:3] == [
        "spark-class", "org.apache.spark.deploy.worker.Worker", "spark://spark-master:7077",
    ]  # fmt: skip
    assert worker["deploy"]["replicas"] == 2
    assert connect["command"][connect["command"].index("--master") + 1] == "spark://spark-master:7077"


def test_connections_lead_to_the_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name in AIRFLOW_SERVICES:
        environment = services[name]["environment"]
        viewdf = json.loads(environment["AIRFLOW_CONN_VIEWDF_DEFAULT"])
        assert viewdf["conn_type"] == "viewdf"
        assert viewdf["extra"]["warehouse"] == "/warehouse"
        spark = json.loads(environment["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"])
        assert (spark["conn_type"], spark["host"], spark["port"]) == ("spark_connect", "sc://spark-connect", 15002)
        metadata, catalog = environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"], viewdf["extra"]["catalog_url"]
        assert [(urlsplit(url).hostname, urlsplit(url).path) for url in (metadata, catalog)] == [
            ("postgres", "/airflow"),
            ("postgres", "/viewdf"),
        ]
    assert services["init"]["environment"]["VIEWDF_CATALOG"] == catalog
    assert "spark.connect.grpc.binding.port=15002" in services["spark-connect"]["command"]
    created = re.findall(r"^create (\w+)", (PROJECT / "docker" / "create-databases.sh").read_text(), re.MULTILINE)
    assert created == ["airflow", "viewdf"]


def test_secrets_agree_between_components_and_have_the_right_form(compose: dict[str, Any]) -> None:
    services = compose["services"]
    environments = [services[name]["environment"] for name in sorted(AIRFLOW_SERVICES)]
    assert all(environment == environments[0] for environment in environments)
    assert len(base64.urlsafe_b64decode(environments[0]["AIRFLOW__CORE__FERNET_KEY"])) == 32
    # HMAC with SHA-512 wants a key of that length.
    assert len(environments[0]["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64


def test_only_the_ui_is_published_and_only_to_this_machine(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"api-server": ["127.0.0.1:8080:8080"]}


def test_secrets_can_be_given_from_outside() -> None:
    text = COMPOSE_FILE.read_text()
    for line in text.splitlines():
        if re.search(r"PASSWORD:|SECRET(_KEY)?:|FERNET_KEY:", line):
            assert "${" in line, line


def test_docker_accepts_the_file() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker compose is not installed here")
    done = subprocess.run(
        ["docker", "compose", "-f", str(COMPOSE_FILE), "config", "--quiet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
