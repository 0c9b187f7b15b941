"""What is known about a condition before it runs."""

import threading

import pytest

from governance.conditions import compile_condition
from governance.conditions.ast import NumberLiteral, Path, StringLiteral
from governance.conditions.errors import ConditionError
from tests.governance.conditions.printer import format_expression
from tests.governance.conditions.support import SCOPE

pytestmark = pytest.mark.unit


def names(paths: frozenset[tuple[str, ...]]) -> set[str]:
    return {".".join(path) for path in paths}


@pytest.mark.parametrize(
    ("source", "read", "required"),
    [
        ("true", set(), set()),
        ("ai_review.confidence < 0.7", {"ai_review.confidence"}, {"ai_review.confidence"}),
        ("false && a.x", {"a.x"}, {"a.x"}),
        ("a.x in [b.y, c]", {"a.x", "b.y", "c"}, {"a.x", "b.y", "c"}),
        ("coalesce(a.x, b.y) > len(c.z)", {"a.x", "b.y", "c.z"}, {"b.y", "c.z"}),
        ("coalesce(coalesce(a, b), c)", {"a", "b", "c"}, {"c"}),
        ("coalesce(len(a), 1) == 1", {"a"}, {"a"}),
        ("coalesce(a, 1) == a", {"a"}, {"a"}),
    ],
)
def test_the_paths_read_and_those_that_must_exist_are_known(source: str, read: set[str], required: set[str]) -> None:
    condition = compile_condition(source)
    assert names(condition.paths) == read
    assert names(condition.required_paths) == required


@pytest.mark.parametrize(
    ("source", "sample", "now"),
    [("a", False, False), ("sample(0.1) && a", True, False), ("coalesce(a, now()) < b", False, True)],
)
def test_the_use_of_sample_and_now_is_known(source: str, sample: bool, now: bool) -> None:
    condition = compile_condition(source)
    assert (condition.uses_sample, condition.uses_now) == (sample, now)
    assert condition.source == source


@pytest.mark.parametrize(
    "expression",
    [
        Path(()),
        Path(("true",)),
        Path(("a b",)),
        Path(("a", "")),
        Path(("a\n",)),
        NumberLiteral(float("nan")),
        NumberLiteral(float("inf")),
        StringLiteral("\ud800"),
    ],
)
def test_a_tree_that_has_no_source_is_not_printed(expression: Path | NumberLiteral | StringLiteral) -> None:
    with pytest.raises(ConditionError):
        format_expression(expression)


def test_trees_are_equal_wherever_they_were_written() -> None:
    assert compile_condition("a<1").expression == compile_condition("\n  a  <  1").expression
    assert hash(compile_condition("a<1").expression) == hash(compile_condition(" a < 1").expression)


def test_true_and_one_are_different_trees() -> None:
    assert compile_condition("a == true").expression != compile_condition("a == 1").expression


def test_one_condition_serves_many_threads() -> None:
    condition = compile_condition("a.x in a.items && sample(1)")
    answers: list[bool] = []

    def work(number: int) -> None:
        context = {"a": {"x": number, "items": list(range(8))}}
        answers.extend(condition.evaluate(context, scope=SCOPE) is (number < 8) for _ in range(200))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 7, 8, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 800
    assert all(answers)
