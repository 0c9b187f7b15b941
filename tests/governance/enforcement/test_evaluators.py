"""Every evaluator with every verdict and reason code it can give, from one table; everything else in it stays good."""

from typing import Any

import pytest

from governance.enforcement.rules import EVALUATORS, Approval, Verdict, decision_document, evaluate
from reasoncodes.codes import EMITTED
from tests.governance.enforcement.support import (
    REMOVE,
    changed,
    environment,
    policy,
    region,
    request,
    result_of,
)

pytestmark = pytest.mark.unit

Row = tuple[str, str, str | None, dict[str, Any], dict[str, Any]]


def shutdown(scope: str, target: str | None, *, drill: bool = False) -> dict[str, Any]:
    return {"facts.shutdowns": [{"id": "sd-1", "scope": scope, "target": target, "drill": drill}]}


def rules(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"policy": policy([{"id": f"r{number}", "when": "true", **entry} for number, entry in enumerate(entries)])}


BOARD: dict[str, Any] = {
    "verdict": "needs_approval",
    "buckets": [{"tier": "sa_qa", "approvals_required": 2}, {"tier": "privacy", "approvals_required": 1}],
    "expires_in_seconds": 60,
}
HOLD: dict[str, Any] = {"verdict": "needs_approval", "tier": "sa_qa", "approvals_required": 2, "expires_in_seconds": 60}
ROWS: list[Row] = [
    # contract_open
    ("contract_open", "allow", None, {}, {}),
    ("contract_open", "deny", "attempt_creation_disabled", {}, {"facts.contract_state": "draft"}),
    ("contract_open", "deny", "attempt_creation_disabled", {}, {"facts.contract_state": None}),
    ("contract_open", "deny", "attempt_creation_disabled", {}, {"facts.contract_state": "ajar"}),
    ("contract_open", "deny", "attempt_creation_disabled", {}, {"contract": None}),
    ("contract_open", "deny", "contract_suspended", {}, {"facts.contract_state": "suspended"}),
    ("contract_open", "deny", "contract_retired", {}, {"facts.contract_state": "retired"}),
    ("contract_open", "deny", "enforcement_exception", {}, {"contract.format": "holdpoint-contract-v9"}),
    ("contract_open", "deny", "enforcement_exception", {}, {"facts.contract_sha256": "0" * 64}),
    # shutdown
    ("shutdown", "allow", None, {}, {}),
    ("shutdown", "allow", None, {}, shutdown("global", "*", drill=True)),
    ("shutdown", "allow", None, {}, shutdown("organization", "another")),
    ("shutdown", "allow", None, {}, shutdown("contract", "ticket-update/4")),
    ("shutdown", "allow", None, {}, shutdown("connector", "email")),
    ("shutdown", "allow", None, {}, shutdown("region", "EU")),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("global", None)),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("organization", "0197a3c2-6f00-7a11-8b22-3c4d5e6f7081")),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("organization", None)),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("contract", "ticket-update")),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("contract", "ticket-update/3")),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("connector", "http")),
    ("shutdown", "deny", "shutdown_engaged", {"action.connector": "Jane Doe"}, shutdown("connector", "email")),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("region", "US")),
    ("shutdown", "deny", "shutdown_engaged", {}, shutdown("planet", "earth")),
    ("shutdown", "deny", "shutdown_engaged", {}, {"facts.shutdowns": [{"id": "sd-2", "scope": "global"}]}),
    # envelope
    ("envelope", "allow", None, {}, {}),
    ("envelope", "allow", None, {"envelope.contract_version": 3}, {"contract.version": 3}),
    ("envelope", "allow", None, {"action.risk_tier": "medium"}, {}),
    ("envelope", "deny", "attempt_creation_disabled", {}, {"contract": None}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.review_owner": None}, {}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.idempotency_key": REMOVE}, {}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.tenant_ref": ""}, {}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.idempotency_key": "short"}, {}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.patient_context_ref": "ctx_42?"}, {}),
    (
        "envelope",
        "deny",
        "envelope_incomplete",
        {"envelope.request_trace_id": "trace-42"},
        {"contract.documents.attempt_identity_envelope.formats.request_trace_id.max_length": 7},
    ),
    ("envelope", "deny", "envelope_incomplete", {"envelope.workflow_slug": "ticket-close"}, {}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.contract_version": "4"}, {}),
    ("envelope", "deny", "envelope_incomplete", {"envelope.runtime_mode": None}, {}),
    ("envelope", "deny", "runtime_mode_not_allowed", {"envelope.runtime_mode": "client_driven"}, {}),
    ("envelope", "deny", "effect_mismatch", {"action.connector": "email"}, {}),
    ("envelope", "deny", "effect_mismatch", {"action.risk_tier": "high"}, {}),
    ("envelope", "deny", "enforcement_exception", {}, {"contract.documents.attempt_identity_envelope": {}}),
    # metadata_boundary
    ("metadata_boundary", "allow", None, {}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"metadata.ticket": "jane@example.org"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"metadata.colour": "blue"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"action.target_ref": "Jane Doe"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"action.payload_ref": "jane@example.org"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"action.operation": "call +1 202 555 0143"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"action.connector": "Jane Doe"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"action.target_ref": "broken \ud800"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"action.fields": ["status", "jane@example.org"]}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"envelope.patient_context_ref": "ssn-123-45-6789"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"envelope.idempotency_key": "4111111111111111"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"envelope.request_trace_id": "jane@example.org"}, {}),
    ("metadata_boundary", "deny", "metadata_boundary", {"metadata.ticket": "jane@example.org"}, {"contract": None}),
    ("metadata_boundary", "deny", "attempt_creation_disabled", {"metadata": {}}, {"contract": None}),
    (
        "metadata_boundary",
        "deny",
        "enforcement_exception",
        {},
        {"contract.documents.metadata_boundary": {"detectors": {"disabled": ["private_key"]}}},
    ),
    # region
    ("region", "allow", None, {}, {}),
    ("region", "deny", "region_unset", {}, {"facts.organization.regions": []}),
    ("region", "deny", "region_unset", {}, {"facts.organization.regions": ["XX"]}),
    ("region", "deny", "region_unset", {}, {"region": None}),
    ("region", "deny", "region_unset", {}, {"facts.organization.regions": ["US", "EU"]}),
    ("region", "deny", "attempt_creation_disabled", {}, {"contract": None}),
    (
        "region",
        "deny",
        "residency_violation",
        {},
        {"facts.organization.regions": ["KE"], "region": region("KE"), "facts.deployment_region": "KE"},
    ),
    ("region", "deny", "residency_violation", {}, {"facts.deployment_region": "EU"}),
    ("region", "deny", "residency_violation", {}, {"facts.deployment_region": None}),
    (
        "region",
        "deny",
        "residency_violation",
        {},
        {"facts.organization.regions": ["US", "EU"], "region": region("US", "EU")},
    ),
    ("region", "deny", "enforcement_exception", {}, {"region.terms.residency": "wherever"}),
    # authorization
    ("authorization", "allow", None, {}, {}),
    ("authorization", "deny", "not_authorized", {}, {"facts.caller.scopes": ["ledger:read"]}),
    ("authorization", "deny", "not_authorized", {}, {"facts.caller.status": "revoked"}),
    ("authorization", "deny", "not_authorized", {}, {"facts.organization.status": "suspended"}),
    ("authorization", "deny", "not_authorized", {}, {"facts.organization.id": "another"}),
    ("authorization", "deny", "not_authorized", {}, {"contract": None}),
    ("authorization", "deny", "misuse_suspended", {}, {"facts.caller.status": "suspended"}),
    ("authorization", "deny", "enforcement_exception", {}, {"contract.organization_id": 7}),
    # throttle
    ("throttle", "allow", None, {}, {}),
    ("throttle", "deny", "rate_limited", {}, {"facts.throttle.status": "limited"}),
    ("throttle", "deny", "misuse_suspended", {}, {"facts.throttle.status": "suspended"}),
    ("throttle", "deny", "throttle_unavailable", {}, {"facts.throttle.status": "unavailable"}),
    ("throttle", "deny", "throttle_unavailable", {}, {"facts.throttle.status": "fine"}),
    ("throttle", "deny", "throttle_unavailable", {}, {"facts.throttle.status": None}),
    ("throttle", "deny", "enforcement_exception", {}, {"facts.failures": {"throttle": "timeout"}}),
    # concurrency
    ("concurrency", "allow", None, {}, {}),
    ("concurrency", "allow", None, {}, {"facts.concurrency": {"status": "busy", "when_busy": "queue"}}),
    ("concurrency", "deny", "concurrency_limit", {}, {"facts.concurrency": {"status": "busy", "when_busy": "deny"}}),
    ("concurrency", "deny", "concurrency_limit", {}, {"facts.concurrency": {"status": "busy"}}),
    ("concurrency", "deny", "concurrency_limit", {}, {"facts.concurrency": {"status": "unavailable"}}),
    (
        "concurrency",
        "deny",
        "concurrency_limit",
        {},
        {"facts.concurrency": {"status": "unavailable", "when_busy": "queue"}},
    ),
    ("concurrency", "deny", "concurrency_limit", {}, {"facts.concurrency.status": "fine"}),
    ("concurrency", "deny", "enforcement_exception", {}, {"facts.failures": {"concurrency": "raised"}}),
    # policy
    ("policy", "allow", None, {}, {}),
    ("policy", "allow", None, {}, rules({"verdict": "allow", "reason_code": "ignored_here"})),
    ("policy", "allow", None, {}, rules({"verdict": "allow"}, {"verdict": "deny"})),
    ("policy", "needs_approval", "review_required", {"metadata.priority": 5}, {}),
    ("policy", "needs_approval", "second_look", {}, rules({**HOLD, "reason_code": "second_look"})),
    ("policy", "deny", "too_final", {"action.operation": "ticket.close"}, {}),
    ("policy", "deny", "policy_denied", {}, rules({"verdict": "deny"}, {"verdict": "allow"})),
    ("policy", "deny", "no_rule_matched", {}, rules({"when": "false", "verdict": "allow"})),
    ("policy", "deny", "no_rule_matched", {}, rules()),
    ("policy", "deny", "no_active_policy", {}, {"policy": None}),
    ("policy", "deny", "no_active_policy", {}, {"policy.slug": "another"}),
    ("policy", "deny", "attempt_creation_disabled", {}, {"contract": None}),
    ("policy", "deny", "metadata_boundary", {"metadata.colour": "blue"}, {}),
    ("policy", "deny", "enforcement_exception", {}, rules({"when": "metadata.gone > 1", "verdict": "allow"})),
    ("policy", "deny", "enforcement_exception", {}, rules({"when": "1 <", "verdict": "allow"})),
    ("policy", "deny", "enforcement_exception", {}, rules({"verdict": "needs_approval", "tier": "sa_qa"})),
    ("policy", "deny", "enforcement_exception", {}, {"facts.failures": {"metadata_boundary": "timeout"}}),
    # policy, several tiers: one form or the other, never both and never none
    ("policy", "needs_approval", "review_required", {}, rules(BOARD)),
    ("policy", "needs_approval", "review_required", {}, rules(BOARD | {"tier": None, "approvals_required": None})),
    ("policy", "needs_approval", "review_required", {}, rules(HOLD | {"buckets": None})),
    ("policy", "deny", "enforcement_exception", {}, rules(HOLD | BOARD)),
    ("policy", "deny", "enforcement_exception", {}, rules(BOARD | {"tier": "sa_qa"})),
    ("policy", "deny", "enforcement_exception", {}, rules(BOARD | {"buckets": []})),
    ("policy", "deny", "enforcement_exception", {}, rules(BOARD | {"buckets": [{"tier": "sa_qa"}]})),
    ("policy", "deny", "enforcement_exception", {}, rules(BOARD | {"expires_in_seconds": None})),
]


