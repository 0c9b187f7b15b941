"""Deny beats needs_approval beats allow; the first evaluator with the winning verdict gives the reason."""

import itertools
from typing import Any

import pytest

from governance.enforcement.rules import EVALUATORS, EvaluatorResult, Verdict, evaluate
from governance.enforcement.rules.precedence import winning
from tests.governance.enforcement.support import changed, environment, request

pytestmark = pytest.mark.unit

DENYING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "contract_open": ({}, {"facts.contract_state": "draft"}),
    "shutdown": ({}, {"facts.shutdowns": [{"id": "sd-1", "scope": "global"}]}),
    "envelope": ({"envelope.review_owner": None}, {}),
    "metadata_boundary": ({"metadata.colour": "blue"}, {}),
    "region": ({}, {"facts.deployment_region": "EU"}),
    "authorization": ({}, {"facts.caller.scopes": []}),
    "throttle": ({}, {"facts.throttle.status": "limited"}),
    "concurrency": ({}, {"facts.concurrency.status": "busy"}),
    "policy": ({"action.operation": "ticket.close"}, {}),
}
REASONS = {
    "contract_open": "attempt_creation_disabled",
    "shutdown": "shutdown_engaged",
    "envelope": "envelope_incomplete",
    "metadata_boundary": "metadata_boundary",
    "region": "residency_violation",
    "authorization": "not_authorized",
    "throttle": "rate_limited",
    "concurrency": "concurrency_limit",
    "policy": "too_final",
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(Verdict, repeat=2)))
@pytest.mark.parametrize("between", list(Verdict))
def test_the_stronger_of_each_pair_of_verdicts_wins(first: Verdict, second: Verdict, between: Verdict) -> None:
    results = [EvaluatorResult(name, each, name) for name, each in zip("abc", (first, between, second), strict=True)]
    strongest = max((first, between, second), key=list(Verdict).index)
    decisive = winning(results)
    assert decisive.verdict == strongest
    assert decisive is next(result for result in results if result.verdict == strongest)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(EVALUATORS, 2)))
def test_of_two_denials_the_earlier_evaluator_gives_the_reason_and_both_are_kept(first: str, second: str) -> None:
    request_changes = DENYING[first][0] | DENYING[second][0]
    world_changes = DENYING[first][1] | DENYING[second][1]
    decision = evaluate(changed(request(), request_changes), environment(world_changes))
    denied = {result.evaluator for result in decision.results if result.verdict == "deny"}
    assert (decision.verdict, decision.reason_code) == ("deny", REASONS[first])
    # Rules do not look at what the boundary refuses, so then `policy` denies too.
    assert denied - {"policy"} == {first, second} - {"policy"}
    assert second in denied


@pytest.mark.parametrize("evaluator", [name for name in EVALUATORS if name != "policy"])
def test_a_denial_beats_a_hold(evaluator: str) -> None:
    request_changes, world_changes = DENYING[evaluator]
    held = changed(request(), {"metadata.priority": 9} | request_changes)
    decision = evaluate(held, environment(world_changes))
    assert (decision.verdict, decision.reason_code) == ("deny", REASONS[evaluator])


def test_a_hold_beats_eight_allows() -> None:
    decision = evaluate(changed(request(), {"metadata.priority": 9}), environment())
    assert [result.verdict for result in decision.results] == ["allow"] * 8 + ["needs_approval"]
    assert (decision.verdict, decision.reason_code) == ("needs_approval", "review_required")


def test_nine_allows_are_an_allow_without_a_reason() -> None:
    decision = evaluate(request(), environment())
    assert (decision.verdict, decision.reason_code, decision.rule_id) == ("allow", None, "rest")
