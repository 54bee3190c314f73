"""Open a Spark session, classic or Spark Connect; the one place that knows the difference.

A classic session starts a JVM inside this process's tree. It is told to keep to itself: no web page, no progress bar,
no directory in the working directory, and nothing on stderr but errors.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_viewdf.engine.java import ensure_java
from airflow_provider_viewdf.errors import SparkUnavailableError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What every query of ours relies on, whoever made the session.
RUNTIME_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # A text is what is written: Spark would put settings and the environment in the place of ${...}, in literals too.
    "spark.sql.variable.substitute": "false",
}

# Errors that reach the person arrive as Python exceptions; the JVM's own log repeats them, and much else.
_LOG4J_PROPERTIES = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
# PySpark's gateway resets the root level to WARN, and says so, unless it finds a level of its own.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
# A failed task is reported by the exception of the query that it belongs to.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = {failed_tasks}
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = {failed_tasks}
logger.writes.name = org.apache.spark.sql.execution.datasources.FileFormatWriter
logger.writes.level = {failed_tasks}
logger.commits.name = org.apache.spark.util.Utils
logger.commits.level = {failed_tasks}
"""

# The JVM prints these itself, before any logging exists.
# With PySpark's pauses between them, from 0.05 seconds on and four times as long each time.
MOST_RETRIES = 5

_JVM_NOISE = re.compile(
    r"^WARNING: (Using incubator modules: jdk\.incubator\.vector"
    r"|A terminally deprecated method in sun\.misc\.Unsafe"
    r"|sun\.misc\.Unsafe::"
    r"|Please consider reporting this to the maintainers"
    r"|A restricted method in java\.lang\.System has been called"
    r"|java\.lang\.System::"
    r"|Use --enable-native-access"
    r"|Restricted methods will be blocked)"
)


def open_session(
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    app_name: str = "viewdf",
) -> SparkSession:
    """A session on a Spark Connect server (`remote`, sc://host:port) or on a Spark of our own (`master`, local[*]).

    A process has at most one classic Spark; asking again returns the one that runs.
    """
    if remote is not None:
        spark = _open_remote(remote, dict(conf or {}))
    else:
        spark = _open_classic(master or "local[*]", dict(conf or {}), app_name)
    configure_session(spark)
    return spark


def configure_session(spark: SparkSession) -> None:
    """Give a session, of whichever kind, the settings that queries rely on; leave alone what it does not let us set."""
    for key, value in RUNTIME_SETTINGS.items():
        try:
            if spark.conf.get(key, None) != value:
                spark.conf.set(key, value)
        except Exception as error:
            if not _is_refused_setting(error):
                raise
    _silence_query_loggers()


def _silence_query_loggers() -> None:
    """PySpark prints each failing query a second time, as one line of JSON with two stack traces in it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _is_refused_setting(error: Exception) -> bool:
    # A static or locked setting; a server that has gone away is another matter and must be heard of.
    condition = getattr(error, "getCondition", lambda: None)() or ""
    return "CANNOT_MODIFY" in condition or "CANNOT_MODIFY" in str(error)


def _open_remote(remote: str, conf: dict[str, str]) -> SparkSession:
    _check_reachable(remote)

    from pyspark.sql import SparkSession

    # `create`, not `getOrCreate`: that one returns the first session of the process, even on another server.
    builder = SparkSession.builder.remote(remote)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.create()
    _limit_retries(spark)
    return spark


def _limit_retries(spark: SparkSession) -> None:
    """Give up on a server that is gone after some 20 seconds. PySpark's ten minutes help nobody: its sessions are gone with it."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client: Any = getattr(spark, "client", None)
    if client is not None:
        client.set_retry_policies([DefaultPolicy(max_retries=MOST_RETRIES)])