@pytest.mark.parametrize(("evaluator", "verdict", "reason", "request_changes", "world_changes"), ROWS)
def test_each_evaluator_gives_the_verdict_and_reason_of_the_table(
    evaluator: str, verdict: str, reason: str | None, request_changes: dict[str, Any], world_changes: dict[str, Any]
) -> None:
    decision = evaluate(changed(request(), request_changes), environment(world_changes))
    result = result_of(decision, evaluator)
    assert (result.verdict, result.reason_code) == (verdict, reason), result
    assert tuple(each.evaluator for each in decision.results) == EVALUATORS
    assert decision.verdict == max((each.verdict for each in decision.results), key=list(Verdict).index)
    assert result.explanation


def test_the_table_names_every_evaluator_with_both_answers() -> None:
    assert {(row[0], row[1]) for row in ROWS} == {
        *((name, verdict) for name in EVALUATORS for verdict in ("allow", "deny")),
        ("policy", "needs_approval"),
    }


def test_every_reason_that_is_not_from_a_rule_is_in_the_vocabulary() -> None:
    from_rules = {"too_final", "second_look"}
    reasons = {row[2] for row in ROWS if row[2]} - from_rules
    assert {("denial", reason) for reason in reasons} <= EMITTED


def test_a_hold_names_who_releases_it_and_the_rule() -> None:
    decision = evaluate(changed(request(), {"metadata.priority": 7}), environment())
    assert decision.approval == Approval("sa_qa", 2, 3600)
    assert decision.rule_id == "urgent"
    assert "Approvals needed: 2." in result_of(decision, "policy").explanation


