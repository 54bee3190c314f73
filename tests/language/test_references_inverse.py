"""The inverse of a parsed reference, against looking at every part."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airflow_provider_viewdf.definitions import PartReference
from airflow_provider_viewdf.errors import SubscriptError
from airflow_provider_viewdf.language import parse_script
from airflow_provider_viewdf.parts import PartRange

SCRIPT = """
CREATE STREAM M (ts TIMESTAMP ORDERED, x INT) PARTITION LENGTH 60;
CREATE VIEW V AS INITIALIZE V[i] AS SELECT x FROM M[i] UPDATE V[j] AS SELECT x FROM M[{0}] PARTITION LENGTH 60
"""

SMALL = st.integers(1, 7).map(str)

EXPRESSIONS = st.recursive(
    st.one_of(st.just("j"), st.just("__part__"), st.integers(0, 9).map(str)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from("*/%"), SMALL).map(lambda t: f"({t[0]}) {t[1]} {t[2]}"),
        inner.map(lambda t: f"-({t})"),
    ),
    max_leaves=5,
)


def parse_reference(subscript: str) -> PartReference:
    """The reference, or no example if such a one is refused."""
    try:
        view = parse_script(SCRIPT.format(subscript))[1]
    except SubscriptError:
        assume(False)
    assert view.update is not None
    return view.update.references[0]


def evaluate(text: str, j: int) -> int:
    """Python's integers divide and take remainders as subscripts do."""
    result = eval(text.replace("/", "//").replace("__part__", "j"), {"j": j})
    assert isinstance(result, int)
    return result


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, st.integers(0, 5), st.integers(-30, 30), st.integers(0, 4))
def test_read_by_is_the_exact_inverse_of_reads(low: str, width: int, first: int, more: int) -> None:
    reference = parse_reference(f"{low} .. {low} + {width}")
    read = PartRange(first, first + more)
    span = range(-400, 401)
    expected = [
        j for j in span if evaluate(low, j) <= read.high and evaluate(low, j) + width >= read.low
    ]  # fmt: skip
    found = reference.read_by(read)
    actual = [j for j in span if found is not None and j in found]
    assert actual == expected


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, st.integers(-1000, 1000))
def test_a_parsed_subscript_has_the_value_that_arithmetic_gives_it(text: str, j: int) -> None:
    reference = parse_reference(text)
    assert reference.reads(j) == PartRange(evaluate(text, j), evaluate(text, j))
    assert evaluate(str(reference.low), j) == evaluate(text, j)
