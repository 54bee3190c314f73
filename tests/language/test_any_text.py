"""Whatever text comes in, the language answers with definitions or with a ViewDFError, soon, and with a message that can be read."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.compiler import compile_batch, compile_part, compile_query
from airflow_provider_viewdf.definitions import Definition, Rule, fold
from airflow_provider_viewdf.errors import LanguageError, SubscriptError, ViewDFError
from airflow_provider_viewdf.language import expand_queries, order_views, parse_script
from airflow_provider_viewdf.language.limits import MOST_CHARACTERS, MOST_WORDS
from airflow_provider_viewdf.parts import PartSet

TESTS = Path(__file__).parents[1]
PARTS = PartSet.between(394_464, 394_465)
RULES: tuple[Rule, Rule] = ("initialize", "update")


def read_samples() -> list[str]:
    """The scripts of the README and of the golden cases, without what is expected of them."""
    found = re.findall(r"```sql\n(.*?)```", (TESTS.parent / "README.md").read_text(), flags=re.DOTALL)
    for path in sorted(TESTS.glob("*/*cases/*.sql")):
        script, *sections = re.split(r"^--- (.*)\n", path.read_text(), flags=re.MULTILINE)
        found.append(script)
        found += [text for name, text in zip(sections[::2], sections[1::2]) if name == "query"]
    return found


SAMPLES = read_samples()
PIECES = [re.findall(r"\w+|\s+|[^\w\s]", sample) for sample in SAMPLES]
VOCABULARY = sorted({piece for pieces in PIECES for piece in pieces}) + [
    "(((((((((",
    ")))))))))",
    "'",
    '"',
    "`",
    "/*",
    "*/",
    "--",
    "\\",
    "\0",
    "\ufeff",
    "\u202e",
    "‘quoted’",
    "ſELECT",
    "٣",
    "{{ i }}",
    "{%",
    "${x}",
    "[WINDOW 60 minutes]",
    "PATTERN [a, b+]",
    "M[j .. ",
    "::int",
    "99999999999999999999999",
    "1e400",
    "0x",
    "DROP VIEW",
    "UNION ALL SELECT",
    "NULL",
    "OVER (PARTITION BY",
    "INTERVAL '1' DAY",
    ", LATERAL VIEW explode(x)",
]


def take(text: str) -> None:
    """All that is done with a script or a question before Spark sees it."""
    try:
        expand_queries(text)
        definitions = {fold(item.name): item for item in parse_script(text)}
        order_views(definitions)
        for definition in definitions.values():
            if definition.kind == "view":
                compile_everything(definition, definitions)
    except ViewDFError as error:
        check_message(error)


def check_message(error: ViewDFError) -> None:
    assert len(str(error)) < 4_000


def compile_everything(definition: Definition, definitions: dict[str, Definition]) -> None:
    for rule in RULES:
        try:
            compile_part(definition, rule, 394_464, definitions, lambda table: 0)
        except ViewDFError as error:
            check_message(error)
    compile_batch(definition, "update", range(394_464, 394_470), definitions, "_q", lambda table: 0)


def ask(text: str) -> None:
    try:
        compile_query(text, KNOWN, lambda table: PARTS, "_q")
    except ViewDFError as error:
        check_message(error)


KNOWN = {fold(item.name): item for item in parse_script(SAMPLES[0])}

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["put", "take out", "double", "swap", "cut off", "splice"]),
        st.floats(0, 1, exclude_max=True),
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(VOCABULARY),
    ),
    min_size=1,
    max_size=6,
)


def change(pieces: list[str], edits: list[tuple[str, float, float, str]]) -> str:
    pieces = list(pieces)
    for kind, one, other, word in edits:
        if not pieces:
            break
        at, to = int(one * len(pieces)), int(other * len(pieces))
        match kind:
            case "put":
                pieces.insert(at, word)
            case "take out":
                del pieces[at : at + 1 + to % 3]
            case "double":
                pieces[at:at] = pieces[at : at + 1 + to % 12]
            case "swap":
                pieces[at], pieces[to] = pieces[to], pieces[at]
            case "cut off":
                pieces = pieces[: max(at, 1)]
            case _:
                source = PIECES[to % len(PIECES)]
                pieces[at:at] = source[to % max(len(source), 1) :][:10]
    return "".join(pieces)


@given(st.integers(0, len(PIECES) - 1), EDITS)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_changed_script_gives_definitions_or_an_error_of_ours(
    sample: int, edits: list[tuple[str, float, float, str]]
) -> None:
    text = change(PIECES[sample], edits)
    take(text)
    ask(text)


@given(st.text(max_size=300))
@example("\0")
@example("\ud800")
@example("{{ 1 }}")
@settings(max_examples=300, deadline=None)
def test_any_text_gives_definitions_or_an_error_of_ours(text: str) -> None:
    take(text)
    ask(text)
    ask(f"SELECT {text} FROM M")
    take(f"CREATE STREAM M (ts TIMESTAMP ORDERED, x {text}) PARTITION LENGTH 60")


@given(st.binary(max_size=2_000))
@settings(max_examples=100, deadline=None)
def test_any_bytes_give_definitions_or_an_error_of_ours(rubbish: bytes) -> None:
    take(rubbish.decode("latin-1"))
    take(rubbish.decode("utf-8", "surrogateescape"))
    ask(rubbish.decode("utf-8", "replace"))


STREAM = "CREATE STREAM M (ts TIMESTAMP ORDERED, src STRING, loss INT) PARTITION LENGTH 60;\n"


def nest(kind: str, count: int) -> str:
    """A view whose query is deep or long in one way."""
    query = {
        "parentheses": lambda n: f"SELECT {'(' * n}loss{')' * n} AS x FROM M",
        "parentheses around the query": lambda n: f"{'(' * n}SELECT loss FROM M{')' * n}",
        "parentheses that do not close": lambda n: f"SELECT {'(' * n}",
        "subqueries": lambda n: f"{'SELECT * FROM (' * n}SELECT loss FROM M{') a' * n}",
        "conditions": lambda n: f"SELECT loss FROM M WHERE {' AND '.join(['loss > 1'] * n)}",
        "NOT": lambda n: f"SELECT loss FROM M WHERE {'NOT ' * n}loss > 1",
        "sums": lambda n: f"SELECT {'+'.join(['loss'] * n)} AS x FROM M",
        "signs": lambda n: f"SELECT {'- ' * n}loss AS x FROM M",
        "calls": lambda n: f"SELECT {'abs(' * n}loss{')' * n} AS x FROM M",
        "CASE": lambda n: f"SELECT {'CASE WHEN loss > 1 THEN ' * n}1{' END' * n} AS x FROM M",
        "UNION": lambda n: " UNION ALL ".join(["SELECT loss FROM M"] * n),
        "EXISTS": lambda n: f"SELECT loss FROM M WHERE {'EXISTS (SELECT 1 FROM M WHERE ' * n}1 = 1{')' * n}",
        "elements": lambda n: f"SELECT src{'[1]' * n} AS x FROM M",
        "casts": lambda n: f"SELECT src{'::int' * n} AS x FROM M",
        "lambdas": lambda n: f"SELECT {'x -> ' * n}x AS y FROM M",
        "dots": lambda n: f"SELECT {'.'.join(['a'] * n)} FROM M",
        "brackets": lambda n: f"SELECT {'[' * n}1{']' * n} AS x FROM M",
        "WITH": lambda n: (
            f"WITH c0 AS (SELECT loss FROM M){''.join(f', c{i} AS (SELECT loss FROM c{i - 1})' for i in range(1, n))} "
            f"SELECT loss FROM c{n - 1}"
        ),
        "pattern in parentheses": lambda n: (
            f"SELECT src, count(*) AS c FROM M PATTERN [{'(' * n}a{')' * n}] WHERE a.loss > 1 GROUP BY src"
        ),
        "pattern with conditions": lambda n: (
            f"SELECT src, count(*) AS c FROM M PATTERN [a, b+] WHERE {' AND '.join(['b.loss > 1'] * n)} GROUP BY src"
        ),
        "window with sums": lambda n: (
            f"SELECT src, {'+'.join(['sum(loss)'] * n)} AS c FROM M [WINDOW 60 minutes] GROUP BY src"
        ),
    }[kind](count)
    return f"{STREAM}CREATE VIEW V AS {query}"


NESTS = [
    ("parentheses", 5_000),
    ("parentheses around the query", 5_000),
    ("parentheses that do not close", 5_000),
    ("subqueries", 2_000),
    ("conditions", 5_000),
    ("NOT", 5_000),
    ("sums", 5_000),
    ("signs", 5_000),
    ("calls", 5_000),
    ("CASE", 2_000),
    ("UNION", 2_000),
    ("EXISTS", 1_000),
    ("elements", 200),
    ("casts", 2_000),
    ("lambdas", 2_000),
    ("dots", 2_000),
    ("brackets", 2_000),
    ("WITH", 300),
    ("pattern in parentheses", 1_000),
    ("pattern with conditions", 2_000),
    ("window with sums", 1_000),
]


@pytest.mark.parametrize(("kind", "count"), NESTS)
def test_deep_and_long_queries_are_taken_or_refused_in_bounded_time(kind: str, count: int) -> None:
    begin = time.process_time()
    take(nest(kind, count))
    assert time.process_time() - begin < 60


def test_long_chains_of_and_union_and_sums_are_taken() -> None:
    for kind in ("conditions", "UNION", "sums"):
        stream, view = parse_script(nest(kind, 1_000))
        assert (stream.name, view.name) == ("M", "V")


def test_what_is_nested_too_deeply_is_refused_in_one_sentence() -> None:
    with pytest.raises(LanguageError) as found:
        parse_script(nest("elements", 250))
    assert found.value.reason == (
        "The text is nested too deeply, or has too long a chain of operators or of views; divide it into several views."
    )


def test_a_text_of_more_than_a_million_characters_is_refused() -> None:
    with pytest.raises(LanguageError) as found:
        parse_script("-" * (MOST_CHARACTERS + 1))
    assert str(found.value) == "The text has 1,000,001 characters, and at most 1,000,000 are read; split it up."


def test_a_comment_of_almost_a_million_characters_is_read() -> None:
    assert [item.name for item in parse_script(f"/*{'x' * (MOST_CHARACTERS - 200)}*/{STREAM}")] == ["M"]


def test_a_statement_with_too_many_words_is_refused() -> None:
    with pytest.raises(LanguageError) as found:
        parse_script(f"{STREAM}CREATE VIEW V AS SELECT loss FROM M WHERE loss IN ({', '.join(['1'] * MOST_WORDS)})")
    assert found.value.reason == (
        "This statement has more than 20,000 words and signs; split it up, or put long lists of values into a table."
    )
    assert (found.value.line, found.value.column) == (2, 1)


def test_many_statements_are_read_together() -> None:
    views = "".join(f"CREATE VIEW v{i}x AS SELECT loss FROM M;\n" for i in range(2_000))
    begin = time.process_time()
    assert len(parse_script(STREAM + views)) == 2_001
    assert time.process_time() - begin < 60


def test_numbers_that_no_one_means_are_refused() -> None:
    sentences = {
        f"SELECT {'9' * 5_000} AS x FROM M[j]": "This number has 5,000 digits, and at most 100 are read.",
        f"SELECT 1 FROM M[j - {'9' * 20}]": f"{'9' * 20} is too large for a subscript; at most 15 digits are read.",
        f"SELECT 1 FROM M[j{'+1-1' * 30}]": "This subscript has 121 words and signs, and at most 100 are read.",
    }
    for query, sentence in sentences.items():
        with pytest.raises((LanguageError, SubscriptError)) as found:
            parse_script(
                f"{STREAM}CREATE VIEW V AS INITIALIZE V[i] AS SELECT 1 AS x FROM M[i] UPDATE V[j] AS {query} PARTITION LENGTH 60"
            )
        assert found.value.reason == sentence


def test_a_length_of_more_than_a_century_is_refused() -> None:
    with pytest.raises(LanguageError) as found:
        parse_script("CREATE STREAM M (ts TIMESTAMP ORDERED) PARTITION LENGTH '99999 days'")
    assert found.value.reason == "'99999 days' is too long a time; the longest is 36525 days, a century."


def test_an_error_shows_no_more_of_a_long_line_than_fits_a_screen() -> None:
    text = f"{STREAM}CREATE VIEW V AS SELECT {', '.join(['loss'] * 1_000)}, rand() AS r FROM M"
    with pytest.raises(LanguageError) as found:
        parse_script(text)
    first, second = found.value.excerpt.splitlines()
    assert len(first) < 250
    assert first[second.index("^") : second.rindex("^") + 1] == "rand()"