def test_a_denial_for_another_reason_carries_no_approval() -> None:
    held = changed(request(), {"metadata.priority": 7})
    decision = evaluate(held, environment({"facts.throttle": {"status": "limited", "retry_after": 9}}))
    assert (decision.verdict, decision.reason_code) == ("deny", "rate_limited")
    assert decision.approval is None
    assert decision.retry_after == 9


def test_a_busy_place_says_when_to_come_back() -> None:
    busy = {"facts.concurrency": {"status": "busy", "busy": "context", "when_busy": "deny", "retry_after": 5}}
    decision = evaluate(request(), environment(busy))
    assert decision.retry_after == 5
    assert "Busy: context." in result_of(decision, "concurrency").explanation


def test_a_broken_condition_is_named_by_rule_and_code() -> None:
    decision = evaluate(request(), environment(rules({"when": "metadata.gone > 1", "verdict": "allow"})))
    inputs = result_of(decision, "policy").inputs
    assert (inputs["rule"], inputs["condition_error"]) == ("r0", "condition_missing_path")
    assert decision.failures == {}


def test_rules_read_the_documented_context() -> None:
    when = (
        'action.target_ref == "ticket/42" && metadata.ticket == "TKT-42" && envelope.runtime_mode == "active"'
        ' && caller.id == "svc-1" && "attempts:create" in caller.scopes && "US" in organization.regions'
        ' && len(organization.id) == 36 && contract.slug == "ticket-update" && contract.version == "3"'
        ' && contract.effect == "idempotent" && contract.risk_tier == "medium" && contract.adapter == "http"'
        ' && now() == "2026-11-16T09:30:00Z"'
    )
    assert evaluate(request(), environment(rules({"when": when, "verdict": "allow"}))).verdict == "allow"


