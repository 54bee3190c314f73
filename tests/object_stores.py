"""A real S3-compatible server for tests: moto's, in a process of its own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
import httpx
import pytest
from fsspec.registry import _registry

from airflow_provider_viewdf.engine.connect_server import end_process_group, find_free_port


@dataclass
class S3Server:
    """A server that answers as S3 does, and what a process needs in its environment to reach it."""

    url: str
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def credentials(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}

    @property
    def environment(self) -> dict[str, str]:
        return {**self.credentials, "AWS_ENDPOINT_URL": self.url}

    def create_bucket(self) -> str:
        """The name of a new, empty bucket."""
        import boto3

        name = f"lake-{next(self.numbers)}"
        boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="somebody",
            aws_secret_access_key="secret",
        ).create_bucket(Bucket=name)
        return name


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    port = find_free_port()
    log = tmp_path_factory.mktemp("s3") / "moto.log"
    process = _start(port, log)
    try:
        _wait_until_it_answers(f"http://127.0.0.1:{port}", process, log)
        yield S3Server(f"http://127.0.0.1:{port}")
    finally:
        end_process_group(process)


@pytest.fixture
def s3_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server, as the ordinary AWS variables name it to whoever asks fsspec for s3."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    forget_s3()
    yield s3_server
    forget_s3()


def forget_s3() -> None:
    """Make fsspec find s3fs, and s3fs read its settings, anew: both keep what they found first."""
    _registry.pop("s3", None)
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def _start(port: int, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "MOTO_CALL_RESET_API": "false"},
            start_new_session=True,
        )


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(retries=8), timeout=60) as client:
        # The transport tries again to connect, at growing intervals, until the server listens.
        while process.poll() is None:
            try:
                client.get(url)
                return
            except httpx.ConnectError:
                continue
    raise RuntimeError(f"moto's server ended: {log.read_text()}")
