"""What a script defines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_provider_viewdf.definitions import Column, Definition, fold
from airflow_provider_viewdf.language import order_views, parse_script

NETWORK = """\
-- the network monitor
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;

/* runs of lossy minutes */
CREATE VIEW Helper AS
  INITIALIZE Helper[i] AS SELECT src, dest, 1 AS ct, loss AS total FROM M[i] WHERE loss > 5
  UPDATE Helper[j] AS
    SELECT m.src, m.dest, coalesce(h.ct, 0) + 1, coalesce(h.total, 0) + m.loss
    FROM M[j] m LEFT JOIN Helper[j-1] h ON m.src = h.src AND m.dest = h.dest
    WHERE m.loss > 5
  PARTITION LENGTH 60;

CREATE VIEW View2 AS
  INITIALIZE View2[i] AS SELECT src, dest, ct, total FROM Helper[i] WHERE Helper.ct > 3
  UPDATE View2[j] AS SELECT src, dest, ct, total FROM Helper[j] WHERE Helper.ct > 3 -- long ones
  PARTITION LENGTH 60;

CREATE VIEW View3 AS
  INITIALIZE View3[i] AS SELECT src, sum(loss) AS s FROM M[i*60 .. i*60+59] GROUP BY src
  UPDATE View3[j] AS SELECT src, sum(loss) AS s FROM M[j*60 .. j*60+59] GROUP BY src
  PARTITION LENGTH 3600;

CREATE VIEW Share AS
  INITIALIZE Share[i] AS SELECT m.src, m.loss / h.s AS share FROM M[i] m JOIN View3[i/60] h ON m.src = h.src
  UPDATE Share[j] AS SELECT m.src, m.loss / h.s FROM M[j] m JOIN View3[j/60] h ON m.src = h.src
  PARTITION LENGTH 60
