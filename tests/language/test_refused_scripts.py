"""What a script is refused for: the whole sentence, and the place, which the scripts below mark with « and »."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.errors import (
    CyclicDefinitionError,
    DefinitionError,
    DuplicateDefinitionError,
    LanguageError,
    SubscriptError,
    UnknownTableError,
    UnsupportedFunctionError,
    locate,
    underline,
)
from airflow_provider_viewdf.language import parse_script

TABLES = """\
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60;
CREATE TABLE d (a INT) LOCATION 'd.csv' FORMAT csv;
"""


def view(initialize: str = "SELECT src FROM M[i]", update: str = "SELECT src FROM M[j]", name: str = "V") -> str:
    return f"CREATE VIEW {name} AS\nINITIALIZE {name}[i] AS {initialize}\nUPDATE {name}[j] AS {update}\nPARTITION LENGTH 60"


NOT_A_NAME = "cannot be a name; a name consists of letters, digits and _, and does not begin with a digit."
ONE_ORDERED = "mark the one TIMESTAMP column that is the time of a row, like ts TIMESTAMP ORDERED."
TAKEN = "PART, PART_TIMESTAMP and names that begin with __ are taken."
NOT_PAST = "which is not in its past; a view can read itself only at earlier parts, such as V[j - 1]."
MOVING = "cannot be used as a time in the view V: it is another one whenever it is asked. Write now(), which is the end of the part."
UNDETERMINED = "cannot be used in the view V: its value is not determined by what the view reads."
TIMES = "write PARTITION LENGTH 60, or PARTITION LENGTH '1 minute'."

STATEMENTS = {
    "another statement": (
        "«ALTER» TABLE x",
        "A script consists of CREATE STREAM, CREATE TABLE, CREATE VIEW and DROP statements; ALTER begins none of them.",
    ),
    "only create": ("«CREATE»", "STREAM, TABLE or VIEW is missing after CREATE."),
    "another object": ("CREATE «INDEX» x", "Only a STREAM, a TABLE or a VIEW can be created, not INDEX."),
    "unclosed string": ("CREATE TABLE d (a INT) LOCATION «'»x", "This string is not closed."),
    "unclosed comment": ("«/»* and so on", "This comment is not closed."),
    "unclosed columns": ("CREATE STREAM M «(»a TIMESTAMP ORDERED", "This parenthesis is not closed."),
    "no name": ("CREATE «STREAM» (a INT)", "The name of the stream is missing."),
    "name that leaves the warehouse": (
        "CREATE STREAM «`../x`» (a TIMESTAMP ORDERED) PARTITION LENGTH 60",
        f"../x {NOT_A_NAME}",
    ),
    "name of two words": ("CREATE STREAM «db».x (a TIMESTAMP ORDERED) PARTITION LENGTH 60", f"db.x {NOT_A_NAME}"),
    "no columns": (
        "CREATE STREAM «M» PARTITION LENGTH 60",
        "The columns are missing; write them in parentheses after the name.",
    ),
    "no ordered column": (
        "CREATE STREAM «M» (a INT) PARTITION LENGTH 60",
        f"The stream M has no ORDERED column; {ONE_ORDERED}",
    ),
    "two ordered columns": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, «b» TIMESTAMP ORDERED) PARTITION LENGTH 60",
        f"The stream M has 2 ORDERED columns; {ONE_ORDERED}",
    ),
    "ordered column of another type": (
        "CREATE STREAM M («a» DATE ORDERED) PARTITION LENGTH 60",
        "The ORDERED column a must be a TIMESTAMP, not date.",
    ),
    "ordered column of a dimension table": (
        "CREATE TABLE d (a TIMESTAMP «ORDERED») LOCATION 'x' FORMAT csv",
        "Only a column of a stream can be ORDERED; a table of CREATE TABLE has no parts.",
    ),
    "column called part": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, «part» INT) PARTITION LENGTH 60",
        f"A column cannot be called part; {TAKEN}",
    ),
    "column called part_timestamp": (
        "CREATE STREAM M («PART_TIMESTAMP» TIMESTAMP ORDERED) PARTITION LENGTH 60",
        f"A column cannot be called PART_TIMESTAMP; {TAKEN}",
    ),
    "column with two underscores": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, «__x» INT) PARTITION LENGTH 60",
        f"A column cannot be called __x; {TAKEN}",
    ),
    "two columns of one name": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, «A» INT) PARTITION LENGTH 60",
        "There are two columns A; column names are compared without regard to case.",
    ),
    "unknown type": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, b «FOO») PARTITION LENGTH 60",
        "FOO is not a type that Spark knows.",
    ),
    "no type": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, «b») PARTITION LENGTH 60",
        "The type of the column b is missing.",
    ),
    "unknown word after a column": (
        "CREATE STREAM M (a TIMESTAMP ORDERED «PRIMARY») PARTITION LENGTH 60",
        "PRIMARY is not expected here; a column has a name, a type, and ORDERED or KEY.",
    ),
    "key that is no column": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, KEY («z»)) PARTITION LENGTH 60",
        "The key z is not a column of M.",
    ),
    "files above the warehouse": (
        "CREATE TABLE d (a INT) LOCATION «'../x'» FORMAT csv",
        "A LOCATION says where the files are without '..'; write the directory that you mean.",
    ),
    "files by a detour": (
        "CREATE STREAM M (a TIMESTAMP ORDERED) PARTITION LENGTH '1 day' LOCATION «'/a/../b/{yyyy-MM-dd}'» FORMAT csv",
        "A LOCATION says where the files are without '..'; write the directory that you mean.",
    ),
    "files from a detour of a url": (
        "CREATE TABLE d (a INT) LOCATION «'file:../x'» FORMAT csv",
        "A LOCATION says where the files are without '..'; write the directory that you mean.",
    ),
    "files from the web": (
        "CREATE TABLE d (a INT) LOCATION «'HTTP://host/x.csv'» FORMAT csv",
        "Files are read from a file system or an object store, such as s3a://, not from the web; put them there.",
    ),
    "a location with a control character": (
        "CREATE TABLE d (a INT) LOCATION «'x\x07y'» FORMAT csv",
        "A LOCATION is a path or a URL, without control characters.",
    ),
    "unique that is no column": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, UNIQUE («z»)) PARTITION LENGTH 60",
        "The key z is not a column of M.",
    ),
    "unique behind a column": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, b INT «UNIQUE») PARTITION LENGTH 60",
        "Name what is unique after the columns: UNIQUE (b).",
    ),
    "unique twice": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, b INT, UNIQUE (a), «UNIQUE» (b)) PARTITION LENGTH 60",
        "UNIQUE is given twice; name all the columns that together are unique in one.",
    ),
    "unique in a dimension table": (
        "CREATE TABLE d (a INT, «UNIQUE» (a)) LOCATION 'x' FORMAT csv",
        "Only a stream can have UNIQUE columns; what is in a table of CREATE TABLE is not ours.",
    ),
    "unique in files of others": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, b INT, UNIQUE («b»)) PARTITION LENGTH '1 day' "
        "LOCATION 'x/{yyyy-MM-dd}' FORMAT csv",
        "The files of the stream M are written by others, so that nothing can be UNIQUE in them; "
        "write KEY, which only says what tells rows apart.",
    ),
    "unique map": (
        "CREATE STREAM M (a TIMESTAMP ORDERED, b MAP<STRING, INT>, UNIQUE («b»)) PARTITION LENGTH 60",
        "The column b cannot be UNIQUE, since Spark cannot compare values of the type map<string,int>.",
    ),
    "stream without a length": (
        "CREATE STREAM «M» (a TIMESTAMP ORDERED)",
        "The stream M has no PARTITION LENGTH; add one, like PARTITION LENGTH 60.",
    ),
    "length of zero": (
        "CREATE STREAM M (a TIMESTAMP ORDERED) PARTITION LENGTH «0»",
        "A partition length must be at least one second, not 0.",
    ),
    "negative length": (
        "CREATE STREAM M (a TIMESTAMP ORDERED) PARTITION LENGTH «-5»",
        "A partition length must be at least one second, not -5.",
    ),
    "length in an unknown unit": (
        "CREATE STREAM M (a TIMESTAMP ORDERED) PARTITION LENGTH «'1 moon'»",
        "'1 moon' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
    ),
    "no length after the words": (
        "CREATE STREAM M (a TIMESTAMP ORDERED) PARTITION «LENGTH»",
        f"The length is missing; {TIMES}",
    ),
    "partition without length": (
        "CREATE STREAM M (a TIMESTAMP ORDERED) «PARTITION» 60",
        f"LENGTH is missing after PARTITION; {TIMES}",
    ),
    "dimension table without a location": (
        "CREATE TABLE «d» (a INT) FORMAT csv",
        "The table d has no LOCATION; add LOCATION 'path'.",
    ),
    "dimension table without a format": (
        "CREATE TABLE «d» (a INT) LOCATION 'x'",
        "The table d has no FORMAT; add FORMAT csv.",
    ),
    "unknown format": (
        "CREATE TABLE d (a INT) LOCATION 'x' FORMAT «avro»",
        "The FORMAT must be csv, json or parquet.",
    ),
    "location without quotes": (
        "CREATE TABLE d (a INT) «LOCATION» x FORMAT csv",
        "A path in quotes is missing after LOCATION.",
    ),
    "dimension table with parts": (
        "CREATE TABLE d (a INT) LOCATION 'x' FORMAT csv «PARTITION» LENGTH 60",
        "PARTITION is not expected here in CREATE TABLE. A table without a subscript has no parts; for one with parts, "
        "write CREATE STREAM.",
    ),
    "view without as": ("CREATE VIEW «V» SELECT 1", "AS is missing after the name of the view V."),
    "view without a query": ("CREATE VIEW «V» AS", "The query of the view V is missing."),
    "view without an update": (
        "CREATE VIEW V AS «INITIALIZE» V[i] AS SELECT 1 PARTITION LENGTH 60",
        "The view V has no UPDATE; write UPDATE V[j] AS and a query after the one of INITIALIZE.",
    ),
    "view without an initialize": (
        "CREATE VIEW V AS «UPDATE» V[j] AS SELECT 1 PARTITION LENGTH 60",
        "The view V has an UPDATE without an INITIALIZE before it.",
    ),
    "view with two updates": (
        "CREATE VIEW V AS INITIALIZE V[i] AS SELECT 1 UPDATE V[j] AS SELECT 1 «UPDATE» V[j] AS SELECT 1",
        "The view V has more than one INITIALIZE and one UPDATE.",
    ),
    "initialize without a query": (
        "CREATE VIEW V AS «INITIALIZE» V[i] AS UPDATE V[j] AS SELECT 1 PARTITION LENGTH 60",
        "The query of INITIALIZE is missing.",
    ),
    "head without a subscript": (
        "CREATE VIEW V AS «INITIALIZE» V AS SELECT 1 UPDATE V[j] AS SELECT 1 PARTITION LENGTH 60",
        "Write INITIALIZE V[i] AS and a query.",
    ),
    "head with a number": (
        "CREATE VIEW V AS INITIALIZE V[«5»] AS SELECT 1 UPDATE V[j] AS SELECT 1 PARTITION LENGTH 60",
        "5 cannot be a subscript variable; write a name, as in INITIALIZE V[i] AS.",
    ),
    "head of another view": (
        "CREATE VIEW V AS INITIALIZE «W»[i] AS SELECT 1 UPDATE V[j] AS SELECT 1 PARTITION LENGTH 60",
        "INITIALIZE is for W, but the view is called V.",
    ),
    "view without a length": (
        "CREATE VIEW «V» AS INITIALIZE V[i] AS SELECT 1 UPDATE V[j] AS SELECT 1",
        "The view V has no PARTITION LENGTH; add one, like PARTITION LENGTH 60.",
    ),
    "clause twice": (
        "CREATE VIEW V AS SELECT 1 PARTITION LENGTH 60 «PARTITION» LENGTH 60",
        "PARTITION is given twice.",
    ),
    "start that is no time": (
        "CREATE VIEW V AS SELECT 1 PARTITION LENGTH 60 STARTING «'soon'»",
        "'soon' is not a time; write it like 2015-01-01T10:04.",
    ),
    "pattern query": (
        "CREATE VIEW V AS SELECT src FROM (SELECT src FROM M «PATTERN [»a, b+] WHERE a.loss > 1 GROUP BY src)",
        "A PATTERN query can only be a view of its own, CREATE VIEW ... AS SELECT ... PATTERN [...]; read that view here.",
    ),
    "window in an update": (
        "CREATE VIEW V AS INITIALIZE V[i] AS SELECT loss FROM M[i] "
        "UPDATE V[j] AS SELECT sum(loss) FROM M «[WINDOW» 60 minutes] PARTITION LENGTH 60",
        "A [WINDOW ...] is for a view without INITIALIZE, UPDATE and PATTERN: CREATE VIEW V AS SELECT ... FROM S [WINDOW ...].",
    ),
    "window without brackets": (
        "CREATE VIEW V AS SELECT src, sum(loss) AS n FROM M «WINDOW 60» minutes GROUP BY src",
        "A sliding window stands in brackets, right behind the table: FROM S [WINDOW 60 minutes].",
    ),
    "pattern of another database": (
        "CREATE VIEW V AS SELECT * FROM M «MATCH_RECOGNIZE (»PARTITION BY src PATTERN (a b+) DEFINE b AS loss > 1)",
        "MATCH_RECOGNIZE is not known here; write the pattern behind the table, and conditions in WHERE: "
        "FROM S PATTERN [a, b+] WHERE b.x > a.x.",
    ),
    "query that is none": (
        "CREATE VIEW V AS «DELETE» FROM M",
        "A query begins with SELECT or WITH, not with DELETE.",
    ),
    "query that ends early": (
        "CREATE VIEW V AS SELECT src FROM M «WHERE»",
        "The query ends too early, after WHERE.",
    ),
    "unexpected word in a query": (
        "CREATE VIEW V AS SELECT a b «c» FROM M",
        "c is not expected here.",
    ),
    "unclosed function": (
        "CREATE VIEW V AS SELECT count«(»src FROM M",
        "This parenthesis is not closed.",
    ),
    "join condition that is missing": (
        "CREATE VIEW V AS SELECT 1 FROM M JOIN d «ON» WHERE x",
        "A condition is missing after ON.",
    ),
}

QUERIES = {
    "plain view without parts": (
        TABLES + "CREATE VIEW V AS «SELECT * FROM d»",
        "The view V reads no stream and no view, so it has no parts; read at least one of them.",
    ),
    "plain view of an odd length": (
        TABLES + "CREATE VIEW V AS SELECT * FROM M PARTITION LENGTH «90»",
        "The partition length of the view V must be 1 minute, the longest of its tables, or a multiple of it.",
    ),
    "plain view with a subscript": (
        TABLES + "CREATE VIEW V AS SELECT * FROM M a, «M[j]» b",
        "The view V has a subscript but neither INITIALIZE nor UPDATE; write INITIALIZE V[i] AS ... UPDATE V[j] AS ..., "
        "or no subscript at all.",
    ),
    "partitioned table without a subscript": (
        TABLES + view(update="SELECT src FROM «M»"),
        "The stream M has parts; say which of them UPDATE V[j] reads, like M[j].",
    ),
    "dimension table with a subscript": (
        TABLES + view(update="SELECT src FROM M[j], «d[j]»"),
        "d is a dimension table, which has no parts; leave the subscript out.",
    ),
    "with query with a subscript": (
        TABLES + view(update="WITH c AS (SELECT 1) SELECT * FROM «c[j]»"),
        "c is a WITH query, which has no parts; leave the subscript out.",
    ),
    "with query called like a part": (
        TABLES + view(update="WITH «M_5» AS (SELECT 1) SELECT src FROM M[j], M_5"),
        "M_5 cannot be the name of a WITH query: it is how a part of M is called; choose another.",
    ),
    "output column called part": (
        TABLES + view(update="SELECT «PART» FROM M[j]"),
        "A column of the view V cannot be called PART; give it another name with AS.",
    ),
    "output alias called part_timestamp": (
        TABLES + view(initialize="SELECT src AS «part_timestamp» FROM M[i]"),
        "A column of the view V cannot be called part_timestamp; give it another name with AS.",
    ),
    "join without condition and keys": (
        TABLES + view(update="SELECT src FROM M[j] «JOIN d»"),
        "The join with d has no condition, and its two sides declare no common KEY; "
        "add ON or USING, or write CROSS JOIN.",
    ),
}

SUBSCRIPTS = {
    "variable not in scope": (
        "SELECT src FROM M[«k»]",
        "The subscript variable k is not in scope; UPDATE V[j] declares j.",
    ),
    "range that runs backwards": (
        "SELECT src FROM «M[j .. j-1]»",
        "The range j .. j - 1 runs backwards; write the earlier part first.",
    ),
    "range that runs backwards in our time": (
        "SELECT src FROM «M[j-1..100]»",
        "The range j - 1 .. 100 runs backwards; write the earlier part first.",
    ),
    "range that runs backwards for half of the parts": (
        "SELECT src FROM «M[j .. j / 2 * 2]»",
        "The range j .. j / 2 * 2 runs backwards; write the earlier part first.",
    ),
    "self reference in the present": ("SELECT src FROM «V[j]»", f"UPDATE V[j] reads V[j], {NOT_PAST}"),
    "self reference into the future": ("SELECT src FROM «V[j+1]»", f"UPDATE V[j] reads V[j + 1], {NOT_PAST}"),
    "self reference up to the present": ("SELECT src FROM «V[j-5..j]»", f"UPDATE V[j] reads V[j - 5 .. j], {NOT_PAST}"),
    "remainder": (
        "SELECT src FROM M[«j % 60»]",
        "j % 60 cannot be inverted: it goes up and down, so which parts read a given part of M could not be told. "
        "Use a subscript that only rises, such as j - 1 or j / 60.",
    ),
    "square": (
        "SELECT src FROM M[«j*j» + 1]",
        "j * j cannot be inverted: which parts read a given part could not be told. "
        "Multiply and divide j by small constants only.",
    ),
    "division by zero": ("SELECT src FROM M[«j/0»]", "j / 0 divides by zero."),
    "time in a view": (
        "SELECT src FROM M[«'2015-01-01'»]",
        "A time cannot be a subscript in a view; write an expression of j.",
    ),
    "nothing": ("SELECT src FROM M«[]»", "A subscript is missing between the brackets."),
    "two words": (
        "SELECT src FROM M[j «j»]",
        "j is not expected here; a subscript is one expression, or two with .. in between.",
    ),
    "no operand": (
        "SELECT src FROM M[j +«]»",
        "The subscript ends too early; an integer or the subscript variable is missing.",
    ),
    "no first operand": (
        "SELECT src FROM M[«*» j]",
        "An integer or the subscript variable is missing before *.",
    ),
    "unknown sign": (
        "SELECT src FROM M[j«!»]",
        "A subscript consists of integers, the subscript variable, + - * / % and parentheses; ! is none of these.",
    ),
}

FUNCTIONS = {
    "rand": ("SELECT «rand()» FROM M[j]", f"rand() {UNDETERMINED}"),
    "the time that is now": ("SELECT TIMESTAMP «'now'» AS x FROM M[j]", f"'now' {MOVING}"),
    "a text of today": ("SELECT src FROM M[j] WHERE ts > «CAST(' Today UTC' AS DATE)»", f"' Today UTC' {MOVING}"),
    "the date of a text": ("SELECT «to_date('yesterday')» AS x FROM M[j]", f"'yesterday' {MOVING}"),
    "rand with a seed": ("SELECT «rand(5)» + 1 FROM M[j]", f"rand() {UNDETERMINED}"),
    "random": ("SELECT «RANDOM()» FROM M[j]", f"random() {UNDETERMINED}"),
    "randn": ("SELECT src FROM M[j] ORDER BY «randn()»", f"randn() {UNDETERMINED}"),
    "uuid": ("SELECT «uuid()» AS x FROM M[j]", f"uuid() {UNDETERMINED}"),
    "shuffle": ("SELECT «shuffle(array(1, 2))» FROM M[j]", f"shuffle() {UNDETERMINED}"),
    "monotonically_increasing_id": (
        "SELECT * FROM (SELECT «monotonically_increasing_id()» AS x FROM M[j])",
        f"monotonically_increasing_id() {UNDETERMINED}",
    ),
    "input_file_name": ("SELECT «input_file_name()» FROM M[j]", f"input_file_name() {UNDETERMINED}"),
    "current_user": ("SELECT «current_user» FROM M[j]", f"current_user() {UNDETERMINED}"),
    "sample": (
        "SELECT src FROM «M[j]» TABLESAMPLE (10 PERCENT)",
        "TABLESAMPLE cannot be used in the view V: which rows it takes is not determined by what the view reads.",
    ),
}

TWO_VIEWS = "CREATE VIEW {0} AS\nINITIALIZE {0}[i] AS {1}\nUPDATE {0}[j] AS {2}\nPARTITION LENGTH {3};\n"
FROM_M = ("SELECT 1 AS x FROM M[i]", "SELECT 1 FROM M[j]")

DEFINITIONS = {
    "name defined twice": (
        DuplicateDefinitionError,
        TABLES + "CREATE VIEW «m» AS SELECT 1",
        "m is defined twice; the first definition is in line 1.",
    ),
    "name of a part": (
        DefinitionError,
        TABLES + "CREATE STREAM «M_5» (ts TIMESTAMP ORDERED) PARTITION LENGTH 60",
        "M_5 cannot be defined beside M: it is what one of its parts is called in queries; choose another name.",
    ),
    "name of a range of parts": (
        DefinitionError,
        TABLES + "CREATE STREAM «M_n5_12» (ts TIMESTAMP ORDERED) PARTITION LENGTH 60",
        "M_n5_12 cannot be defined beside M: it is what one of its parts is called in queries; choose another name.",
    ),
    "name of a quarantine": (
        DefinitionError,
        TABLES + "CREATE TABLE «m_quarantine» (a INT) LOCATION 'x' FORMAT csv",
        "m_quarantine cannot be defined beside M: it is what its quarantine is called in queries; choose another name.",
    ),
    "unknown table": (
        UnknownTableError,
        TABLES + view(update="SELECT src FROM M[j] JOIN «Losses»[j] USING (src)"),
        "There is no table or view Losses; create it first, or correct the name.",
    ),
    "misspelt table": (
        UnknownTableError,
        TABLES + view(update="SELECT src FROM «MM»[j]"),
        "There is no table or view MM; did you mean M?",
    ),
    "table of another database": (
        UnknownTableError,
        TABLES + view(update="SELECT src FROM «db.M»"),
        "There is no table or view db.M; create it first, or correct the name.",
    ),
    "plain view of itself": (
        CyclicDefinitionError,
        TABLES + "CREATE VIEW «V» AS SELECT * FROM V",
        "These views need each other within one part: V[j] -> V[j]. Let one of them read an earlier part.",
    ),
    "plain views of each other": (
        CyclicDefinitionError,
        TABLES + "CREATE VIEW «A» AS SELECT * FROM B; CREATE VIEW B AS SELECT * FROM A",
        "These views need each other within one part: A[j] -> B[j] -> A[j]. Let one of them read an earlier part.",
    ),
    "updates of each other": (
        CyclicDefinitionError,
        TABLES
        + TWO_VIEWS.format("A", FROM_M[0], "SELECT 1 FROM «B[j]»", 60)
        + TWO_VIEWS.format("B", FROM_M[0], "SELECT 1 FROM A[j]", 60),
        "These views need each other within one part: A[j] -> B[j] -> A[j]. Let one of them read an earlier part.",
    ),
    "updates of each other over different lengths": (
        CyclicDefinitionError,
        TABLES
        + TWO_VIEWS.format("A", FROM_M[0], "SELECT 1 FROM «B[j/60]»", 60)
        + TWO_VIEWS.format("B", FROM_M[0], "SELECT 1 FROM A[j*60]", 3600),
        "These views need each other within one part: A[j] -> B[j / 60] -> A[j * 60]. "
        "Let one of them read an earlier part.",
    ),
    "initializations of each other": (
        CyclicDefinitionError,
        TABLES
        + TWO_VIEWS.format("A", "SELECT 1 AS x FROM «B[i]»", FROM_M[1], 60)
        + TWO_VIEWS.format("B", "SELECT 1 AS x FROM A[i-1]", FROM_M[1], 60),
        "The INITIALIZE queries read each other in a circle, A[i] -> B[i] -> A[i - 1], so none can be the first.",
    ),
    "view ever further in the future": (
        CyclicDefinitionError,
        TABLES
        + TWO_VIEWS.format("A", *FROM_M, 60)
        + TWO_VIEWS.format("B", "SELECT 1 AS x FROM «A[i*2]»", FROM_M[1], 60),
        "B[i] reads A[i * 2], which lies ever further in the future; read parts at a bounded distance.",
    ),
    "initialization that reads its own view": (
        SubscriptError,
        TABLES + view(initialize="SELECT src FROM «V[i-1]»"),
        "INITIALIZE V[i] reads V itself; INITIALIZE computes the first part, when there is none before it.",
    ),
}

CASES = [
    *((name, LanguageError, script, sentence) for name, (script, sentence) in {**STATEMENTS, **QUERIES}.items()),
    *((name, SubscriptError, TABLES + view(update=query), sentence) for name, (query, sentence) in SUBSCRIPTS.items()),
    *(
        (name, UnsupportedFunctionError, TABLES + view(update=query), sentence)
        for name, (query, sentence) in FUNCTIONS.items()
    ),
    *((name, error, script, sentence) for name, (error, script, sentence) in DEFINITIONS.items()),
]


@pytest.mark.parametrize(("error", "marked", "sentence"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_script_is_refused_with_one_sentence_and_the_place(
    error: type[Exception], marked: str, sentence: str
) -> None:
    start = marked.index("«")
    end = marked.index("»") - 1
    script = marked.replace("«", "").replace("»", "")
    with pytest.raises(error) as refused:
        parse_script(script)
    line, column = locate(script, start)
    assert str(refused.value) == f"Line {line}, column {column}: {sentence}\n{underline(script, start, end)}"
    assert type(refused.value) is error


def test_the_underline_stands_below_the_place() -> None:
    with pytest.raises(SubscriptError) as refused:
        parse_script(TABLES + view(update="SELECT src FROM M[k]"))
    assert refused.value.line == 5
    assert refused.value.column == 34
    assert refused.value.excerpt == (
        "  UPDATE V[j] AS SELECT src FROM M[k]\n"
        "                                   ^"
    )  # fmt: skip


def test_a_known_table_cannot_be_called_like_a_part_of_a_new_one() -> None:
    known = {item.name.lower(): item for item in parse_script(TABLES.replace("STREAM M ", "STREAM N_5 "))}
    with pytest.raises(DefinitionError) as refused:
        parse_script("CREATE STREAM N (ts TIMESTAMP ORDERED) PARTITION LENGTH 60", known)
    assert str(refused.value).startswith(
        "Line 1, column 15: N_5 cannot be defined beside N: it is what one of its parts is called in queries; "
        "choose another name."
    )


def test_a_cycle_through_a_known_view_is_found() -> None:
    known = {
        item.name.lower(): item
        for item in parse_script(
            TABLES + TWO_VIEWS.format("A", *FROM_M, 60) + TWO_VIEWS.format("B", FROM_M[0], "SELECT 1 FROM A[j]", 60)
        )
    }
    with pytest.raises(CyclicDefinitionError) as refused:
        parse_script(TWO_VIEWS.format("A", FROM_M[0], "SELECT 1 FROM B[j]", 60), known)
    assert "A[j] -> B[j] -> A[j]" in str(refused.value)
    assert refused.value.line == 3
