"""Properties over generated trees, texts and contexts."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from governance.conditions import ConditionError, compile_condition, condition_parse
from governance.conditions.ast import Expression
from tests.governance.conditions.printer import format_expression
from tests.governance.conditions.support import (
    SCOPE,
    boolean_expressions,
    contexts,
    expressions,
    reference_outcome,
)
from tests.properties import examples

pytestmark = pytest.mark.unit

TOKENS = st.sampled_from(
    [
        *("a", "b.c", "in", "true", "false", "null", "len", "sample", "now", "coalesce", "lenn"),
        *("<", "<=", "==", "!=", ">=", ">", "&&", "||", "!", "(", ")", "[", "]", ",", ".", "-", "="),
        *("0", "-1", "0.5", "1e999", "01", "'x'", '"y"', "'", '"', "\\", "'\\u00e9'", "\n", "\t", " ", "é"),
    ]
)
soups = st.lists(TOKENS, max_size=40).flatmap(lambda parts: st.sampled_from(["".join(parts), " ".join(parts)]))


def outcome(source: str, context: dict[str, object]) -> bool | str:
    try:
        return compile_condition(source).evaluate(context, scope=SCOPE)
    except ConditionError as error:
        return error.code


@examples(300)
@given(expressions)
def test_printing_and_parsing_gives_the_same_tree(expression: Expression) -> None:
    text = format_expression(expression)
    assert condition_parse(text) == expression
    assert format_expression(condition_parse(text)) == text


@examples(300)
@given(st.one_of(st.text(max_size=60), st.text(alphabet=st.characters(), max_size=60), soups))
@example("\ud800")
@example("'\\")
@example("-")
def test_any_text_is_a_condition_or_a_condition_error(text: str) -> None:
    code = "read"
    try:
        assert condition_parse(format_expression(condition_parse(text))) == condition_parse(text)
    except ConditionError as error:
        code = error.code
    assert code in {"read", "condition_syntax", "condition_limit"}


@examples(400)
@given(expressions, contexts)
def test_any_expression_over_any_context_agrees_with_the_second_interpreter(
    expression: Expression, context: dict[str, object]
) -> None:
    assert outcome(format_expression(expression), context) == reference_outcome(expression, context)


@examples(400)
@given(boolean_expressions, contexts)
def test_short_circuits_agree_with_the_second_interpreter(expression: Expression, context: dict[str, object]) -> None:
    assert outcome(format_expression(expression), context) == reference_outcome(expression, context)


@examples(150)
@given(expressions, contexts)
def test_an_evaluation_can_be_repeated_and_leaves_the_context_alone(
    expression: Expression, context: dict[str, object]
) -> None:
    before = repr(context)
    source = format_expression(expression)
    assert outcome(source, context) == outcome(source, context)
    assert repr(context) == before


@examples(150)
@given(expressions, contexts)
def test_only_the_named_paths_matter(expression: Expression, context: dict[str, object]) -> None:
    condition = compile_condition(format_expression(expression))
    read = {path[0] for path in condition.paths}
    narrowed = {name: value for name, value in context.items() if name in read}
    assert outcome(condition.source, context) == outcome(condition.source, narrowed)
