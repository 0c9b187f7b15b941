"""S1, execution attempt readiness: one test per sentence. A docstring begins with the part of the source; what follows
its dash says what the constitution decides instead, where it does."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Slot
from attempts.lifecycle.states import ATTEMPT_MOVES, AttemptState
from governance.contracts.errors import NotAnOwner, ReadinessIncomplete
from governance.contracts.models import ReadinessDecision
from governance.contracts.rules.documents import (
    AREAS,
    ENVELOPE_FIELDS,
    OWNER_GROUPS,
    STATES,
    default_documents,
    validate_documents,
)
from governance.contracts.services.contracts import contract_open
from governance.contracts.services.readiness import readiness_decide
from governance.contracts.states import ReadinessVerdict
from governance.ledger.models import LedgerEntry
from governance.regions.rules import load_profiles
from reasoncodes.base.tenancy import every_tenant
from tests.conformance.story import Story
from tests.governed import AT, HOLD, approve, make_contract, make_policy

URL = "/api/v1/execution/allow/1/attempts"
ENVELOPE = "attempt_identity_envelope"


def draft(story: Story, *, but: str = "", slug: str = "draft") -> Any:
    """A contract whose areas are all approved but one."""
    make_policy(story.cast, slug=f"policy-{slug}")
    made = make_contract(story.cast, slug=slug, policy_slug=f"policy-{slug}")
    approve(story.cast, made, *(area.name for area in AREAS if area.name != but))
    return made


def opened(story: Story, contract: Any) -> Any:
    actor = story.cast.actor(story.cast.operator, [story.cast.organization])
    with every_tenant():
        return contract_open(actor=actor, at=AT, contract_id=contract.id)


def problems(**changes: dict[str, Any]) -> set[str]:
    found = default_documents()
    for area, change in changes.items():
        found[area] |= change
    return {problem.pointer for problem in validate_documents(found, effect="once")}


def use(story: Story, **change: Any) -> str:
    """A contract of its own whose idempotency policy is changed; its slug."""
    story.contract("keys", changes={"idempotency_key_policy": change})
    return "keys"


# Deny by default


def test_no_attempt_is_created_before_every_area_is_approved(story: Story) -> None:
    """S1, active replacement"""
    draft(story, but="retry_and_replay")
    before = story.counts()
    answer = story.ask("draft")
    assert (answer.status_code, story.kind(answer)) == (403, "attempt-creation-disabled")
    assert story.counts() == before


@pytest.mark.parametrize("area", [area.name for area in AREAS])
def test_a_contract_that_lacks_one_approval_cannot_be_opened(story: Story, area: str) -> None:
    """S1, active replacement"""
    made = draft(story, but=area)
    with pytest.raises(ReadinessIncomplete):
        opened(story, made)


def test_an_unknown_route_is_denied_like_a_closed_one(story: Story) -> None:
    """S1, active replacement"""
    assert story.kind(story.ask("nothing-here")) == "attempt-creation-disabled"


def test_the_denial_says_that_attempt_creation_is_disabled(story: Story) -> None:
    """S1, active replacement"""
    assert story.ask("nothing-here").json()["reason_code"] == "attempt_creation_disabled"


def test_an_approval_that_is_taken_back_closes_the_route_at_once(story: Story) -> None:
    """S1, active replacement"""
    approve(story.cast, story.contracts["allow"], "metadata_boundary", verdict=ReadinessVerdict.REVOKE)
    assert story.kind(story.ask()) == "attempt-creation-disabled"


def test_governed_execution_may_begin_when_all_ten_are_approved(story: Story) -> None:
    """S1, active replacement"""
    made = draft(story)
    opened(story, made)
    assert story.ask("draft").status_code == 201


# Attempt lifecycle


def test_a_future_execution_request_enters_as_received(story: Story) -> None:
    """S1, lifecycle: received"""
    assert story.actions(story.asked())[0] == "attempt.received"


def test_preflight_reaches_no_connector(story: Story) -> None:
    """S1, lifecycle: received"""
    for slug in ("allow", "hold"):
        assert story.intents(story.asked(slug)) == 0


def test_preflight_has_no_effect_that_a_receipt_would_tell(story: Story) -> None:
    """S1, lifecycle: received"""
    assert story.receipts(story.asked("hold")) == []


def test_a_request_with_an_unused_key_is_new(story: Story) -> None:
    """S1, lifecycle: deduplicated"""
    assert "deduplicated" in story.states(story.asked())


def test_a_request_that_was_made_before_is_replayed(story: Story) -> None:
    """S1, lifecycle: deduplicated"""
    body = story.body()
    first, again = (story.ask(key="key-same-0001", payload=body) for _ in range(2))
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]


def test_a_key_that_means_another_request_is_conflicting(story: Story) -> None:
    """S1, lifecycle: deduplicated"""
    story.ask(key="key-same-0001")
    assert story.kind(story.ask(key="key-same-0001")) == "idempotency-conflict"


def test_a_key_past_its_time_is_expired(story: Story, time_machine: Any) -> None:
    """S1, lifecycle: deduplicated"""
    body = story.body()
    story.ask(key="key-same-0001", payload=body)
    time_machine.move_to(story.now() + timedelta(days=2), tick=True)
    answer = story.ask(key="key-same-0001", payload=body)
    assert (answer.status_code, story.kind(answer)) == (410, "idempotency-key-expired")


def test_a_key_of_the_wrong_shape_is_rejected(story: Story) -> None:
    """S1, lifecycle: deduplicated"""
    assert story.kind(story.ask(key="short")) == "idempotency-key-invalid"


def test_a_closed_route_denies_before_it_reads_the_body(story: Story) -> None:
    """S1, lifecycle: preflight-denied"""
    answer = story.caller.generic("POST", "/api/v1/execution/none/1/attempts", b"{" * 900, "application/json")
    assert story.kind(answer) == "attempt-creation-disabled"


def test_a_closed_route_denies_before_anything_is_persisted(story: Story) -> None:
    """S1, lifecycle: preflight-denied"""
    before = story.counts()
    story.ask("none")
    assert story.counts() == before


def test_an_open_route_records_its_denial(story: Story) -> None:
    """S1, lifecycle: preflight-denied — S2 asks for one record once enforcement was reached: under an open contract the
    denial is an attempt in this state, with its decision."""
    answer = story.ask("deny")
    assert story.attempt(answer.json()["attempt_id"]).state == "preflight-denied"


def test_a_human_review_gate_holds_the_action_before_execution(story: Story) -> None:
    """S1, lifecycle: review-required"""
    held = story.asked("hold")
    assert story.attempt(held).state == "review-required"
    assert story.act(held, "lease").status_code == 409


@pytest.mark.parametrize("operation", ["case.refund"])
def test_the_policy_says_which_actions_a_person_must_release(story: Story, operation: str) -> None:
    """S1, lifecycle: review-required"""
    assert story.ask("named", action={"operation": operation}).status_code == 202
    assert story.ask("named", action={"operation": "case.close"}).status_code == 201


def test_an_approved_attempt_can_enter_execution(story: Story) -> None:
    """S1, lifecycle: approved-for-execution"""
    held = story.asked("hold")
    assert story.decide(held).status_code == 200
    assert story.attempt(held).state == "approved-for-execution"
    assert story.lease(held)


def test_an_attempt_that_is_not_approved_cannot_enter_execution(story: Story) -> None:
    """S1, lifecycle: approved-for-execution"""
    denied = story.ask("deny").json()["attempt_id"]
    assert story.act(denied, "lease").status_code == 409


def test_an_attempt_of_an_unauthenticated_caller_does_not_exist(story: Story) -> None:
    """S1, lifecycle: approved-for-execution"""
    before = story.counts()
    answer = story.cast.with_key("hp_unknown_key_0000000000").post(URL, story.body(), format="json")
    assert answer.status_code == 401
    assert story.counts() == before


def test_an_attempt_of_an_unauthorized_caller_does_not_exist(story: Story) -> None:
    """S1, lifecycle: approved-for-execution"""
    before = story.counts()
    assert story.kind(story.ask(client=story.cast.api("ledger:read"))) == "scope-missing"
    assert story.counts()[0] == before[0]


def test_an_approved_attempt_is_persisted_before_the_caller_knows_of_it(story: Story) -> None:
    """S1, lifecycle: approved-for-execution"""
    assert story.attempt(story.ask().json()["id"]).state == "approved-for-execution"


def test_an_approved_attempt_is_traceable(story: Story) -> None:
    """S1, lifecycle: approved-for-execution"""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    asked = story.asked(headers={"HTTP_TRACEPARENT": f"00-{trace}-00f067aa0ba902b7-01"})
    assert story.attempt(asked).request_trace_id == trace


def test_completion_is_linked_to_the_audit(story: Story) -> None:
    """S1, lifecycle: completed"""
    asked = story.asked()
    story.complete(asked)
    assert story.actions(asked)[-1] == "attempt.completed"


def test_the_audit_of_a_completion_cannot_be_changed(story: Story) -> None:
    """S1, lifecycle: completed"""
    from django.db import DatabaseError, transaction

    asked = story.asked()
    story.complete(asked)
    with every_tenant(), pytest.raises(DatabaseError), transaction.atomic():
        LedgerEntry.objects.filter(subject_id=asked).update(action="attempt.denied")


def test_completion_has_evidence_of_its_result(story: Story) -> None:
    """S1, lifecycle: completed"""
    asked = story.asked()
    story.complete(asked, response_metadata={"reference": "r-77"})
    (receipt,) = story.receipts(asked)
    assert (receipt.outcome, receipt.response_metadata) == ("success", {"reference": "r-77"})


def test_completion_keeps_the_reviewers_state(story: Story) -> None:
    """S1, lifecycle: completed"""
    held = story.asked("hold")
    story.decide(held)
    story.complete(held)
    assert story.review(held).status == "approved"


def test_completion_without_a_receipt_is_impossible(story: Story) -> None:
    """S1, lifecycle: completed"""
    assert story.act(story.asked(), "complete", lease_token="1", response_metadata={}).status_code == 409


def test_a_failure_is_routed_to_quarantine(story: Story) -> None:
    """S1, lifecycle: failed-quarantined"""
    case = story.failed()
    assert story.attempt(case.attempt_id).state == "failed-quarantined"


def test_a_quarantined_failure_is_retried_only_when_a_person_says_so(story: Story) -> None:
    """S1, lifecycle: failed-quarantined"""
    case = story.failed()
    story.ticks()
    assert story.follow_ups(case, "retry_of") == []
    answer = story.case(case, "authorize-retry", finding="did_not_happen")
    assert answer.status_code == 201, answer.content
    assert story.follow_ups(case, "retry_of") == [UUID(answer.json()["id"])]


def test_a_failure_can_be_linked_to_an_incident(story: Story) -> None:
    """S1, lifecycle: failed-quarantined"""
    case = story.failed()
    assert story.case(case, "link-incident", incident_ref="INC-2026-0017").status_code == 200


def test_a_failure_is_not_replayed_silently(story: Story) -> None:
    """S1, lifecycle: failed-quarantined"""
    case = story.failed()
    story.ticks()
    answer = story.replay(case.attempt_id)
    assert (answer.status_code, story.kind(answer)) == (409, "not-eligible")
    assert story.follow_ups(case, "retry_of") == []


# Attempt identity envelope


@pytest.mark.parametrize("name", ENVELOPE_FIELDS)
def test_an_attempt_has_its(story: Story, name: str) -> None:
    """S1, attempt identity envelope"""
    identity = story.read(story.asked())["identity"]
    assert identity[name]


def test_the_ten_fields_are_those_of_the_source() -> None:
    """S1, attempt identity envelope"""
    assert len(ENVELOPE_FIELDS) == 10


def test_a_required_field_that_is_missing_denies_the_attempt_and_is_named(story: Story) -> None:
    """S1, attempt identity envelope"""
    story.contract("about-a-patient", changes={ENVELOPE: {"required": list(ENVELOPE_FIELDS)}})
    body = story.body()
    del body["patient_context_ref"]
    answer = story.ask("about-a-patient", payload=body)
    assert answer.json()["reason_code"] == "envelope_incomplete"
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/patient_context_ref"]


# Idempotency key policy


def test_how_keys_are_generated_is_approved(story: Story) -> None:
    """S1, idempotency key policy"""
    slug = use(story, key={"min_length": 8, "max_length": 64, "charset": "hex"})
    assert story.kind(story.ask(slug, key="not-hexadecimal-1")) == "idempotency-key-invalid"
    assert story.ask(slug, key="0123456789abcdef").status_code == 201


def test_keys_are_unique_in_the_tenant_where_that_is_approved(story: Story) -> None:
    """S1, idempotency key policy"""
    slug = use(story, scope="tenant")
    story.ask(slug, key="key-same-0001")
    assert story.kind(story.ask(key="key-same-0001")) == "idempotency-conflict"


def test_keys_are_unique_per_contract_where_that_is_approved(story: Story) -> None:
    """S1, idempotency key policy"""
    slug = use(story, scope="contract")
    story.ask(slug, key="key-same-0001")
    assert story.ask(key="key-same-0001").status_code == 201


def test_keys_are_unique_per_caller_where_that_is_approved(story: Story) -> None:
    """S1, idempotency key policy"""
    slug = use(story, scope="caller")
    story.ask(slug, key="key-same-0001")
    assert story.ask(slug, key="key-same-0001", client=story.cast.api("attempts:create")).status_code == 201


def test_how_long_a_key_lives_is_approved(story: Story) -> None:
    """S1, idempotency key policy"""
    story.ask(use(story, ttl_seconds=7200), key="key-same-0001")
    with every_tenant():
        record = IdempotencyRecord.objects.get(key="key-same-0001")
    assert record.expires_at - record.first_used_at == timedelta(seconds=7200)


def test_a_replay_gets_the_stored_response(story: Story) -> None:
    """S1, idempotency key policy"""
    body = story.body()
    first, again = (story.ask(key="key-same-0001", payload=body) for _ in range(2))
    assert (again.status_code, again.content) == (first.status_code, first.content)


def test_a_conflict_names_what_differs_and_no_value(story: Story) -> None:
    """S1, idempotency key policy"""
    story.ask(key="key-same-0001")
    answer = story.ask(key="key-same-0001", action={"target_ref": "case-other-77"})
    assert answer.status_code == 422
    assert "/action" in {error["pointer"] for error in answer.json()["errors"]}
    assert "case-other-77" not in answer.content.decode()


def test_an_expired_key_may_be_new_again_where_that_is_approved(story: Story, time_machine: Any) -> None:
    """S1, idempotency key policy"""
    slug = use(story, on_expired="new")
    story.complete(story.asked(slug, key="key-same-0001"))
    time_machine.move_to(story.now() + timedelta(days=2), tick=True)
    assert story.ask(slug, key="key-same-0001").status_code == 201


def test_the_required_client_headers_are_approved(story: Story) -> None:
    """S1, idempotency key policy"""
    slug = use(story, required_headers=["Idempotency-Key", "X-Request-ID"])
    assert story.kind(story.ask(slug)) == "invalid-input"
    assert story.ask(slug, headers={"HTTP_X_REQUEST_ID": "req-1"}).status_code == 201


def test_a_route_can_require_the_key_itself(story: Story) -> None:
    """S1, idempotency key policy"""
    assert story.kind(story.ask(key=None)) == "idempotency-key-missing"


# Attempt state machine


def test_the_lifecycle_has_exactly_the_seven_reference_states() -> None:
    """S1, attempt state machine"""
    assert [state.value for state in AttemptState] == [
        "received",
        "deduplicated",
        "preflight-denied",
        "review-required",
        "approved-for-execution",
        "completed",
        "failed-quarantined",
    ]


def test_every_state_but_the_first_is_reached_from_another() -> None:
    """S1, attempt state machine"""
    assert {to for _, to in ATTEMPT_MOVES} == set(STATES) - {"received"}


def test_an_approval_cannot_add_a_state() -> None:
    """S1, attempt state machine"""
    assert problems(attempt_state_machine={"states": [*STATES, "paused"]})


def test_what_ended_never_moves_again() -> None:
    """S1, attempt state machine"""
    assert not {start for start, _ in ATTEMPT_MOVES} & {"completed", "failed-quarantined", "preflight-denied"}


# Durable attempt store


def test_the_identity_of_an_attempt_is_stored(story: Story) -> None:
    """S1, durable attempt store"""
    asked = story.asked()
    assert story.read(asked)["identity"]["idempotency_key"] == story.attempt(asked).idempotency_key
    assert story.attempt(asked).workflow_slug == "allow"


def test_the_idempotency_record_is_stored(story: Story) -> None:
    """S1, durable attempt store"""
    asked = story.asked(key="key-same-0001")
    with every_tenant():
        assert IdempotencyRecord.objects.get(key="key-same-0001").attempt_id == asked


def test_every_state_transition_is_stored(story: Story) -> None:
    """S1, durable attempt store"""
    held = story.asked("hold")
    story.decide(held)
    assert story.states(held) == ["deduplicated", "review-required", "approved-for-execution"]


def test_the_review_state_is_stored(story: Story) -> None:
    """S1, durable attempt store"""
    assert story.review(story.asked("hold")).status == "requested"


def test_trace_references_are_stored(story: Story) -> None:
    """S1, durable attempt store"""
    assert len(story.attempt(story.asked()).request_trace_id) == 32


def test_retry_counters_are_stored(story: Story) -> None:
    """S1, durable attempt store"""
    asked = story.asked()
    story.lease(asked)
    assert story.attempt(asked).tries == 1


def test_the_audit_linkage_is_stored(story: Story) -> None:
    """S1, durable attempt store"""
    asked = story.asked()
    assert story.attempt(asked).decision_id == story.decision(asked).id
    assert story.actions(asked)


# Concurrency and locks


@pytest.mark.parametrize(
    ("limit", "change"),
    [
        ("per_workflow", {}),
        ("per_tenant", {}),
        ("per_context", {"patient_context_ref": "ctx-shared"}),
    ],
)
def test_a_full_cap_refuses_the_next_attempt(story: Story, limit: str, change: dict[str, Any]) -> None:
    """S1, concurrency and lock model"""
    limits = default_documents()["concurrency_and_locks"]["limits"] | dict.fromkeys(
        ("per_context", "per_workflow", "per_tenant"), None
    )
    story.contract("capped", changes={"concurrency_and_locks": {"limits": limits | {limit: 1}}})
    assert story.ask("capped", **change).status_code == 201
    answer = story.ask("capped", **change)
    assert (answer.status_code, answer.json()["reason_code"]) == (429, "concurrency_limit")


def test_a_key_is_used_by_one_attempt_at_a_time(story: Story, time_machine: Any) -> None:
    """S1, concurrency and lock model"""
    slug = use(story, on_expired="new")
    first = story.asked(slug, key="key-same-0001")
    time_machine.move_to(story.now() + timedelta(days=2), tick=True)
    refused = story.ask(slug, key="key-same-0001")
    assert (refused.status_code, refused.json()["errors"][0]["rule"]) == (429, "per_key")
    with every_tenant():
        Slot.objects.filter(attempt_id=first).delete()
    assert story.ask(slug, key="key-same-0001").status_code == 201


def test_a_slot_is_free_again_when_the_attempt_has_ended(story: Story) -> None:
    """S1, concurrency and lock model"""
    asked = story.asked()
    story.complete(asked)
    with every_tenant():
        assert not Slot.objects.filter(attempt_id=asked).exists()


def test_locks_are_taken_before_the_attempt_exists(story: Story) -> None:
    """S1, concurrency and lock model"""
    limits = default_documents()["concurrency_and_locks"]["limits"] | {"per_workflow": 1, "per_context": None}
    story.contract("capped", changes={"concurrency_and_locks": {"limits": limits}})
    first = story.asked("capped")
    with every_tenant():
        assert Slot.objects.get(workflow_slug="capped").attempt_id == first
    # Without a slot it was never released, not even for a moment.
    refused = story.ask("capped").json()["attempt_id"]
    assert story.states(refused) == ["deduplicated", "preflight-denied"]


# Retry and replay policy


def test_retry_windows_are_approved() -> None:
    """S1, retry and replay policy"""
    assert problems(retry_and_replay={"window_seconds": 0})


def test_only_eligible_attempts_can_be_replayed(story: Story) -> None:
    """S1, retry and replay policy"""
    replay = {"eligible_states": ["preflight-denied"], "requires_role": None}
    story.contract("again", changes={"retry_and_replay": {"replay": replay}})
    asked = story.asked("again")
    refused = story.replay(asked)
    assert (refused.status_code, story.kind(refused)) == (409, "not-eligible")
    assert story.act(asked, "cancel", client=story.caller).status_code == 200
    answer = story.replay(asked)
    assert (answer.status_code, story.attempt(answer.json()["id"]).retry_of_id) == (201, asked)


def test_a_response_is_reused_deterministically(story: Story) -> None:
    """S1, retry and replay policy"""
    body = story.body()
    assert len({story.ask("hold", key="key-same-0001", payload=body).content for _ in range(3)}) == 1


def test_a_held_caller_is_told_when_to_look_again(story: Story) -> None:
    """S1, retry and replay policy"""
    story.contract("patient", rules=HOLD, changes={"retry_and_replay": {"retry_after_seconds": 77}})
    assert story.ask("patient").headers["Retry-After"] == "77"


def test_operators_see_the_history_of_retries(story: Story) -> None:
    """S1, retry and replay policy"""
    asked = story.asked()
    story.fail(asked)
    told = [row["action"] for row in story.read(asked, "timeline")]
    assert {"attempt.leased", "attempt.quarantined"} <= set(told)


# Failure quarantine and compensation


def test_a_failure_has_one_of_the_approved_categories(story: Story) -> None:
    """S1, failure quarantine and compensation"""
    assert story.failed().category == "adapter_failure"


def test_an_executor_cannot_report_a_category_that_is_not_approved(story: Story) -> None:
    """S1, failure quarantine and compensation"""
    asked = story.asked()
    assert story.fail(asked, category="something_else").status_code == 400


def test_what_triggers_quarantine_is_approved(story: Story) -> None:
    """S1, failure quarantine and compensation"""
    triggers = [{"on": "adapter_reported_failure", "category": "invalid_response"}]
    assert not problems(failure_quarantine={"triggers": default_documents()["failure_quarantine"]["triggers"]})
    assert problems(failure_quarantine={"triggers": [triggers[0] | {"on": "weather"}]})


def test_compensation_is_a_new_attempt_that_a_person_authorizes(story: Story) -> None:
    """S1, failure quarantine and compensation — S2 allows no compensation by itself, so a person starts it."""
    story.contract("undoable", changes={"failure_quarantine": {"compensation_contract": "allow/1"}})
    case = story.failed("undoable")
    story.ticks()
    assert story.follow_ups(case, "compensates") == []
    answer = story.case(case, "compensate", finding="happened")
    assert answer.status_code == 201, answer.content
    assert story.follow_ups(case, "compensates") == [UUID(answer.json()["id"])]
    assert story.attempt(case.attempt_id).state == "failed-quarantined"


def test_a_failure_has_an_escalation_owner(story: Story) -> None:
    """S1, failure quarantine and compensation"""
    case = story.failed()
    assert case.escalation_owner == "trust-operations"
    assert case.escalate_at > case.opened_at


def test_a_contract_can_require_an_incident(story: Story) -> None:
    """S1, failure quarantine and compensation"""
    story.contract("grave", changes={"failure_quarantine": {"incident_required": True}})
    case = story.failed("grave")
    said = {"finding": "did_not_happen", "evidence_ref": "ev-1"}
    refused = story.case(case, "accept", **said)
    assert (refused.status_code, story.kind(refused)) == (409, "incident-needed")
    story.case(case, "link-incident", incident_ref="INC-2026-0017")
    assert story.case(case, "accept", **said).status_code == 200


def test_a_blocked_action_stays_listed_until_it_is_resolved(story: Story) -> None:
    """S1, failure quarantine and compensation"""
    case = story.failed()

    def blocked() -> dict[str, Any]:
        rows = story.operator.get("/api/v1/quarantine-cases?resolved=false").json()["results"]
        return {row["id"]: row["blocked_action"]["operation"] for row in rows}

    story.ticks()
    assert blocked()[str(case.id)] == "case.close"
    assert story.case(case, "accept", finding="did_not_happen").status_code == 200
    assert str(case.id) not in blocked()


# Rate-limit handoff and misuse throttles


@pytest.mark.parametrize("per", ["tenant", "user", "service", "workflow", "context", "region"])
def test_requests_are_throttled_per(story: Story, per: str) -> None:
    """S1, rate-limit handoff and misuse throttles"""
    limits = [
        row | {"limit": 1 if row["per"] == per else 100_000}
        for row in default_documents()["throttles_and_misuse"]["limits"]
    ]
    slug = f"few-{per}"
    story.contract(slug, changes={"throttles_and_misuse": {"limits": limits}})
    # What the tenant, its people and services asked for under other contracts counts too: the first may be over it.
    *_, last = (story.ask(slug, patient_context_ref=f"ctx-{per}") for _ in range(2))
    assert (last.status_code, last.json()["reason_code"]) == (429, "rate_limited")
    assert per in last.json()["errors"][0]["rule"]


def test_a_throttled_caller_is_told_when_to_try_again(story: Story) -> None:
    """S1, rate-limit handoff and misuse throttles"""
    limits = [row | {"limit": 1} for row in default_documents()["throttles_and_misuse"]["limits"]]
    story.contract("few", changes={"throttles_and_misuse": {"limits": limits}})
    story.ask("few")
    assert int(story.ask("few").headers["Retry-After"]) >= 1


def test_misuse_suspends_the_caller(story: Story) -> None:
    """S1, rate-limit handoff and misuse throttles"""
    misuse = default_documents()["throttles_and_misuse"]["misuse"] | {"strikes": 1}
    story.contract("strict", changes={"throttles_and_misuse": {"misuse": misuse}})
    client = story.cast.api("attempts:create")
    assert story.ask("strict", client=client).status_code == 201
    story.ask("strict", client=client, payload={"action": 7})
    answer = story.ask("strict", client=client)
    assert (answer.status_code, answer.json()["reason_code"]) == (403, "misuse_suspended")


def test_a_shutdown_refuses_attempts_before_they_are_accepted(story: Story) -> None:
    """S1, rate-limit handoff and misuse throttles"""
    fields = {"scope": "contract", "target": "allow", "reason_code": "operator_shutdown", "note": "planned"}
    engaged = story.cast.fresh(story.operator).post("/api/v1/shutdowns", fields, format="json")
    assert engaged.status_code == 201, engaged.content
    assert story.ask().json()["reason_code"] == "shutdown_engaged"


# Metadata-only body boundary


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("a request body", '{"order": {"id": 7}}'),
        ("health data of a person", "MRN 0049921"),
        ("clinical free text", "severe chest pain"),
        ("a connector payload", "PID|1||0049921||DOE^JANE"),
        ("a secret", "password=hunter22"),
        ("an insurance identifier", "1EG4-TE5-MK73"),
    ],
)
def test_no_attempt_record_holds(story: Story, what: str, value: str) -> None:
    """S1, metadata-only body boundary"""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"source": {"type": "string", "maxLength": 80}},
    }
    story.contract("noted", changes={"metadata_boundary": {"schema": schema}})
    answer = story.ask("noted", metadata={"source": value})
    assert (answer.status_code, story.kind(answer)) == (422, "metadata-boundary"), what
    assert value not in answer.content.decode()
    assert story.attempt(answer.json()["attempt_id"]).metadata == {}


def test_a_denial_keeps_no_body(story: Story) -> None:
    """S1, metadata-only body boundary"""
    answer = story.ask(metadata={"unlisted": "zx81marker"})
    assert "zx81marker" not in str(vars(story.attempt(answer.json()["attempt_id"])))


# Regional attempt compliance

REGIONS = ("US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU")


@pytest.mark.parametrize("code", REGIONS)
def test_retention_is_mapped_for(code: str) -> None:
    """S1, regional attempt compliance"""
    assert load_profiles().get(code).terms.retention_years > 0


@pytest.mark.parametrize("code", REGIONS)
def test_residency_and_failover_are_mapped_for(code: str) -> None:
    """S1, regional attempt compliance"""
    terms = load_profiles().get(code).terms
    assert terms.residency
    assert code not in terms.blocked_destinations


@pytest.mark.parametrize("code", REGIONS)
def test_export_and_deletion_are_mapped_for(code: str) -> None:
    """S1, regional attempt compliance"""
    terms = load_profiles().get(code).terms
    assert terms.export_days > 0
    assert terms.deletion_days > 0


@pytest.mark.parametrize("code", REGIONS)
def test_a_legal_hold_beats_deletion_and_retention_in(code: str) -> None:
    """S1, regional attempt compliance"""
    terms = load_profiles().get(code).terms
    assert terms.hold_blocks_deletion
    assert terms.hold_blocks_purge


# Who approves


@pytest.mark.parametrize("area", AREAS, ids=[area.name for area in AREAS])
def test_an_area_is_decided_only_by_its_owner_group(story: Story, area: Any) -> None:
    """S1, the ten areas"""
    assert area.owner_group in OWNER_GROUPS
    other = next(one for one in AREAS if one.owner_group != area.owner_group)
    person = story.cast.person(f"owner-of-{other.owner_group}", f"owner:{other.owner_group}")
    made = make_contract(story.cast, slug="one-area", policy_slug="policy-allow")
    with every_tenant(), pytest.raises(NotAnOwner):
        readiness_decide(
            actor=story.cast.actor(person, [story.cast.organization]),
            at=AT,
            contract_id=made.id,
            area=area.name,
            verdict=ReadinessVerdict.APPROVE,
            rationale="Looked at it",
        )


def test_an_approval_names_the_document_it_approves(story: Story) -> None:
    """S1, the ten areas"""
    with every_tenant():
        rows = ReadinessDecision.objects.filter(contract=story.contracts["allow"])
        assert {len(row.document_sha256) for row in rows} == {64}
        assert rows.count() == len(AREAS)


def test_there_are_ten_areas_with_nine_owner_groups() -> None:
    """S1, the ten areas"""
    assert (len(AREAS), len({area.owner_group for area in AREAS})) == (10, 9)


def test_ids_of_attempts_are_stable(story: Story) -> None:
    """S1, attempt envelope"""
    asked = story.asked()
    assert UUID(story.read(asked)["id"]) == asked
