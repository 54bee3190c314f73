"""Pattern queries that are refused: which piece, where, and what to write instead."""

from __future__ import annotations

import pytest

from airflow_provider_viewdf.errors import ViewDFError
from airflow_provider_viewdf.language import parse_script

TABLES = """\
CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, dest STRING, loss INT) PARTITION LENGTH 60;
CREATE VIEW P AS SELECT src, loss FROM M;
CREATE TABLE D (x INT) LOCATION 'd' FORMAT csv;
"""


def refuse(statement: str) -> tuple[str, str]:
    """The sentence, without its place, and what is underlined."""
    with pytest.raises(ViewDFError) as caught:
        parse_script(TABLES + statement)
    error = caught.value
    place, sentence = str(error).splitlines()[0].split(": ", 1)
    assert place.startswith("Line ")
    excerpt = str(error).splitlines()[1:]
    start = excerpt[-1].index("^")
    return sentence, excerpt[-2][start : start + excerpt[-1].count("^")]


def write_query(
    select: str = "src, count(*) AS ct",
    source: str = "M",
    pattern: str = "[a, b+]",
    where: str = "a.loss > 10 AND b.loss > 10",
    rest: str = "GROUP BY src",
) -> str:
    return f"CREATE VIEW V AS\nSELECT {select}\nFROM {source}\nPATTERN {pattern}\nWHERE {where}\n{rest}"


