"""A condition that cannot be read says where and, when it can, what was probably meant."""

import pickle

import pytest

from governance.conditions import ConditionError, ConditionSyntaxError, MissingPathError, condition_parse
from tests.governance.conditions.support import evaluate

pytestmark = pytest.mark.unit


def refusal(source: str) -> ConditionSyntaxError:
    with pytest.raises(ConditionSyntaxError) as caught:
        condition_parse(source)
    assert caught.value.code == "condition_syntax"
    return caught.value


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("", 1, 1, "empty"),
        (" \n ", 1, 1, "empty"),
        ("a <", 1, 4, "expected a value but found the end"),
        ("a < \n", 1, 4, "expected a value but found the end"),
        ("a b", 1, 3, "expected an operator or the end but found 'b'"),
        ("a\n&& b\n|| || c", 3, 4, "expected a value but found '||'"),
        ("a &&\r\n  b c", 2, 5, "found 'c'"),
        ("(a", 1, 3, "found the end"),
        ("a)", 1, 2, "found ')'"),
        ("[1,]", 1, 4, "found ']'"),
        ("a = 1", 1, 3, "write == to compare"),
        ("a === 1", 1, 5, "write == to compare"),
        ("a & b", 1, 3, "write && for and"),
        ("a | b", 1, 3, "write || for or"),
        ("a and b", 1, 3, "write && for and"),
        ("a or b", 1, 3, "write || for or"),
        ("not a", 1, 5, "write ! for not"),
        ("a == null", 1, 6, "there is no null"),
        ("a + 1 > 2", 1, 3, "there is no arithmetic"),
        ("a -1 > 2", 1, 3, "there is no arithmetic"),
        ("ai-review.x > 2", 1, 3, "names have no hyphens"),
        ("a[0] == 1", 1, 2, "picked by index"),
        ("a . b", 1, 3, "without spaces"),
        ("a.b. c", 1, 4, "without spaces"),
        ("a == 'open", 1, 6, "not closed"),
        ("a == 'open\n'", 1, 6, "not closed"),
        ("a == 'x\\q'", 1, 8, "unknown escape"),
        ("a == '\\ud83d'", 1, 7, "surrogate"),
        ("a == '\\u12'", 1, 7, "unknown escape"),
        ("é == 1", 1, 1, "U+00E9"),
        ("a == '\u202e'", 1, 7, "U+202E"),
        ("a == '\ud800'", 1, 7, "U+D800"),
        ("a\x00", 1, 2, "U+0000"),
        ("true.x", 1, 1, "reserved word"),
        ("len.x == 1", 1, 1, "len is a helper"),
        ("a == now", 1, 6, "now is a helper"),
        ("len()", 1, 1, "len takes one argument, not 0"),
        ("len(a, b)", 1, 1, "len takes one argument, not 2"),
        ("now(1)", 1, 1, "now takes no arguments, not 1"),
        ("a && coalesce(b)", 1, 6, "coalesce takes two arguments, not 1"),
        ("lenght(a) > 1", 1, 1, "did you mean 'len'?"),
        ("a && colaesce(a, 1)", 1, 6, "did you mean 'coalesce'?"),
        ("SAMPLE(1)", 1, 1, "did you mean 'sample'?"),
        ("eval(a)", 1, 1, "unknown helper 'eval'"),
        ("a.b.c(1)", 1, 1, "unknown helper 'a.b.c'"),
        ("01 == 1", 1, 2, "found a number"),
        ("1. == 1", 1, 2, "unexpected character '.'"),
        ("a inside b", 1, 3, "found 'inside'"),
        ("a; b", 1, 2, "unexpected character ';'"),
        ("{} == 1", 1, 1, "there are no objects"),
        ("a ? b : c", 1, 3, "no conditional operator"),
        ("a == 'x' 'secret text'", 1, 10, "found a string"),
    ],
)
def test_the_place_and_the_likely_cause_are_named(source: str, line: int, column: int, words: str) -> None:
    error = refusal(source)
    assert words in error.message
    assert (error.line, error.column) == (line, column)


def test_rendering_shows_the_line_with_a_caret_under_the_column() -> None:
    error = refusal("a.b > 1 &&\n\tlenn(c) == 2")
    assert error.render().split("\n") == [
        "unknown helper 'lenn'; did you mean 'len'? (line 2, column 2)",
        "\tlenn(c) == 2",
        "\t^",
    ]


def test_rendering_points_behind_the_last_character_when_something_is_missing() -> None:
    assert refusal("a <").render().endswith("\na <\n   ^")


def test_an_error_of_the_evaluation_can_be_rendered_too() -> None:
    with pytest.raises(ConditionError) as caught:
        evaluate("true &&\n  a.x < 'y'", {"a": {"x": 1}})
    assert caught.value.render().endswith("\n  a.x < 'y'\n      ^")


def test_an_error_without_a_place_renders_as_its_message() -> None:
    with pytest.raises(ConditionError) as caught:
        condition_parse("x" * 2001)
    assert caught.value.render() == caught.value.message
    assert (caught.value.line, caught.value.column) == (None, None)


@pytest.mark.parametrize("source", [None, 1, b"true", ["true"]])
def test_a_condition_that_is_no_text_is_refused(source: object) -> None:
    with pytest.raises(ConditionSyntaxError):
        condition_parse(source)  # type: ignore[arg-type]
    with pytest.raises(ConditionSyntaxError):
        evaluate(source)  # type: ignore[arg-type]


def test_reserved_words_may_follow_a_dot() -> None:
    assert evaluate("a.in && a.true && a.len.null", {"a": {"in": True, "true": True, "len": {"null": True}}})


def test_words_that_begin_like_reserved_ones_are_paths() -> None:
    assert evaluate(
        "inside && trueish && nowhere && lens", dict.fromkeys(("inside", "trueish", "nowhere", "lens"), True)
    )


def test_errors_survive_pickling_with_all_they_know() -> None:
    with pytest.raises(MissingPathError) as caught:
        evaluate("a.gone")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (type(copy), copy.path, copy.render()) == (MissingPathError, ("a", "gone"), caught.value.render())
