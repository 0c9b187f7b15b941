"""Templates of format 2: a whole text keeps the kind of its value, inside a longer text the value becomes text."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.conditions import (
    ConditionError,
    ConditionLimitError,
    ConditionSyntaxError,
    ConditionTypeError,
    EvaluationScope,
    MissingPathError,
)
from tests.properties import examples
from workflows.kinds.template import expressions, fill_template

pytestmark = pytest.mark.unit

SCOPE = EvaluationScope(now=datetime(2026, 5, 4, 12, tzinfo=UTC), case_id="case-1", definition_id="def-1")
CONTEXT = {
    "input": {
        "order_ref": "o-1",
        "cents": 1250,
        "share": 0.25,
        "big": 1e22,
        "paid": True,
        "tags": ["a", "b"],
        "no": None,
    },
    "pay": {"receipt": {"ref": "r-1"}},
    "item": {"name": "{{input.cents}}"},
    "round": 2,
}


def filled(template: Any) -> Any:
    return fill_template(template, CONTEXT, SCOPE)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{input.cents}}", 1250),
        ("{{ input.cents * 2 }}", 2500),
        ("{{input.share}}", 0.25),
        ("{{input.paid}}", True),
        ("{{input.no}}", None),
        ("{{input.tags}}", ["a", "b"]),
        ("{{pay.receipt}}", {"ref": "r-1"}),
        ("{{input.cents > 1000}}", True),
        ("{{now()}}", "2026-05-04T12:00:00Z"),
        ("Order {{input.order_ref}}", "Order o-1"),
        ("{{input.order_ref}}-{{round}}", "o-1-2"),
        ("{{input.cents / 100}} EUR", "12.5 EUR"),
        ("{{input.cents * 2 / 100}} EUR", "25 EUR"),
        ("about {{input.big}}", "about 10000000000000000000000"),
        ("{{input.share - 0.25}}%", "0%"),
        ("paid: {{input.paid}}", "paid: true"),
        ('{{coalesce(pay.gone, "}} {{")}}', "}} {{"),
        ('{{"it\'s"}} here', "it's here"),
        ("one { brace }", "one { brace }"),
        ("{{{round}}}", "{2}"),
        ("", ""),
        (7, 7),
        (None, None),
        ({"a": ["{{round}}", {"b": "{{item.name}}!"}]}, {"a": [2, {"b": "{{input.cents}}!"}]}),
    ],
)
def test_a_template_is_filled(template: Any, expected: Any) -> None:
    found = filled(template)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("{{input.gone}}", MissingPathError),
        ("a {{input.gone}}", MissingPathError),
        ("a {{input.no}}", ConditionTypeError),
        ("a {{input.tags}}", ConditionTypeError),
        ("a {{pay.receipt}}", ConditionTypeError),
        ("{{input.cents + input.order_ref}}", ConditionTypeError),
        ("{{}}", ConditionSyntaxError),
        ("{{input.cents", ConditionSyntaxError),
        ("input.cents}}", ConditionSyntaxError),
        ("{{a}} {{", ConditionSyntaxError),
        ("{{'a}}", ConditionSyntaxError),
        ("x" * 2001, ConditionLimitError),
        ("{{input.order_ref}}" + "x" * 1024, ConditionLimitError),
    ],
)
def test_what_cannot_be_filled_is_an_error(template: Any, error: type[ConditionError]) -> None:
    with pytest.raises(error):
        filled({"field": [template]})


def test_the_expressions_of_a_template_have_a_place_and_say_if_they_are_the_whole_text() -> None:
    template = {"a": "{{x.y}}", "b": ["no", "{{ p }} and {{q + 1}}"], "c": 3}
    assert list(expressions(template)) == [
        (("a",), "x.y", True),
        (("b", 1), " p ", False),
        (("b", 1), "q + 1", False),
    ]


@examples(200)
@given(st.text(alphabet="{}ab'\"\\ .+1", max_size=30))
def test_any_text_is_filled_or_refused(text: str) -> None:
    try:
        assert isinstance(filled(text), str | int | float | bool)
        assert "{{" not in text or "}}" in text
    except ConditionError:
        assert "{{" in text or "}}" in text


@examples(100)
@given(st.text(max_size=50))
def test_a_filled_value_is_never_filled_again(value: str) -> None:
    context = {"input": {"a": "{{input.b}}" + value, "b": 1}}
    assert fill_template("{{input.a}}!", context, SCOPE) == "{{input.b}}" + value + "!"
