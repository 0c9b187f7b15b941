"""The form of a task: its fields, what a page posts, and that the check agrees with the schema. Pure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.boundary.rules.forms import EMPTY_FORM, form_fields, form_problems, form_read, shown_value, values_shown
from governance.boundary.rules.schema import compile_schema

pytestmark = pytest.mark.unit

FORM: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["cause", "days"],
    "properties": {
        "cause": {"enum": ["damaged", "late", 3]},
        "days": {"type": "integer", "minimum": 0, "maximum": 2000},
        "share": {"type": "number", "maximum": 1},
        "checked": {"type": "boolean"},
        "since": {"type": "string", "format": "date"},
        "ref": {"type": "string", "pattern": "^[a-z]+-[0-9]+$", "maxLength": 12},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 3000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=9),
)


def test_required_fields_come_first_and_each_has_the_kind_that_a_page_needs() -> None:
    assert [(field.name, field.kind, field.required) for field in form_fields(FORM)] == [
        ("cause", "choice", True),
        ("days", "integer", True),
        ("checked", "boolean", False),
        ("ref", "text", False),
        ("share", "number", False),
        ("since", "date", False),
        ("tags", "choices", False),
    ]
    assert form_fields(EMPTY_FORM) == ()


@given(given_form=st.dictionaries(st.sampled_from([*FORM["properties"], "more"]), VALUES | st.lists(st.just("a"))))
def test_there_is_a_problem_exactly_if_the_schema_says_so_and_none_repeats_a_value(given_form: dict[str, Any]) -> None:
    found = form_problems(FORM, given_form)
    assert bool(found) == (not compile_schema(FORM).is_valid(given_form))
    assert all(problem.field in {"", *FORM["properties"]} for problem in found)


def test_what_a_page_posts_gets_the_types_of_the_form() -> None:
    posted = {
        "cause": ["3"],
        "days": [" 12 "],
        "share": ["0.5"],
        "checked": ["no"],
        "since": ["2026-11-01"],
        "ref": ["ab-1"],
        "tags": ["a", "b"],
    }
    read = form_read(FORM, posted)
    assert read == {
        "cause": 3,
        "days": 12,
        "share": 0.5,
        "checked": False,
        "since": "2026-11-01",
        "ref": "ab-1",
        "tags": ["a", "b"],
    }
    assert form_problems(FORM, read) == []
    assert form_read(FORM, {"cause": [""], "more": ["x"]}) == {}
    wrong = form_read(FORM, {"days": ["many"], "checked": ["perhaps"]})
    assert [(one.field, one.rule) for one in form_problems(FORM, wrong)] == [
        ("cause", "required"),
        ("checked", "type"),
        ("days", "type"),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(True, "yes"), (12345, "12,345"), ("2026-11-01", "1 Nov 2026"), ("x-1", "x-1"), (None, "none")]
)
def test_values_are_shown_as_people_read_them(value: Any, text: str) -> None:
    assert shown_value(value) == text


def test_cents_and_their_currency_are_one_amount() -> None:
    assert [
        (fact.label, fact.text) for fact in values_shown({"amount_cents": 5, "currency": "EUR", "order": "o-1"})
    ] == [
        ("Amount", "0.05 EUR"),
        ("Order", "o-1"),
    ]
    # Yen have no cents: nothing is guessed.
    plain = [(fact.label, fact.text) for fact in values_shown({"amount_cents": 500, "currency": "JPY"})]
    assert plain == [("Amount cents", "500"), ("Currency", "JPY")]
