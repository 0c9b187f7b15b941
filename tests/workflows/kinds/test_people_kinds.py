"""The kinds of format 2 for people: what they bind, and what an answer that does not fit becomes. Pure."""

from typing import Any

import pytest

from workflows.kinds.assign_reviewer import KIND as ASSIGN
from workflows.kinds.base import bound_kind, output_problems, params_problems
from workflows.kinds.human_task import KIND as TASK
from workflows.kinds.manual_intervention import KIND as PAUSE

pytestmark = pytest.mark.unit

FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["cause"],
    "properties": {"cause": {"enum": ["a"]}},
}
PARAMS: dict[str, Any] = {"tier": "finance", "title": "Release", "form": FORM, "outcomes": ["approve", "reject"]}


def test_a_task_has_its_own_outcomes_output_and_time() -> None:
    bound = bound_kind(TASK, PARAMS | {"expires_seconds": 60})
    assert bound.outcomes == ("on_approve", "on_reject", "on_expired")
    assert (bound.timeout_outcome, bound.default_timeout_seconds) == ("on_expired", 60)
    assert bound.answer is not None
    said = bound.answer(PARAMS, {"outcome": "approve", "reviewer": "r" * 64, "form": {"cause": "a"}})
    assert (said.outcome, output_problems(bound, said.output)) == ("on_approve", [])
    for wrong in ({"outcome": "other", "reviewer": "r"}, {"outcome": "approve", "reviewer": "r", "form": {}}):
        assert output_problems(bound, bound.answer(PARAMS, wrong).output)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcomes": ["expired"]},
        {"form": FORM | {"properties": {"outcome": {"type": "boolean"}}}},
        {"form": FORM | {"properties": {"reviewer": {"type": "boolean"}}}},
    ],
)
def test_names_that_mean_something_else_cannot_be_bound(changes: dict[str, Any]) -> None:
    assert bound_kind(TASK, PARAMS | changes) is TASK


@pytest.mark.parametrize(
    ("kind", "params", "pointer"),
    [
        (TASK, {"outcomes": []}, "/outcomes"),
        (TASK, {"outcomes": ["a", "a"]}, "/outcomes"),
        (TASK, {"approvals": 0}, "/approvals"),
        (TASK, {"tier": "The Finance Team"}, "/tier"),
        (PAUSE, {"reason_code": "Some words"}, "/reason_code"),
        (ASSIGN, {"rule": "by_name"}, "/rule"),
        (ASSIGN, {"rule": {"same_as": "a", "not": "b"}}, "/rule"),
    ],
)
def test_params_that_do_not_fit_are_refused_by_place(kind: Any, params: dict[str, Any], pointer: str) -> None:
    assert pointer in {problem.pointer for problem in params_problems(kind, PARAMS | params)}


def test_an_answer_that_a_manual_intervention_does_not_have_drifts() -> None:
    assert PAUSE.answer is not None
    good = PAUSE.answer({}, {"outcome": "halt", "reviewer": "r-1"})
    assert (good.outcome, good.output, output_problems(PAUSE, good.output)) == ("on_halt", {"decided_by": "r-1"}, [])
    assert output_problems(PAUSE, PAUSE.answer({}, {"outcome": "approve", "reviewer": "r-1"}).output)
