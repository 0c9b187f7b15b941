"""Every operator with every pair of kinds: what is answered, and what is refused."""

from itertools import product
from typing import Any

import pytest

from governance.conditions import ConditionError, ConditionTypeError
from tests.governance.conditions.support import evaluate

pytestmark = pytest.mark.unit

ORDERING = ("<", "<=", ">=", ">")
EQUALITY = ("==", "!=")
VALUES: dict[str, Any] = {
    "number": 1,
    "decimal": 1.0,
    "string": "1",
    "boolean": True,
    "array": [1],
    "object": {"k": 1},
    "null": None,
}
TRUE_ON_EQUAL = {"<=", "==", ">="}
NUMBERS = {"number", "decimal"}


def answered(symbol: str, left: str, right: str) -> bool:
    if symbol == "in":
        return left in NUMBERS and right == "array"
    if left in NUMBERS and right in NUMBERS:
        return True
    return left == right and (left == "string" or (left == "boolean" and symbol in EQUALITY))


@pytest.mark.parametrize(("symbol", "left", "right"), list(product((*ORDERING, *EQUALITY, "in"), VALUES, VALUES)))
def test_an_operator_answers_for_its_own_kinds_and_refuses_all_others(symbol: str, left: str, right: str) -> None:
    context = {"left": VALUES[left], "right": VALUES[right]}
    if answered(symbol, left, right):
        assert evaluate(f"left {symbol} right", context) is (symbol in TRUE_ON_EQUAL or symbol == "in")
    else:
        with pytest.raises(ConditionTypeError) as caught:
            evaluate(f"left {symbol} right", context)
        assert caught.value.code == "condition_type"
        assert caught.value.position == (1, 6)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("1 < 2", True),
        ("2 < 1", False),
        ("1 < 1.5", True),
        ("-1 < 0", True),
        ("-0.0 == 0", True),
        ("1e3 == 1000", True),
        ("9007199254740991 > 9007199254740990", True),
        ("2 <= 2", True),
        ("3 <= 2", False),
        ("2 >= 3", False),
        ("3 > 2", True),
        ("1 == 1.0", True),
        ("1 != 1.0", False),
        ("'a' < 'b'", True),
        ("'Z' < 'a'", True),
        ("'a' == \"a\"", True),
        ("'a' != 'b'", True),
        ("'é' == '\\u00e9'", True),
        ("'漢字' in ['漢字', '😀']", True),
        ("len('😀') == 1", True),
        ("true == false", False),
        ("true != false", True),
        ("1 in [1, 2]", True),
        ("1.0 in [1, 2]", True),
        ("3 in [1, 2]", False),
        ("true in [false]", False),
        ("'a' in []", False),
        ("len([]) == 0", True),
        ("len([1, [2, 3]]) == 2", True),
        ("(1 < 2) == (3 < 4)", True),
        ("coalesce(1, 2) == 1", True),
    ],
)
def test_an_expression_of_literals_has_this_answer(source: str, answer: bool) -> None:
    assert evaluate(source) is answer


@pytest.mark.parametrize(
    "source",
    [
        '1 < "2"',
        "1 == true",
        "true < false",
        "1 in [true]",
        "true in [1]",
        "1 in [1, 'a']",
        "1 in ['a', 1]",
        "'a' in 'abc'",
        "now() in ['2026-05-04T12:00:00Z']",
        "now() == 1",
        "[1] == [1]",
        "[] in [[]]",
        "1 && true",
        "true && 1",
        "false || 'x'",
        "!0",
        "!''",
        "len(1) == 1",
        "len(true) == 1",
        "sample(true)",
        "sample('0.5')",
        "1",
        "'true'",
        "now()",
        "len([])",
        "[true]",
        "coalesce(1, true)",
    ],
)
def test_a_kind_that_does_not_fit_is_refused_and_never_converted(source: str) -> None:
    with pytest.raises(ConditionTypeError):
        evaluate(source)


@pytest.mark.parametrize("items", [["x", 1], [1, "x"], ["x", None], ["x", ["x"]], ["x", True]])
def test_the_place_of_a_stray_item_in_an_array_makes_no_difference(items: list[Any]) -> None:
    with pytest.raises(ConditionTypeError):
        evaluate("'x' in a.items", {"a": {"items": items}})


def test_an_array_of_the_context_is_searched() -> None:
    context = {"a": {"items": ["x", "y"], "pair": ("x", "y")}}
    assert evaluate("'y' in a.items && 'x' in a.pair && !('z' in a.items)", context)


def test_an_array_may_be_built_from_paths() -> None:
    assert evaluate("'eu' in [a.first, a.second]", {"a": {"first": "us", "second": "eu"}})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(value: float) -> None:
    for source in ("a.x == a.x", "coalesce(a.x, 1) == 1", "1 in a.items", "sample(a.x)"):
        with pytest.raises(ConditionTypeError):
            evaluate(source, {"a": {"x": value, "items": [value]}})


def test_integers_too_large_for_a_double_are_compared_exactly() -> None:
    context = {"a": {"x": 10**400, "y": 10**400 + 1, "z": 2**53 + 1, "items": [10**400]}}
    assert evaluate("a.x < a.y && a.x > 1.5 && a.z != 9007199254740991 && a.x in a.items", context)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", 1j, type("Text", (str,), {})("x")])
def test_a_value_that_is_not_json_is_refused(value: object) -> None:
    for source in ("a.x == 'x'", "'x' in a.items", "len(a.x) == 1", "a.x"):
        with pytest.raises(ConditionTypeError):
            evaluate(source, {"a": {"x": value, "items": [value]}})


def test_a_refusal_never_repeats_a_value_of_the_context() -> None:
    secret = "patient 4711"
    context = {"a": {"x": secret, "items": [secret]}}
    for source in (
        "a.x < 1",
        "a.x && true",
        "!a.x",
        "a.x.y == 1",
        "1 in a.items",
        "sample(a.x)",
        "now() < a.x",
    ):
        with pytest.raises(ConditionError) as caught:
            evaluate(source, context)
        assert "4711" not in str(caught.value) + caught.value.render()
