"""What docs/security.md says, tried."""

from __future__ import annotations

import ast
import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from postgres import PostgresServer
from sqlalchemy import make_url

import airflow_provider_viewdf
from airflow_provider_viewdf.compiler import compile_query
from airflow_provider_viewdf.definitions import fold
from airflow_provider_viewdf.engine.sessions import open_session
from airflow_provider_viewdf.errors import CatalogError, LanguageError, PlacedError, UsageError, ViewDFError
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartSet
from airflow_provider_viewdf.warehouse import Warehouse

PACKAGE = Path(airflow_provider_viewdf.__file__).parent
SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, k STRING, x INT) PARTITION LENGTH 60;
CREATE VIEW V AS
  INITIALIZE V[i] AS SELECT k, CAST(sum(x) AS BIGINT) AS s FROM M[i] GROUP BY k
  UPDATE V[j] AS SELECT k, sum(s) FROM (SELECT k, s FROM V[j-1] UNION ALL SELECT k, x FROM M[j]) GROUP BY k
  PARTITION LENGTH 60;
"""
NASTY = [
    "'); DROP TABLE M; --",
    "\\' OR 1=1 --",
    "`; DELETE FROM parts; `",
    "{{ 7*7 }} ${env:PATH} ${spark.app.id} %s {0}",
    'a"b\n\tc',
    "../../x",
]


def rows(key: str = "a") -> list[dict[str, Any]]:
    return [{"ts": f"2015-01-01T10:0{number}:00Z", "k": key, "x": number} for number in range(3)]


def read_trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted(PACKAGE.rglob("*.py"))]


def test_nothing_is_unpickled_and_no_text_is_run_as_python() -> None:
    banned = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
    found = []
    for path, tree in read_trees():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                names = ["pickle"]
            found += [path.name for name in names if name.split(".")[0] in banned]
    assert len(read_trees()) > 100
    assert found == []


def test_no_program_is_run_through_a_shell() -> None:
    calls = [
        path.name
        for path, tree in read_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (
            any(word.arg == "shell" for word in node.keywords)
            or (isinstance(node.func, ast.Attribute) and node.func.attr in ("system", "popen") and _is_os(node.func))
        )
    ]
    assert calls == []


def _is_os(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == "os"


def test_texts_of_people_stay_texts(tmp_path: Path, spark: Any) -> None:
    """Batch ids, reasons and values go into the catalog and through Spark as they are."""
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        warehouse.apply(SCRIPT)
        for number, text in enumerate(NASTY):
            warehouse.load("M", [{**row, "k": text} for row in rows()], batch_id=f"{text} {number}")
        # The same ids again replace their own rows, and no others.
        for number, text in enumerate(NASTY):
            warehouse.load("M", [{**row, "k": text, "x": 5} for row in rows()], batch_id=f"{text} {number}")
        for number, text in enumerate(NASTY):
            warehouse.declare_empty("M", f"2015-01-01T11:0{number}", text)
        warehouse.refresh(end="2015-01-01T10:03")
        found = warehouse.query("SELECT k, s FROM V['2015-01-01 10:02']").collect()
        assert sorted((row.k, row.s) for row in found) == sorted((text, 15) for text in NASTY)
        assert sorted(item.why for item in warehouse.status("M")[0].declared_empty) == sorted(NASTY)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "a;b", "a b", "a.b", "ä", "1a", "`../../x`"])
def test_no_name_leads_out_of_the_warehouse(tmp_path: Path, name: str) -> None:
    with Warehouse.open(tmp_path / "wh") as warehouse, pytest.raises(ViewDFError):
        warehouse.apply(f"CREATE STREAM `{name}` (ts TIMESTAMP ORDERED) PARTITION LENGTH 60")
    assert os.listdir(tmp_path) == ["wh"]


def test_a_password_of_the_catalog_is_in_no_error_and_no_representation(tmp_path: Path, postgres_url: str) -> None:
    with pytest.raises(CatalogError) as refused:
        Warehouse.open(tmp_path / "wh", f"postgresql://someone:sesame@/x?host={tmp_path}")
    assert "sesame" not in str(refused.value)
    with pytest.raises(CatalogError) as refused:
        Warehouse.open(tmp_path / "wh", f"postgresql://someone@/x?host={tmp_path}&password=sesame&sslpassword=sesame")
    assert "password=***&sslpassword=***" in str(refused.value)
    assert "sesame" not in str(refused.value)
    with Warehouse.open(
        tmp_path / "wh", make_url(postgres_url).set(password="sesame").render_as_string(False)
    ) as opened:
        assert "sesame" not in repr(opened)
        assert "sesame" not in repr(vars(opened._bench.catalog))


def test_a_role_needs_no_more_than_to_read_and_write_rows(
    tmp_path: Path, spark: Any, postgres_url: str, postgres_server: PostgresServer
) -> None:
    """The rights of docs/security.md are enough to apply, load, refresh, ask and clean up, but not to change tables."""
    Warehouse.migrate(tmp_path / "wh", postgres_url)
    role = f"viewdf_{uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'sesame'".encode())
        owner.execute(f"GRANT USAGE ON SCHEMA public TO {role}".encode())
        owner.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}".encode())
        owner.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}".encode())
    limited = make_url(postgres_url).set(username=role, password="sesame").render_as_string(hide_password=False)
    try:
        with Warehouse.open(tmp_path / "wh", limited, spark=spark) as warehouse:
            warehouse.apply(SCRIPT)
            warehouse.load("M", rows(), batch_id="a")
            warehouse.load("M", rows("b"), batch_id="b")
            assert len(warehouse.refresh().steps) == 3
            warehouse.load("M", rows("c"), batch_id="b")
            warehouse.refresh()
            found = warehouse.query("SELECT k, s FROM V['2015-01-01 10:02']").collect()
            assert sorted(map(tuple, found)) == [("a", 3), ("c", 3)]
            assert {item.name for item in warehouse.status()} == {"M", "V"}
            warehouse.gc()
            assert warehouse.verify("V").is_ok
        with psycopg.connect(limited.replace("+psycopg", "")) as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("DROP TABLE parts")
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(f"DROP OWNED BY {role}".encode())
            owner.execute(f"DROP ROLE {role}".encode())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT k FROM M CROSS JOIN IDENTIFIER('text.`/etc/passwd`')",
            "IDENTIFIER makes a name of a text, so that nobody can see what is read; write the name itself.",
        ),
        (
            "SELECT k FROM M CROSS JOIN text.`/etc/passwd`",
            "There is no table or view text./etc/passwd; create it first, or correct the name.",
        ),
        ("SELECT k FROM M CROSS JOIN ${x}", "A table is called by its name; write the name."),
        (
            "SELECT TRANSFORM(k) USING 'sh -c id' AS (y STRING) FROM M",
            "TRANSFORM ... USING runs a program; leave it out, and write what it does in SQL.",
        ),
        (
            "SELECT builtin.`reflect`('java.lang.System', 'getenv', 'HOME') AS y FROM M",
            "reflect() runs a method of Java, whichever it is told to; leave it out.",
        ),
        (
            "WITH t AS (SELECT 1) SELECT * INTO t FROM M",
            "INTO would write a table, and a query only reads; leave it out.",
        ),
        (
            "SELECT k FROM M FOR UPDATE",
            "FOR UPDATE and FOR SHARE lock rows, and a query only reads; leave them out.",
        ),
        (
            "SELECT k FROM M VERSION AS OF 1",
            "A table is read as it is now; leave VERSION AS OF or TIMESTAMP AS OF out.",
        ),
    ],
)
def test_a_query_reads_the_tables_it_names_and_does_nothing_else(tmp_path: Path, query: str, reason: str) -> None:
    with Warehouse.open(tmp_path / "wh") as warehouse:
        stream = SCRIPT.partition(";")[0]
        with pytest.raises(PlacedError) as refused:
            warehouse.apply(f"{stream}; CREATE VIEW V AS {query}")
        assert refused.value.reason == reason
        assert warehouse.definitions() == []
        with pytest.raises(PlacedError) as refused:
            parse_and_compile(query, stream)
        assert refused.value.reason == reason


def parse_and_compile(query: str, script: str) -> None:
    """What `query` does before Spark sees anything."""
    known = {fold(item.name): item for item in parse_script(script)}
    compile_query(query, known, lambda table: PartSet(), "_q")


def test_what_looks_like_a_variable_of_spark_is_a_text(tmp_path: Path, spark: Any) -> None:
    with Warehouse.open(tmp_path / "wh", spark=spark) as warehouse:
        found = warehouse.query("SELECT '${env:PATH} ${spark.app.id} ${system:user.home}' AS a").collect()
        assert found[0].a == "${env:PATH} ${spark.app.id} ${system:user.home}"


def test_gc_deletes_nothing_behind_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "7" / "v1-old").mkdir(parents=True)
    (outside / "7" / "v1-old" / "mine.parquet").touch()
    with Warehouse.open(tmp_path / "wh") as warehouse:
        for link in (".staging", "M"):
            (tmp_path / "wh" / link).symlink_to(outside)
        (tmp_path / "wh" / "N").mkdir()
        for link in ("7", "rolled"):
            (tmp_path / "wh" / "N" / link).symlink_to(outside / "7")
        (tmp_path / "wh" / "O" / "7").mkdir(parents=True)
        (tmp_path / "wh" / "O" / "7" / "v1-old").symlink_to(outside / "7")
        assert warehouse.gc(timedelta(days=-1)).orphans == 0
    assert (outside / "7" / "v1-old" / "mine.parquet").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("path '/etc/passwd'", "FORMAT csv has no option path; it takes those that say how the files are written."),
        (
            "'fs.s3a.secret.key' 'sesame'",
            "FORMAT csv has no option fs.s3a.secret.key; it takes those that say how the files are written.",
        ),
        ("timestampformat2 'x'", "FORMAT csv has no option timestampformat2; did you mean timestampFormat?"),
        ("sep ';', SEP ','", "The option SEP is given twice."),
        (
            "int96RebaseMode 'true'",
            "FORMAT csv has no option int96RebaseMode; it takes those that say how the files are written.",
        ),
    ],
)
def test_options_are_those_of_the_format(options: str, reason: str) -> None:
    with pytest.raises(LanguageError) as refused:
        parse_script(f"CREATE TABLE d (a INT) OPTIONS ({options}) FORMAT csv LOCATION 'in/d.csv'")
    assert refused.value.reason == reason


def test_a_location_with_a_password_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(LanguageError) as refused:
        parse_script("CREATE TABLE d (a INT) FORMAT csv LOCATION 's3a://key:sesame@lake/d'")
    assert refused.value.reason == (
        "A LOCATION is stored and shown, so no password can be in it; give it where Spark and fsspec look for it."
    )
    assert "sesame" not in str(refused.value)
    with pytest.raises(UsageError) as unopened:
        Warehouse.open("s3://key:sesame@lake/wh", f"sqlite:///{tmp_path}/catalog.sqlite")
    assert "sesame" not in str(unopened.value)
    # In this one the first name is a container.
    assert parse_script("CREATE TABLE d (a INT) FORMAT csv LOCATION 'abfs://c@account.dfs/d'")[0].name == "d"


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1/;use_ssl=true;token=sesame", "ssh://host/;token=sesame"])
def test_a_token_for_a_spark_connect_server_is_in_no_error(address: str) -> None:
    with pytest.raises(ViewDFError) as refused:
        open_session(remote=address)
    assert "sesame" not in str(refused.value)
