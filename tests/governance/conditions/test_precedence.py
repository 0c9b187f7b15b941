"""How an expression is grouped, and that the parentheses one would add change nothing."""

import pytest

from governance.conditions import ConditionSyntaxError, MissingPathError, condition_parse
from tests.governance.conditions.printer import format_expression
from tests.governance.conditions.support import evaluate

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("source", "grouped"),
    [
        ("a || b && c", "a || (b && c)"),
        ("a && b || c", "(a && b) || c"),
        ("!a && b", "(!a) && b"),
        ("!a == b", "(!a) == b"),
        ("!a in b", "(!a) in b"),
        ("a < b && c >= d", "(a < b) && (c >= d)"),
        ("a == b || c != d", "(a == b) || (c != d)"),
        ("a in b || c", "(a in b) || c"),
        ("!!a", "!(!a)"),
        ("a<-1", "a < (-1)"),
        ("((a))", "a"),
    ],
)
def test_operators_bind_not_then_comparison_then_and_then_or(source: str, grouped: str) -> None:
    assert condition_parse(source) == condition_parse(grouped)


@pytest.mark.parametrize(
    ("one", "other"),
    [("!(a == b)", "!a == b"), ("(a || b) && c", "a || b && c"), ("(a && b) && c", "a && b && c")],
)
def test_parentheses_that_change_the_tree_are_not_lost(one: str, other: str) -> None:
    assert condition_parse(one) != condition_parse(other)
    assert format_expression(condition_parse(one)) == one


@pytest.mark.parametrize("source", ["a < b < c", "a == b == c", "a in b in c", "1 < a <= 2 && true"])
def test_comparisons_do_not_chain(source: str) -> None:
    with pytest.raises(ConditionSyntaxError, match="do not chain"):
        condition_parse(source)


def test_the_second_comparison_of_a_chain_is_pointed_at() -> None:
    with pytest.raises(ConditionSyntaxError) as caught:
        condition_parse("a < b < c")
    assert (caught.value.line, caught.value.column) == (1, 7)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("false && gone.x", False),
        ("true || gone.x", True),
        ("false && 1", False),
        ("true || 'x'", True),
        ("true && false && gone.x", False),
        ("false || true || gone.x", True),
        ("(false && gone.x) || true", True),
    ],
)
def test_what_cannot_change_the_answer_is_not_evaluated(source: str, answer: bool) -> None:
    assert evaluate(source) is answer


@pytest.mark.parametrize("source", ["gone.x && false", "gone.x || true", "true && gone.x", "false || gone.x"])
def test_evaluation_goes_from_left_to_right(source: str) -> None:
    with pytest.raises(MissingPathError):
        evaluate(source)


@pytest.mark.parametrize(
    ("source", "canonical"),
    [
        ("a<0.70", "a < 0.7"),
        ("a=='it\\'s'", 'a == "it\'s"'),
        ("a in['x',\"y\"]", 'a in ["x", "y"]'),
        ("  !( a&&b )\n|| c ", "!(a && b) || c"),
        ("coalesce( a.b,0 )>=1e2", "coalesce(a.b, 0) >= 100.0"),
        ("a == '\\u202e\\n'", 'a == "\\u202e\\n"'),
    ],
)
def test_the_canonical_form_has_one_spelling(source: str, canonical: str) -> None:
    assert format_expression(condition_parse(source)) == canonical
    assert format_expression(condition_parse(canonical)) == canonical