"""


def by_name(script: str) -> dict[str, Definition]:
    return {fold(item.name): item for item in parse_script(script)}


def view_over(
    update: str, tables: str = "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60"
) -> Definition:
    initialize = "INITIALIZE V[i] AS SELECT 1 AS x FROM M[i]"
    return by_name(f"{tables}; CREATE VIEW V AS {initialize} UPDATE V[j] AS {update} PARTITION LENGTH 60")["v"]


def references(definition: Definition) -> list[str]:
    assert definition.update is not None
    return [str(reference) for reference in definition.update.references]


def test_a_stream_has_columns_keys_an_ordered_column_and_a_length() -> None:
    (stream,) = parse_script(
        "create stream M (ts timestamp ordered, Src string key, n DECIMAL(10, 2),"
        " a array<struct<X: INT, y: map<string,long>>>, key (n)) partition length '1 hour'"
    )
    assert (stream.name, stream.kind, stream.ordered, stream.length_seconds) == ("M", "stream", "ts", 3600)
    assert stream.keys == ("Src", "n")
    assert stream.columns == (
        Column("ts", "timestamp"),
        Column("Src", "string"),
        Column("n", "decimal(10,2)"),
        Column("a", "array<struct<X:int,y:map<string,bigint>>>"),
    )


def test_a_dimension_table_has_a_location_a_format_and_options() -> None:
    (table,) = parse_script(
        "CREATE TABLE d (a INT, b SMALLINT) FORMAT csv LOCATION 'in/d.csv' OPTIONS (header 'true', sep = ';')"
    )
    assert (table.kind, table.location, table.format) == ("dimension", "in/d.csv", "csv")
    assert table.options == (("header", "true"), ("sep", ";"))
    assert table.columns == (Column("a", "int"), Column("b", "smallint"))
    assert not table.is_partitioned


@pytest.mark.parametrize(
    "clause",
    [
        "PARTITION LENGTH 60",
        "PARTITION LENGTH '1 minute'",
        "PARTITION BY 1 minute",
        "partition by 60",
        "PARTITION LENGTH 60 seconds",
    ],
)
def test_a_length_can_be_written_in_several_ways(clause: str) -> None:
    (stream,) = parse_script(f"CREATE STREAM M (ts TIMESTAMP ORDERED) {clause}")
    assert stream.length_seconds == 60


@pytest.mark.parametrize(
    "clauses",
    [
        "PARTITION LENGTH 60 STARTING '2015-01-01' KEY (x)",
        "STARTING '2015/01/01' PARTITION BY 1 minute KEY (x)",
        "STARTING '2015-01-01T00:00Z' KEY (x) PARTITION LENGTH 60",
    ],
)
def test_the_clauses_of_a_view_can_stand_in_any_order(clauses: str) -> None:
    view = by_name(
        "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;"
        f"CREATE VIEW V AS INITIALIZE V[i] AS SELECT x FROM M[i] UPDATE V[j] AS SELECT x FROM M[j] {clauses}"
    )["v"]
    assert (view.length_seconds, view.starting, view.keys) == (60, datetime(2015, 1, 1, tzinfo=UTC), ("x",))


def test_a_view_can_start_with_the_latest_part() -> None:
    view = by_name(
        "CREATE STREAM M (ts TIMESTAMP ORDERED) PARTITION LENGTH 60; CREATE VIEW V AS SELECT * FROM M STARTING LATEST"
    )["v"]
    assert view.starting_latest
    assert view.starting is None


def test_the_network_monitor_reads_what_the_paper_says() -> None:
    definitions = by_name(NETWORK)
    assert list(definitions) == ["m", "helper", "view2", "view3", "share"]
    assert [str(item) for item in definitions["helper"].references] == ["M[i]", "M[j]", "Helper[j - 1]"]
    assert references(definitions["view3"]) == ["M[j * 60 .. j * 60 + 59]"]
    assert references(definitions["share"]) == ["M[j]", "View3[j / 60]"]


def test_statements_can_refer_to_later_ones_and_to_known_ones() -> None:
    statements = NETWORK.split(";")
    assert by_name(";".join(reversed(statements))) == by_name(NETWORK)
    known = by_name(";".join(statements[:2]))
    assert parse_script(";".join(statements[2:]), known) == parse_script(NETWORK)[2:]


def test_the_text_of_a_statement_alone_gives_the_same_definition() -> None:
    definitions = by_name(NETWORK + "; CREATE VIEW Plain AS SELECT M.src, s FROM M JOIN View3 USING (src)")
    for definition in definitions.values():
        assert parse_script(definition.text, definitions) == [definition]
        assert definition.text.startswith("CREATE ")
    assert parse_script(";\n".join(item.text for item in definitions.values())) == list(definitions.values())


def test_the_place_of_a_reference_is_relative_to_the_text_of_its_statement() -> None:
    helper = by_name(NETWORK)["helper"]
    assert [helper.text[item.start : item.end] for item in helper.references] == ["M[i]", "M[j]", "Helper[j-1]"]


def test_the_digest_does_not_depend_on_layout_comments_keyword_case_or_the_name_of_the_variable() -> None:
    one = view_over("SELECT coalesce(h.x, 0) + 1 FROM M[j] AS m LEFT JOIN V[j - 1] AS h ON m.x = h.x")
    other = view_over("select COALESCE(h.x,0)+1 /* one more */\nfrom m[ j ] m left join v[j-1] h on m.x=h.x -- end\n")
    assert other.digest == one.digest
    renamed = view_over("SELECT coalesce(h.x, 0) + 1 FROM M[__part__] m LEFT JOIN V[__part__ - 1] h ON m.x = h.x")
    assert renamed.digest == one.digest


@pytest.mark.parametrize(
    "update",
    [
        "SELECT x + 2 FROM M[j]",
        "SELECT x + 1 FROM M[j-1]",
        "SELECT x + 1 FROM M[j .. j]  WHERE true",
        "SELECT x + 1 FROM M[j-1 .. j]",
        "SELECT X + 1 AS y FROM M[j]",
    ],
)
def test_the_digest_depends_on_what_a_query_means(update: str) -> None:
    assert view_over(update).digest != view_over("SELECT x + 1 FROM M[j]").digest


def test_a_common_table_expression_hides_a_table_of_its_name() -> None:
    view = view_over("WITH M AS (SELECT x FROM V[j-1]) SELECT x FROM M")
    assert references(view) == ["V[j - 1]"]


def test_a_common_table_expression_is_not_in_sight_of_itself_and_of_what_stands_before_it() -> None:
    view = view_over(
        "WITH a AS (SELECT x FROM d), d AS (SELECT x FROM a) SELECT a.x FROM a, d, M[j]",
        "CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;"
        "CREATE TABLE d (x INT) LOCATION 'd' FORMAT json",
    )
    assert references(view) == ["M[j]"]
    assert view.dimensions == ("d",)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM M[j] WHERE x IN (SELECT x FROM V[j-1])",
        "SELECT x FROM M[j] UNION ALL SELECT x FROM V[j-1]",
        "SELECT x FROM M[j], (SELECT max(x) y FROM V[j-1]) z",
        "SELECT x, (SELECT max(x) FROM V[j-1]) FROM M[j]",
        "SELECT x FROM (M[j] m JOIN V[j-1] v USING (x))",
        "WITH c AS (SELECT x FROM M[j]) SELECT c.x, row_number() OVER (PARTITION BY c.x) FROM c JOIN V[j-1] v USING (x)",
        "SELECT x FROM M[j] LATERAL VIEW explode(array(1)) e AS y WHERE EXISTS (SELECT 1 FROM V[j-1] v WHERE v.x = y)",
        "FROM M[j] SELECT x UNION SELECT x FROM V[j-1] ORDER BY x LIMIT 3",
    ],
)
def test_references_are_found_wherever_a_table_can_stand(query: str) -> None:
    assert sorted(references(view_over(query))) == ["M[j]", "V[j - 1]"]


@pytest.mark.parametrize(
    ("subscript", "value"),
    [
        ("0..5", (0, 5)),
        ("j-3..j", (97, 100)),
        ("j*60..j*60+59", (6000, 6059)),
        ("j / 60", (1, 1)),
        ("-j + 2 * (j - 1)", (98, 98)),
        ("(j + 1) / 2 * 2", (100, 100)),
        ("j /* now */ - 1", (99, 99)),
        ("J-1", (99, 99)),
        ("__part__-1", (99, 99)),
    ],
)
def test_a_subscript_is_an_integer_function_of_the_variable(subscript: str, value: tuple[int, int]) -> None:
    view = view_over(f"SELECT x FROM M[{subscript}]")
    assert view.update is not None
    parts = view.update.references[0].reads(100)
    assert (parts.low, parts.high) == value


def test_a_subscript_in_an_expression_is_that_of_an_array() -> None:
    view = view_over("SELECT array(1, 2)[0] AS x, split('a b', ' ')[1] FROM M[j]")
    assert references(view) == ["M[j]"]


def test_the_words_of_our_clauses_can_be_columns() -> None:
    view = view_over("SELECT x AS starting, x AS key, x AS initialize, max(x) OVER (PARTITION BY x) AS p FROM M[j]")
    assert references(view) == ["M[j]"]


LENGTHS = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k INT) PARTITION LENGTH 60;
CREATE STREAM T (ts TIMESTAMP ORDERED, k INT) PARTITION LENGTH {0};
CREATE TABLE d (k INT) LOCATION 'd' FORMAT csv;
CREATE VIEW V AS SELECT S.k FROM S JOIN T USING (k) JOIN d USING (k)
"""