PATTERNS = {
    "[]": ("The pattern is empty; write at least one variable, as in PATTERN [a, b+].", "[]"),
    "[a b]": ("A comma is missing before b; the variables of a pattern have commas between them.", "b"),
    "[a, A]": (
        "The variable A occurs twice in the pattern; give each its own name, and write A+ or A{2} for several rows of one.",
        "A",
    ),
    "[a, b+": ("This bracket is not closed.", "["),
    "[a*, b?]": (
        "The pattern can match no rows at all, so every group would match it everywhere; let at least one variable be bound "
        "to at least one row.",
        "PATTERN [a*, b?]",
    ),
    "[a, b+?]": ("b has two quantifiers, + and ?; leave one out, or put parentheses around the inner one.", "?"),
    "[a, b{3,2}]": ("The quantifier {3,2} runs backwards; write the smaller number first.", "{3,2}"),
    "[a, b{0}]": ("The quantifier {0} means no row; leave the variable out.", "{0}"),
    "[a, b{x}]": ("Write {n}, {n,m} or {n,} with whole numbers.", "{"),
    "[a, b{500}]": (
        "The pattern is too large: written out, it has more than 200 states; use smaller numbers in {n,m}, or + where the "
        "number of rows does not matter.",
        "PATTERN [a, b{500}]",
    ),
    "[a, b{2000}]": ("A variable can be repeated 1000 times at most.", "{2000}"),
    "[a, , b]": ("A variable is missing before ,.", ","),
    "[a, b 'x']": (
        "x is not expected in a pattern; it consists of variables with commas between, the quantifiers + * ? {n} {n,m}, and "
        "( | ).",
        "'x'",
    ),
    "[a, b+] WITHIN 'soon'": (
        "'soon' is not a length of time; write whole seconds, or a number with second, minute, hour, day or week.",
        "'soon'",
    ),
    "[a, b+] WITHIN '0 minutes'": (
        "WITHIN needs at least one second; write WITHIN '10 minutes'.",
        "WITHIN '0 minutes'",
    ),
    "[a, b+] WITHIN INTERVAL 10 MINUTES": ("WITHIN needs a length of time; write WITHIN '10 minutes'.", "WITHIN"),
    "[a, b+] WITHIN": ("WITHIN needs a length of time; write WITHIN '10 minutes'.", "WITHIN"),
    "[a, b+] WITHIN 60 ACROSS GAPS WITHIN 20": ("WITHIN stands there twice; leave one out.", "WITHIN"),
    "[a, b+] ACROSS": ("ACROSS needs GAPS; write ACROSS GAPS.", "ACROSS"),
    "[a, b+] AFTER MATCH SKIP PAST LAST ROW": (
        "AFTER is not expected behind a pattern; there can be ACROSS GAPS, WITHIN '10 minutes', and then WHERE, GROUP BY, "
        "HAVING and ORDER BY. Another name for what is read stands before PATTERN.",
        "AFTER",
    ),
    "a, b+": ("A pattern stands in brackets, as in PATTERN [a, b+].", "a"),
    "{a}": ("A pattern stands in brackets, as in PATTERN [a, b+].", "{"),
    "[a, 'b']": ("'b' is no name of a variable; names consist of letters, digits and _, without quotes.", "'b'"),
    "[a, b] PATTERN [c]": ("A query has one PATTERN; write a view for each.", "PATTERN"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    assert refuse(write_query(pattern=pattern)) == PATTERNS[pattern]


CONDITIONS = {
    "a.loss > 10 AND c.loss > 3": (
        "c is neither a variable of the pattern nor a column of M; the pattern has a, b.",
        "c.loss",
    ),
    "a.lost > 10": ("M has no column lost; it has ts, src, dest, loss.", "a.lost"),
    "a.loss > 1 AND lost > 1": ("M has no column lost; it has ts, src, dest, loss.", "lost"),
    "loss > 10": (
        "No variable of the pattern is used in WHERE, so any rows would match; say what its rows are like, as in "
        "WHERE a.x > 10.",
        "PATTERN [a, b+]",
    ),
    "a.loss > loss": ("loss could be that of any row; say of which variable's, like a.loss.", "loss"),
    "a.loss > avg(a.loss)": (
        "An aggregate in WHERE is over the rows that a variable has before the current one, like avg(a[..i-1].x); "
        "conditions on a whole match belong into HAVING.",
        "avg(a.loss)",
    ),
    "b.loss > first(a.loss)": ("first() is for SELECT and HAVING; write a[1].loss here.", "first(a.loss)"),
    "b.loss > last(a.loss)": ("last() is for SELECT and HAVING; write a.loss here.", "last(a.loss)"),
    "b.loss > median(b[..i-1].loss)": (
        "median() cannot be computed over the rows of a match; there are count, sum, avg, min and max.",
        "median(b[..i-1].loss)",
    ),
    "b[i-2].loss > 3": (
        "b[i-2] is no row of b; there are b[1], the first, b[i], the current one, b[i-1], the one before it, and b[..i-1], "
        "all before it.",
        "b[i-2]",
    ),
    "b.loss > a[i-1].loss": (
        "a[i], a[i-1] and a[..i-1] are rows seen from the current row of a, but this condition is about rows of b; write a.x "
        "for the last row of a, or a[1].x for its first.",
        "a[i-1].loss",
    ),
    "b.loss > b[..i-1].loss": (
        "b[..i-1] are several rows; take an aggregate of them, like avg(b[..i-1].loss).",
        "b[..i-1].loss",
    ),
    "b[i] > 3": ("An attribute is missing after b[i]; write b[i].x.", "b[i]"),
    "a > 3": ("a is a variable of the pattern; say which attribute of its row is meant, like a.x.", "a"),
    "a.loss > (SELECT max(x) FROM D)": (
        "A pattern query has no subqueries; put what it needs into a plain view first and read that.",
        "SELECT max(x) FROM D",
    ),
    "exists(array(1), q -> q > a.loss)": (
        "A variable of the pattern cannot be used inside of a lambda function; compute the value in a plain view first and "
        "read that.",
        "q -> q > a.loss",
    ),
    "a.loss > rand()": (
        "rand() cannot be used in the view V: its value is not determined by what the view reads.",
        "rand()",
    ),
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_wrong_condition_is_refused(where: str) -> None:
    assert refuse(write_query(where=where)) == CONDITIONS[where]


OUTPUTS = {
    "": ("SELECT names nothing; name what is asked of a match, like count(*) AS ct.", "SELECT "),
    "*": ("* is not possible in a pattern query; name the attributes.", "*"),
    "src, M.*": ("* is not possible in a pattern query; name the attributes.", "M.*"),
    "src, a.*": ("a.* is no value; name one of its attributes.", "a.*"),
    "src, lost": ("M has no column lost; it has ts, src, dest, loss.", "lost"),
    "src, median(loss)": (
        "median() cannot be computed over the rows of a match; there are count, sum, avg, min, max, first and last.",
        "median(loss)",
    ),
    "src, sum(a.loss + b.loss)": (
        "An aggregate is over the rows of one variable or of the whole match, not of a and b at once; write one for each.",
        "sum(a.loss + b.loss)",
    ),
    "src, sum(a.loss + loss)": ("loss could be that of any row; say of which variable's, like a.loss.", "loss"),
    "src, sum(max(loss))": ("An aggregate cannot be taken of an aggregate.", "sum(max(loss))"),
    "src, count(DISTINCT loss)": ("count() has no DISTINCT in a pattern query.", "count(DISTINCT loss)"),
    "src, first(loss, true)": ("first() has one argument in a pattern query.", "first(loss, true)"),
    "src, sum(*)": ("sum() needs an attribute; only count can have *.", "sum(*)"),
    "src, sum(b[1].loss)": (
        "An aggregate is over all rows of a variable; write b.loss without a subscript.",
        "b[1].loss",
    ),
    "src, b[i-1].loss": (
        "b[i-1] is seen from a current row, and a match has none; write last(b.loss), or an aggregate over b.",
        "b[i-1].loss",
    ),
    "src, sum(loss) OVER ()": (
        "A pattern query has no window functions; use the variables of the pattern, or a plain view that reads this one.",
        "sum(loss) OVER ()",
    ),
}


@pytest.mark.parametrize("select", OUTPUTS)
def test_a_wrong_output_is_refused(select: str) -> None:
    assert refuse(write_query(select=select)) == OUTPUTS[select]


SOURCES = {
    "M JOIN P USING (src)": (
        "A pattern is found in one stream or view, not in a join; put it into a plain view first and read that.",
        "JOIN P USING (src)",
    ),
    "M, P": (
        "A pattern is found in one stream or view, not in a join; put it into a plain view first and read that.",
        ", P",
    ),
    "(SELECT * FROM M) m": (
        "A pattern is found in one stream or view, not in a subquery; put it into a plain view first and read that.",
        "(SELECT * FROM M) m",
    ),
    "M[j]": ("A pattern query reads M as a whole; leave the subscript out.", "M[j]"),
    "db.M": ("Tables and views are called by one name; write M.", "db.M"),
    "D": ("D is a dimension table, which has no parts; a pattern is found in a stream or a view.", "D"),
    "N": ("There is no table or view N; create it first, or correct the name.", "N"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_wrong_source_is_refused(source: str) -> None:
    assert refuse(write_query(source=source)) == SOURCES[source]


ENDINGS = {
    "GROUP BY upper(src)": (
        "GROUP BY in a pattern query names attributes; compute the value in a plain view first and read that.",
        "upper(src)",
    ),
    "GROUP BY a.src": ("All rows of a match are of one group; write GROUP BY src, without a variable.", "a.src"),
    "GROUP BY src WITH ROLLUP": (
        "GROUP BY in a pattern query names attributes, as in GROUP BY src, dest.",
        "SELECT src, count(*) AS ct",
    ),
    "GROUP BY PART": ("A match goes over several parts, so rows cannot be grouped by PART; leave it out.", "PART"),
    "GROUP BY src ORDER BY ALL": (
        "ORDER BY in a pattern query names the attributes that order the rows of one part; compute other values in a plain "
        "view first and read that.",
        "SELECT src, count(*) AS ct",
    ),
    "GROUP BY scr": ("M has no column scr; it has ts, src, dest, loss.", "scr"),
    "GROUP BY src HAVING ctt > 3": ("M has no column ctt; it has ts, src, dest, loss.", "ctt"),
    "GROUP BY src ORDER BY ts DESC": (
        "The rows of a part can only be ordered upwards, NULLs first; leave DESC and NULLS LAST out, or compute a value that "
        "rises in a plain view first and read that.",
        "ts",
    ),
    "GROUP BY src ORDER BY a.ts": (
        "ORDER BY in a pattern query names the attributes that order the rows of one part; compute other values in a plain "
        "view first and read that.",
        "a.ts",
    ),
    "GROUP BY src LIMIT 3": (
        "LIMIT is not possible in a pattern query; put it into a plain view that reads this one, or one that this one reads.",
        "3",
    ),
    "GROUP BY src PARTITION LENGTH 90": (
        "The partition length of the view V must be 1 minute, that of M, or a multiple of it.",
        "90",
    ),
}


@pytest.mark.parametrize("rest", ENDINGS)
def test_a_wrong_ending_is_refused(rest: str) -> None:
    assert refuse(write_query(rest=rest)) == ENDINGS[rest]


def test_within_over_a_view_needs_to_know_the_time() -> None:
    assert refuse(write_query(source="P", pattern="[a, b+] WITHIN '10 minutes'")) == (
        "WITHIN needs the time of a row, and the view P has no ORDERED column; say which column it is, with ORDER BY.",
        "WITHIN '10 minutes'",
    )


def test_a_pattern_in_a_subquery_is_refused() -> None:
    assert refuse("CREATE VIEW V AS SELECT x FROM (SELECT src FROM M PATTERN [a] WHERE a.loss > 1)") == (
        "A PATTERN query can only be a view of its own, CREATE VIEW ... AS SELECT ... PATTERN [...]; read that view here.",
        "PATTERN [",
    )
