"""`viewdf serve`: a Spark Connect server in the foreground, for those who have no cluster."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from airflow_provider_viewdf.engine.connect_server import ConnectServer
from airflow_provider_viewdf.errors import SparkUnavailableError


def serve_spark(port: int, master: str, log: Path, messages: Console) -> None:
    """Start a server, say how it is reached, and wait: until SIGINT or SIGTERM end it, or it dies."""
    # As Ctrl-C does, so that the server is ended too and does not outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), ConnectServer(log.absolute(), port=port, master=master) as server:
        for line in describe_server(server):
            messages.print(line, markup=False)
        server.wait()
        raise SparkUnavailableError(f"The Spark Connect server has ended by itself; its log, {log}, may say why.")
    messages.print("The Spark Connect server has ended.")


def describe_server(server: ConnectServer) -> tuple[str, ...]:
    return (
        f"A Spark Connect server listens at {server.url}, for this machine only. Ctrl-C ends it.",
        f"For commands:  viewdf ... --remote {server.url}",
        "For Airflow:   airflow connections add spark_connect_default "
        f"--conn-type spark_connect --conn-host sc://127.0.0.1 --conn-port {server.port}",
    )