@pytest.mark.parametrize(
    ("length", "expected", "view_length"),
    [
        (60, ["S[j]", "T[j]"], 60),
        (3600, ["S[j * 60 .. j * 60 + 59]", "T[j]"], 3600),
        (90, ["S[j * 3 / 2 .. (j * 3 + 2) / 2]", "T[j]"], 90),
        (1, ["S[j]", "T[j * 60 .. j * 60 + 59]"], 60),
    ],
)
def test_a_plain_view_reads_the_parts_that_its_own_part_covers(
    length: int, expected: list[str], view_length: int
) -> None:
    view = by_name(LENGTHS.format(length))["v"]
    assert view.length_seconds == view_length
    assert references(view) == expected
    assert view.initialize == view.update
    assert view.dimensions == ("d",)


def test_a_plain_view_reads_every_part_that_overlaps_its_own() -> None:
    view = by_name(LENGTHS.format(90))["v"]
    for index in range(-20, 20):
        assert view.update is not None
        parts = view.update.references[0].reads(index)
        overlapping = [p for p in range(-40, 40) if p * 60 < (index + 1) * 90 and (p + 1) * 60 > index * 90]
        assert list(parts) == overlapping


def test_a_plain_view_can_have_a_multiple_of_the_length_of_its_tables() -> None:
    view = by_name(LENGTHS.format(60) + "PARTITION LENGTH '1 hour'")["v"]
    assert references(view) == ["S[j * 60 .. j * 60 + 59]", "T[j * 60 .. j * 60 + 59]"]


def test_a_plain_view_over_a_later_plain_view_has_its_length() -> None:
    definitions = by_name(
        "CREATE VIEW A AS SELECT * FROM B; CREATE VIEW B AS SELECT * FROM S PARTITION LENGTH 120;"
        "CREATE STREAM S (ts TIMESTAMP ORDERED) PARTITION LENGTH 60"
    )
    assert definitions["a"].length_seconds == 120
    assert order_views(definitions) == {"a": (0, 1), "b": (0, 0)}


KEYED = """
CREATE STREAM S (ts TIMESTAMP ORDERED, k INT KEY, l INT KEY) PARTITION LENGTH 60;
CREATE VIEW G AS SELECT l, k AS kk, count(*) AS n FROM S GROUP BY k, l;
CREATE VIEW V AS SELECT * FROM S {0} G
"""


@pytest.mark.parametrize("join", ["JOIN", "LEFT OUTER JOIN", "FULL JOIN", "LEFT SEMI JOIN"])
def test_a_join_without_a_condition_is_over_the_keys_that_both_sides_declare(join: str) -> None:
    definitions = by_name(KEYED.format(join))
    assert definitions["g"].keys == ("kk", "l")
    update = definitions["v"].update
    assert update is not None
    (joined,) = update.tree.args["joins"]
    assert [key.name for key in joined.args["using"]] == ["l"]


@pytest.mark.parametrize("join", ["NATURAL JOIN", "CROSS JOIN", ","])
def test_other_joins_need_no_keys(join: str) -> None:
    update = by_name(KEYED.format(join))["v"].update
    assert update is not None
    (joined,) = update.tree.args["joins"]
    assert not joined.args.get("using")