def _check_reachable(remote: str) -> None:
    """Fail in seconds: PySpark itself keeps trying an address where nobody listens for many minutes."""
    try:
        address = urlsplit(remote)
        host, port = address.hostname, address.port or 15002
    except ValueError:
        host, port = None, 0
    if host is None or not remote.startswith("sc://"):
        raise UsageError(f"{hide_token(remote)} is no Spark Connect address: write it as sc://host:15002.")
    if any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy")):
        return  # then the server need not be reachable from here
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise SparkUnavailableError(
            f"No Spark Connect server answers at {hide_token(remote)} ({error.strerror or error}): "
            "start it, or correct the address."
        ) from None


def hide_token(remote: str) -> str:
    """The address of a server without what stands behind it: parameters, of which one is the token to get in by."""
    address = remote.partition(";")[0]
    return address if address.endswith("://") else address.removesuffix("/")


def _open_classic(master: str, conf: dict[str, str], app_name: str) -> SparkSession:
    ensure_java()
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    # PySpark goes by these two and not by what it is asked for: a Connect session opened earlier in this process
    # leaves the first behind.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    os.environ.pop("SPARK_REMOTE", None)

    from pyspark import SparkConf
    from pyspark.core.context import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        scratch = Path(tempfile.mkdtemp(prefix="viewdf-spark-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        settings = SparkConf(loadDefaults=False).setMaster(master).setAppName(app_name)
        for key, value in {**_choose_settings(master, scratch), **conf}.items():
            settings.set(key, value)
        if not conf.get("spark.driver.extraJavaOptions", "").count("log4j2.configurationFile"):
            settings.set("spark.driver.extraJavaOptions", _quiet_java_options(scratch, conf))
        SparkContext(conf=settings, gateway=_launch_quiet_gateway(settings))
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _choose_settings(master: str, scratch: Path) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **RUNTIME_SETTINGS,
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{choose_driver_memory_megabytes()}m",
            "spark.sql.shuffle.partitions": str(count_local_cores(master)),
        }
    return settings


def count_local_cores(master: str) -> int:
    """How many tasks run at once on a local master: local -> 1, local[4] -> 4, local[*] -> the cores there are."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:\s*,\s*\d+)?\])?", master)
    threads = match.group(1) if match else None
    if threads is None:
        return 1
    return _count_usable_cores() if threads == "*" else int(threads)


def _count_usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose_driver_memory_megabytes() -> int:
    """A quarter of the memory this process may use, from 1 to 4 GB: several tasks may share a machine."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass  # no control group, or one without a limit
    return max(1024, min(4096, available // 4 // 2**20))


def _quiet_java_options(scratch: Path, conf: Mapping[str, str]) -> str:
    option = write_log4j_properties(scratch, level="error", failed_tasks="off")
    return f"{option} {conf.get('spark.driver.extraJavaOptions', '')}".strip()


def write_log4j_properties(directory: Path, *, level: str, failed_tasks: str) -> str:
    """Write the settings of the JVM's logs, and return the Java option that makes it read them."""
    log4j = directory / "log4j2.properties"
    log4j.write_text(_LOG4J_PROPERTIES.format(level=level, failed_tasks=failed_tasks))
    return f'"-Dlog4j2.configurationFile={log4j.as_uri()}"'


def _launch_quiet_gateway(settings: Any) -> Any:
    from pyspark.java_gateway import launch_gateway

    read_end, write_end = os.pipe()
    stderr = os.fdopen(read_end, encoding="utf-8", errors="replace")
    threading.Thread(target=_pass_on, args=(stderr,), name="spark-stderr", daemon=True).start()
    try:
        return launch_gateway(settings, popen_kwargs={"stderr": write_end})  # type: ignore[no-untyped-call]
    finally:
        os.close(write_end)


def _pass_on(stderr: IO[str]) -> None:
    """Copy the JVM's stderr to ours without the JVM's own greetings; ends when the JVM does."""
    for line in stderr:
        if not _JVM_NOISE.match(line):
            print(line, end="", file=sys.stderr, flush=True)
