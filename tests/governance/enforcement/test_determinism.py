"""Law 3: the same request and environment give the same decision: again, in any order, anywhere, after storage."""

import json
import multiprocessing
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.enforcement.rules import (
    Environment,
    Verdict,
    decision_document,
    environment_sha256,
    evaluate,
    request_sha256,
    results_from_document,
    storable_request,
)
from governance.ledger.rules.entry import canonical_bytes
from tests.governance.enforcement.generators import REQUEST_CHANGES, WORSE
from tests.governance.enforcement.support import RULES, as_bytes, changed, environment, policy, request
from tests.properties import examples, scaled

pytestmark = pytest.mark.unit

Case = tuple[dict[str, Any], dict[str, Any]]
STRENGTH = list(Verdict)


def generated(count: int, *, seed: int) -> list[Case]:
    """Requests of many kinds under worlds of many kinds; about half of them are not denied."""
    draw = random.Random(seed)
    cases = []
    for number in range(count):
        made: dict[str, Any] = {
            "envelope.idempotency_key": f"key-{number:06}",
            "envelope.patient_context_ref": f"ctx-{draw.randrange(200)}",
            "action.target_ref": draw.choice(["ticket/1", "ticket/2", "Jane Doe"] + ["ticket/3"] * 9),
            "action.operation": draw.choice(["ticket.update", "ticket.update", "ticket.close"]),
            "action.risk_tier": draw.choice(["low", "medium", "medium", "high"]),
            "metadata.priority": draw.choice([1, 2.0, 3.5, 5, 9]),
        }
        world: dict[str, Any] = draw.choice([{}, {}, {}, *WORSE])
        cases.append((made, world))
    return cases


def decide_all(cases: list[Case]) -> list[bytes]:
    """Rules with a draw, so that chance would show. Also runs in other processes, so it takes plain data only."""
    sampled = {"id": "drawn", "when": "sample(0.3)", "verdict": "deny", "reason_code": "drawn"}
    rules = {"policy": policy([sampled, *(rule for rule in RULES if rule["id"] != "bad")])}
    return [as_bytes(evaluate(changed(request(), made), environment(rules | world))) for made, world in cases]


def test_a_thousand_requests_are_decided_alike_twice_shuffled_and_in_other_processes() -> None:
    cases = generated(max(300, scaled(1_000)), seed=20_261_116)  # fewer would not have every verdict
    first = decide_all(cases)
    order = list(range(len(cases)))
    random.Random(7).shuffle(order)
    shuffled = decide_all([cases[place] for place in order])
    assert [first[place] for place in order] == shuffled
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        elsewhere = pool.map(decide_all, [cases, list(reversed(cases))])
    assert elsewhere[0] == first
    assert list(reversed(elsewhere[1])) == first
    verdicts = {json.loads(each)["verdict"] for each in first}
    assert verdicts == {"allow", "needs_approval", "deny"}


def reread(value: Any) -> Any:
    return json.loads(canonical_bytes(value))


@given(changes=REQUEST_CHANGES, worse=st.sampled_from([{}, *WORSE]))
@examples(200)
def test_what_is_stored_and_read_back_decides_the_same(changes: dict[str, Any], worse: dict[str, Any]) -> None:
    made, world = changed(request(), changes), environment(worse)
    decision = evaluate(made, world)
    stored = reread(storable_request(made, decision))
    read = Environment(reread(world.facts), reread(world.contract), reread(world.policy), reread(world.region))
    assert as_bytes(evaluate(stored, read)) == as_bytes(decision)
    assert request_sha256(stored) == request_sha256(storable_request(made, decision))
    assert environment_sha256(read.facts) == environment_sha256(world.facts)


@given(changes=REQUEST_CHANGES, worse=st.sampled_from([{}, *WORSE]))
@examples(100)
def test_a_decision_survives_its_document(changes: dict[str, Any], worse: dict[str, Any]) -> None:
    decision = evaluate(changed(request(), changes), environment(worse))
    document = json.loads(json.dumps(decision_document(decision)))
    assert results_from_document(document["results"]) == decision.results
    assert canonical_bytes(document) == as_bytes(decision)


@given(changes=REQUEST_CHANGES, first=st.sampled_from([{}, *WORSE]), second=st.sampled_from(WORSE))
@examples(200)
def test_making_the_world_worse_never_softens_the_verdict(
    changes: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    made = changed(request(), changes)
    before = evaluate(made, environment(first)).verdict
    after = evaluate(made, environment(first | second)).verdict
    assert STRENGTH.index(after) >= STRENGTH.index(before)
    assert after == Verdict.DENY


@given(
    verdicts=st.lists(st.sampled_from(["allow", "needs_approval", "deny"]), max_size=5),
    place=st.integers(0, 5),
    when=st.sampled_from(["true", "false", "metadata.priority > 1", "metadata.gone > 1"]),
)
@examples(200)
def test_a_deny_rule_added_anywhere_never_opens_anything(verdicts: list[str], place: int, when: str) -> None:
    hold = {"tier": "sa_qa", "approvals_required": 1, "expires_in_seconds": 60}
    rules: list[dict[str, Any]] = [
        {"id": f"r{number}", "when": f"metadata.priority < {number + 1}", "verdict": verdict, **hold}
        for number, verdict in enumerate(verdicts)
    ]
    added = [*rules[:place], {"id": "new", "when": when, "verdict": "deny"}, *rules[place:]]
    before = evaluate(request(), environment({"policy": policy(rules)}))
    after = evaluate(request(), environment({"policy": policy(added)}))
    assert STRENGTH.index(after.verdict) >= STRENGTH.index(before.verdict)


def test_the_order_of_keys_makes_no_difference() -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: backwards(value[key]) for key in reversed(value)}
        return value

    world, made = environment(), changed(request(), {"metadata.b b": 1, "metadata.a a": 2})
    turned = Environment(*map(backwards, (world.facts, world.contract, world.policy, world.region)))
    assert as_bytes(evaluate(backwards(made), turned)) == as_bytes(evaluate(made, world))


def test_the_environment_can_be_replaced_but_not_changed() -> None:
    world = environment()
    assert replace(world, policy=None).policy is None
    with pytest.raises(AttributeError):
        world.policy = None  # type: ignore[misc]