@pytest.mark.parametrize("reference", ["ctx-42", "x" * 200, "x" * 201, None])
def test_sample_draws_the_same_for_the_same_context_or_target(reference: str | None) -> None:
    world = environment(
        {
            **rules({"when": "sample(0.5)", "verdict": "allow"}, {"verdict": "deny"}),
            "contract.documents.attempt_identity_envelope.formats.patient_context_ref.max_length": 256,
            "contract.documents.attempt_identity_envelope.required": ["workflow_slug"],
        }
    )
    made = changed(request(), {"envelope.patient_context_ref": reference})
    again = changed(made, {"envelope.request_trace_id": "another", "envelope.idempotency_key": "another-key"})
    verdicts = {result_of(evaluate(each, world), "policy").verdict for each in (made, again)}
    assert len(verdicts) == 1


def test_several_tiers_come_out_as_buckets_and_one_tier_as_it_always_did() -> None:
    board = evaluate(request(), environment(rules(BOARD)))
    document = decision_document(board)
    assert document["approval"] == {
        "tier": "sa_qa",
        "approvals_required": 3,
        "expires_in_seconds": 60,
        "buckets": BOARD["buckets"],
    }
    assert "2 of sa_qa, 1 of privacy." in result_of(board, "policy").explanation
    single = decision_document(evaluate(request(), environment(rules(HOLD))))
    assert single["approval"] == {"tier": "sa_qa", "approvals_required": 2, "expires_in_seconds": 60}
    assert set(single["results"][-1]["inputs"]) == {
        "policy",
        "version",
        "rule",
        "rules_evaluated",
        "tier",
        "approvals_required",
        "expires_in_seconds",
    }
