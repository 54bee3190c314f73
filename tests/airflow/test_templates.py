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
