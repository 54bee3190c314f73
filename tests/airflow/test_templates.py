"""The subscript in Jinja templates."""

from __future__ import annotations

from typing import Any

import pytest
from jinja2.sandbox import SandboxedEnvironment

from airflow_provider_viewdf.errors import UsageError
from airflow_provider_viewdf.hooks.templates import add_subscripts


def render(text: str, subscript: int | None = None, **context: Any) -> str:
    return SandboxedEnvironment().from_string(text).render(add_subscripts(context, subscript))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("M[{{ j }}]", "M[__part__]"),
        ("V[{{ i - 1 }}]", "V[(__part__ - 1)]"),
        ("M[{{ j * 60 }} .. {{ 60 * j + 59 }}]", "M[(__part__ * 60) .. ((60 * __part__) + 59)]"),
        ("H[{{ j // 60 }}]", "H[(__part__ / 60)]"),
        ("H[{{ j / 60 }}]", "H[(__part__ / 60)]"),
        ("M[{{ j - params.W + 1 }} .. {{ j }}]", "M[((__part__ - 10) + 1) .. __part__]"),
        ("M[{{ j - W }}]", "M[(__part__ - 10)]"),
        ("{{ j % 7 }} {{ 5 - j }} {{ 1 + j }} {{ -j }}", "(__part__ % 7) (5 - __part__) (1 + __part__) (-__part__)"),
    ],
)
def test_a_definition_is_rendered_with_the_subscript_as_a_symbol(template: str, expected: str) -> None:
    assert render(template, params={"W": 10}) == expected


def test_one_part_is_rendered_with_its_number() -> None:
    assert render("M[{{ j - W }}]", 23668444, params={"W": 10}) == "M[23668434]"


def test_a_param_does_not_hide_what_the_context_has() -> None:
    assert render("{{ ds }}", ds="2015-01-01", params={"ds": "other"}) == "2015-01-01"


@pytest.mark.parametrize("template", ["{% if j > 5 %}x{% endif %}", "{{ j | int }}", "{{ '%d' % j }}", "{{ j == 3 }}"])
def test_a_template_that_asks_for_the_value_of_the_subscript_is_refused(template: str) -> None:
    with pytest.raises(UsageError) as error:
        render(template)

    assert str(error.value) == (
        "In a template, i and j stand for whichever part is computed and have no value of their own: "
        "calculate with + - * / % only, and leave comparisons to the SQL."
    )


def test_params_are_put_into_a_script_if_they_are_numbers_names_times_lengths_or_paths() -> None:
    template = "{{ number }} {{ name }} {{ time }} {{ length }} {{ path }} {{ params.name }}"
    params = {"number": 60, "name": "Helper_2", "time": "2015-01-01 10:00:00+00:00", "length": "10 minutes"}
    params["path"] = "s3a://lake/dt=2015-01-01/in.csv"
    assert render(template, params=params) == (
        "60 Helper_2 2015-01-01 10:00:00+00:00 10 minutes s3a://lake/dt=2015-01-01/in.csv Helper_2"
    )


@pytest.mark.parametrize(
    "text",
    ["1; DROP VIEW V", "x' OR '1'='1", "1 -- and no more", "M[j]", "a\nb", "`x`", "x\\", "f(1)", "x OR y", "1 OR 1"],
)
def test_a_param_that_could_be_more_than_a_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as found:
        render("SELECT {{ W }}", params={"W": text})
    assert str(found.value) == (
        f"The param {text!r} cannot be put into a script by its bare name: only numbers, names, times, lengths and paths can. "
        "If those who start runs may write SQL, take it from params: {{ params.name }}."
    )
    for template in (
        "{{ W | upper }}",
        "{{ W | title }}",
        "{{ W + '' }}",
        "{{ W | first }}",
        "{{ W[:9] }}",
        "{{ W.strip() }}",
        "{{ '%s' % W }}",
    ):
        with pytest.raises(UsageError):
            render(template, params={"W": text})
    for params in ({"W": [text]}, {"W": {text: 1}}, {"W": {"x": [text]}}):
        with pytest.raises(UsageError):
            render("SELECT {{ W }}", params=params)
    assert render("{% if W == 'x' %}1{% else %}2{% endif %}", params={"W": text}) == "2"
    assert render("SELECT 1", params={"W": text}) == "SELECT 1"
    assert render("{{ params.W }}", params={"W": text}) == text
