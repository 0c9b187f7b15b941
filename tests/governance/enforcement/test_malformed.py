"""Anything of the wrong shape is a denial: never an exception, never a pass, and never repeated."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.enforcement.rules import Environment, Verdict, evaluate, request_problems, storable_request
from tests.governance.enforcement.generators import JSON, PATHS
from tests.governance.enforcement.support import REMOVE, as_bytes, changed, environment, request
from tests.properties import examples

pytestmark = pytest.mark.unit

MALFORMED: list[Any] = [
    None,
    [],
    "text",
    {},
    {"format": "holdpoint-request-v1"},
    changed(request(), {"format": "holdpoint-request-v2"}),
    changed(request(), {"envelope": []}),
    changed(request(), {"envelope.colour": "blue"}),
    changed(request(), {"envelope.tenant_ref": 7}),
    changed(request(), {"envelope.tenant_ref": "two words"}),
    changed(request(), {"envelope.runtime_mode": "As I Like"}),
    changed(request(), {"envelope.contract_version": True}),
    changed(request(), {"envelope.contract_version": 2.5}),
    changed(request(), {"action": None}),
    changed(request(), {"action.effect": "none"}),
    changed(request(), {"action.connector": None}),
    changed(request(), {"action.operation": REMOVE}),
    changed(request(), {"action.risk_tier": "extreme"}),
    changed(request(), {"action.payload_sha256": "AB" * 32}),
    changed(request(), {"action.fields": "status"}),
    changed(request(), {"action.fields": ["f"] * 101}),
    changed(request(), {"action.target_ref": "x" * 1025}),
    changed(request(), {"metadata": REMOVE}),
    changed(request(), {"metadata": [1]}),
    changed(request(), {"extra": 1}),
    changed(request(), {"withheld": [{"pointer": "/metadata", "rule": "email"}]}),
    changed(request(), {"metadata": REMOVE, "withheld": [{"pointer": "/metadata"}]}),
    changed(request(), {"metadata": REMOVE, "withheld": []}),
    {1: 2},
    {"format": "holdpoint-request-v1", "malformed": []},
]


@pytest.mark.parametrize("made", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_request_is_invalid_input_and_stays_so_when_stored(made: Any) -> None:
    decision = evaluate(made, environment())
    assert (decision.verdict, decision.reason_code) == ("deny", "invalid_input")
    assert decision.results[0].inputs["problems"] == request_problems(made) != []
    stored = storable_request(made, decision)
    assert set(stored) == {"format", "malformed"}
    assert as_bytes(evaluate(stored, environment())) == as_bytes(decision)


def test_problems_name_places_but_neither_values_nor_unknown_keys() -> None:
    made = changed(request(), {"action.risk_tier": "Jane Doe"})
    made["envelope"]["jane@example.org"] = 1
    decision = evaluate(made, environment())
    assert request_problems(made) == [
        {"pointer": "/action/risk_tier", "rule": "allowed_value"},
        {"pointer": "/envelope", "rule": "unknown_field"},
    ]
    assert b"ane" not in as_bytes(decision)
    assert "ane" not in decision.results[0].explanation


def test_a_request_nested_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert evaluate({**request(), "action": deep}, environment()).reason_code == "invalid_input"
    decision = evaluate({**request(), "metadata": {"ticket": deep}}, environment())
    assert decision.reason_code == "metadata_boundary"


@pytest.mark.parametrize(
    "change",
    [
        {"facts.at": "2026-11-16"},
        {"facts.at": "2026-13-16T00:00:00Z"},
        {"facts.format": "holdpoint-environment-v2"},
        {"facts.organization": REMOVE},
        {"facts.caller.scopes": "attempts:create"},
        {"facts.shutdowns": None},
        {"facts.shutdown": []},
        {"facts.throttle": None},
        {"facts.throttle.retry_after": -1},
        {"facts.failures": {"nobody": "raised"}},
        {"facts.failures": {"policy": "slow"}},
    ],
)
def test_malformed_facts_are_a_denial_that_blames_enforcement_not_the_caller(change: dict[str, Any]) -> None:
    decision = evaluate(request(), environment(change))
    assert (decision.verdict, decision.reason_code) == ("deny", "enforcement_exception")
    assert decision.results[0].evaluator == "environment_shape"


@given(JSON, JSON, JSON, JSON, JSON)
@examples(150)
def test_no_json_whatsoever_makes_it_raise_or_pass(
    made: Any, facts: Any, contract: Any, policy: Any, region: Any
) -> None:
    for world in (Environment(facts, contract, policy, region), environment()):
        assert evaluate(made, world).verdict == Verdict.DENY
    good = environment()
    for world in (
        Environment(facts, good.contract, good.policy, good.region),
        Environment(good.facts, contract, policy, region),
    ):
        assert evaluate(request(), world).verdict == Verdict.DENY


@given(path=st.sampled_from(PATHS), value=JSON, rehash=st.booleans())
@examples(300)
def test_any_value_in_any_place_of_the_world_is_decided_without_an_exception(
    path: str, value: Any, rehash: bool
) -> None:
    good = environment()
    parts = {"facts": good.facts, "contract": good.contract, "policy": good.policy, "region": good.region}
    spoiled = Environment(**changed(parts, {path: value}))
    if rehash and not path.startswith("facts."):
        try:
            spoiled = environment({path: value})
        except ValueError:  # not canonical JSON, so it cannot be named by a hash
            return
    decision = evaluate(request(), spoiled)
    assert decision.verdict in Verdict
    if not rehash and path.split(".")[0] in ("contract", "policy", "region") and spoiled != good:
        assert decision.verdict == Verdict.DENY
