"""S2, failure handling and replay: one test per sentence. A docstring begins with the section; what follows its dash
says what the constitution decides instead, where it does."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from attempts.execution.adapters.base import effect_in_force
from attempts.execution.models import Receipt
from attempts.execution.rules import retry_plan
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.execution.services.lease_expire import leases_expire
from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.quarantine.models import QuarantineCase
from config.celery import SCHEDULE
from governance.contracts.models import Contract
from governance.contracts.rules.documents import default_documents
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.rules import EVALUATORS, SLOWEST_SECONDS, decision_document, evaluate
from governance.enforcement.services import decision_replay
from governance.ledger.models import LedgerEntry
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import lease_runs_out
from tests.attempts.execution.target import CountingTarget
from tests.conformance.story import Story
from tests.governance.enforcement.support import as_bytes, changed, environment, request, result_of

URL = "/api/v1/execution/allow/1/attempts"
RETRY = default_documents()["retry_and_replay"] | {"automatic_retries": "when_safe", "max_attempts": 4}


def sent(story: Story, target: CountingTarget, *statuses: int, effect: str = "once", **changes: Any) -> UUID:
    """An attempt that a worker has executed against a receiver that answers so."""
    story.contract("sent", adapter="http", effect=effect, changes=changes)
    target.statuses = list(statuses)
    asked = story.asked("sent", runtime_mode="active")
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    return asked


def plan(**changes: Any) -> Any:
    at = timezone.now()
    facts = {"effect": "idempotent", "retryable": True, "tries": 1, "first_at": at, "at": at, "attempt_id": UUID(int=7)}
    return retry_plan(document=RETRY, **(facts | changes))


# 2 Core principles


def test_what_cannot_be_judged_fails_closed() -> None:
    """S2 2"""
    for world in (
        {"contract": None},
        {"policy": None},
        {"region": None},
        {"facts.throttle": {"status": "unavailable"}},
    ):
        assert evaluate(request(), environment(world)).verdict == "deny"


@pytest.mark.parametrize("model", [LedgerEntry, EnforcementDecision, AttemptTransition])
def test_history_is_never_mutated(story: Story, model: Any) -> None:
    """S2 2"""
    story.asked()
    with every_tenant(), pytest.raises(DatabaseError), transaction.atomic():
        model.objects.update(at=timezone.now())


@pytest.mark.parametrize("model", [LedgerEntry, EnforcementDecision, AttemptTransition])
def test_history_is_never_deleted(story: Story, model: Any) -> None:
    """S2 2"""
    story.asked()
    with every_tenant(), pytest.raises(DatabaseError), transaction.atomic():
        model.objects.all()._raw_delete(model.objects.db)


def test_intent_is_never_inferred() -> None:
    """S2 2"""
    assert evaluate(changed(request(), {"action.operation": ""}), environment({"policy": None})).verdict == "deny"


def test_an_action_that_no_rule_names_is_not_guessed(story: Story) -> None:
    """S2 2"""
    answer = story.ask("named", action={"operation": "case.unheard"})
    assert answer.json()["reason_code"] == "no_rule_matched"


def test_nothing_with_a_side_effect_is_retried(story: Story, target: CountingTarget) -> None:
    """S2 2"""
    asked = sent(story, target, 503)
    attempt_dispatch(attempt_id=asked, now=timezone.now)
    assert len(target.requests) == 1


def test_nothing_is_compensated_by_the_record(story: Story) -> None:
    """S2 2"""
    story.contract("undoable", changes={"failure_quarantine": {"compensation_contract": "allow/1"}})
    case = story.failed("undoable")
    before = story.counts()[0]
    story.ticks()
    assert (story.counts()[0], story.follow_ups(case, "compensates")) == (before, [])


# 3.1 Pre-enforcement failure


def test_an_invalid_payload_is_blocked_as_invalid_input(story: Story) -> None:
    """S2 3.1"""
    answer = story.ask(payload={"action": 7})
    assert (answer.status_code, answer.json()["reason_code"]) == (400, "invalid_input")


def test_missing_required_fields_are_blocked_as_invalid_input(story: Story) -> None:
    """S2 3.1"""
    answer = story.ask(payload={"action": {"operation": "case.close"}})
    assert answer.json()["reason_code"] == "invalid_input"


def test_a_contract_violation_is_blocked(story: Story) -> None:
    """S2 3.1"""
    assert story.ask(action={"connector": "slack"}).json()["reason_code"] == "effect_mismatch"


def test_an_invalid_input_is_one_entry_in_the_record(story: Story) -> None:
    """S2 3.1"""
    attempts, _, entries = story.counts()
    story.ask(payload={"action": 7})
    after = story.counts()
    assert (after[0] - attempts, after[2] - entries) == (0, 1)


def test_a_malformed_request_gives_the_verdict_block_with_invalid_input() -> None:
    """S2 3.1"""
    decision = evaluate({"format": "holdpoint-request-v1"}, environment())
    assert (decision.verdict, decision.reason_code) == ("deny", "invalid_input")


def test_an_invalid_input_is_not_retried(story: Story) -> None:
    """S2 3.1"""
    before = story.counts()[0]
    story.ask(payload={"action": 7})
    assert story.counts()[0] == before


# 3.2 Enforcement logic failure


def test_an_evaluator_that_crashes_blocks() -> None:
    """S2 3.2"""
    decision = evaluate(request(), environment({"facts.policy_sha256": "0" * 64}))
    assert (decision.verdict, decision.reason_code) == ("deny", "enforcement_exception")


def test_an_unexpected_exception_is_recorded_by_its_kind_only() -> None:
    """S2 3.2"""
    decision = evaluate(request(), environment({"facts.policy_sha256": "0" * 64}))
    assert set(result_of(decision, "policy").inputs) <= {"failure", "error"}


def test_a_dependency_that_takes_too_long_blocks() -> None:
    """S2 3.2"""
    readings = iter([0.0, SLOWEST_SECONDS + 1, *range(1, 99)])
    decision = evaluate(request(), environment(), stopwatch=lambda: float(next(readings)))
    assert decision.reason_code == "enforcement_exception"


def test_a_failed_evaluator_is_not_executed_again() -> None:
    """S2 3.2"""
    world = environment({"facts.failures": {"region": "timeout"}})
    assert result_of(evaluate(request(), world), "region").inputs == {"failure": "timeout"}


def test_an_enforcement_failure_leaves_one_immutable_record(story: Story) -> None:
    """S2 3.2"""
    story.contract("bad-rule", rules=[{"id": "x", "when": "metadata.gone > 1", "verdict": "allow"}])
    answer = story.ask("bad-rule")
    assert answer.json()["reason_code"] == "enforcement_exception"
    with every_tenant():
        assert EnforcementDecision.objects.filter(id=answer.json()["decision_id"]).count() == 1


# 3.3 Adapter execution failure


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_adapter_reports_its_failure_explicitly(story: Story, target: CountingTarget, status: int) -> None:
    """S2 3.3"""
    (receipt,) = story.receipts(sent(story, target, status))
    assert receipt.outcome != "success"
    assert receipt.response_metadata


def test_an_outside_timeout_is_an_unknown_outcome(story: Story) -> None:
    """S2 3.3"""
    asked = story.asked()
    story.lease(asked)
    lease_runs_out(asked)
    with every_tenant():
        leases_expire()
        assert QuarantineCase.objects.get(attempt_id=asked).category == "outcome_unknown"


def test_the_failure_outcome_is_recorded(story: Story, target: CountingTarget) -> None:
    """S2 3.3"""
    assert story.attempt(sent(story, target, 500)).state == "failed-quarantined"


def test_the_record_captures_the_failure(story: Story, target: CountingTarget) -> None:
    """S2 3.3"""
    assert "attempt.quarantined" in story.actions(sent(story, target, 500))


def test_an_adapter_is_not_replayed(story: Story, target: CountingTarget) -> None:
    """S2 3.3 — retried only where the effect is proven safe, the failure says so and the contract allows it."""
    asked = sent(story, target, 503)
    for _ in range(3):
        attempt_dispatch(attempt_id=asked, now=timezone.now)
    assert len(target.requests) == 1


# 3.4 The record cannot be written


def test_a_refused_write_is_a_failure_upstream(story: Story) -> None:
    """S2 3.4"""
    before = story.counts()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        answer = story.ask()
        transaction.set_rollback(True)
    assert answer.status_code >= 500
    assert story.counts() == before


def test_a_refused_write_is_not_tried_again(story: Story) -> None:
    """S2 3.4"""
    body, before = story.body(), story.counts()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on")
        assert story.ask(key="key-same-0001", payload=body).status_code == 503
        transaction.set_rollback(True)
    story.ticks()
    assert story.counts() == before
    # Only the caller asks again, and then it is new: nothing of the first time was kept anywhere.
    answer = story.ask(key="key-same-0001", payload=body)
    assert (answer.status_code, "Idempotent-Replayed" in answer.headers) == (201, False)


def test_there_is_no_alternate_storage() -> None:
    """S2 3.4"""
    assert set(settings.DATABASES) == {"default"}


def test_no_transition_exists_without_its_entry(story: Story) -> None:
    """S2 3.4"""
    asked = story.asked()

    def move_alone() -> None:
        with every_tenant(), transaction.atomic(), connection.cursor() as cursor:
            Attempt.objects.filter(id=asked).update(state="completed")
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    with pytest.raises(DatabaseError):
        move_alone()


# 4 Retry rules


@pytest.mark.parametrize("adapter", ["slack", "email", "http", "external"])
def test_no_side_effect_is_retried_automatically_by(adapter: str) -> None:
    """S2 4 — `once` is the effect of whatever declares nothing, and `once` is never retried."""
    effect = effect_in_force(adapter=adapter, effect=default_effect(adapter))
    assert effect == "once"
    # Whatever else would speak for it.
    assert plan(effect=effect).due_at is None
    assert plan(effect=effect, retryable=True, tries=1).why == "effect_is_once"


def default_effect(adapter: str) -> str:
    """What a contract gets that says nothing about its effect."""
    field = Contract(adapter=adapter)._meta.get_field("effect")
    return str(field.get_default())


def test_a_retry_needs_a_proven_safe_effect() -> None:
    """S2 4 — automatic retry only with effect `none` or `idempotent`."""
    assert (plan(effect="once").why, plan(effect="idempotent").why) == ("effect_is_once", "retry")


def test_a_retry_needs_an_explicit_word_of_the_module() -> None:
    """S2 4 — and an explicit `retryable: true`."""
    assert plan(retryable=False).why == "not_retryable"


def test_a_caller_that_tries_again_makes_a_new_execution(story: Story) -> None:
    """S2 4"""
    case = story.failed()
    first = story.attempt(case.attempt_id)
    body = story.body(action={"target_ref": first.target_ref}, patient_context_ref=first.patient_context_ref)
    again = story.asked(payload=body)
    assert again != first.id
    assert (story.attempt(first.id).state, story.attempt(again).state) == (first.state, "approved-for-execution")


def test_a_new_execution_has_a_new_decision_id(story: Story) -> None:
    """S2 4"""
    first, second = (story.decision(story.asked()).id for _ in range(2))
    assert first != second


def test_a_new_execution_may_write_a_new_record(story: Story) -> None:
    """S2 4"""
    before = story.counts()[2]
    story.asked()
    assert story.counts()[2] > before


def test_history_stays_chronological(story: Story) -> None:
    """S2 4"""
    asked = story.asked()
    story.complete(asked)
    with every_tenant():
        rows = list(AttemptTransition.objects.filter(attempt_id=asked).order_by("id").values_list("at", flat=True))
    assert rows == sorted(rows)


# 5 Replay guarantees


def timeline(story: Story) -> str:
    story.contract("timeline", changes={"idempotency_key_policy": {"mode": "timeline"}})
    return "timeline"


def test_a_replay_is_a_new_execution(story: Story) -> None:
    """S2 5 — in a contract whose mode is `timeline`; `dedupe` is the default."""
    slug, body = timeline(story), story.body()
    first, second = (story.ask(slug, key="key-same-0001", payload=body).json()["id"] for _ in range(2))
    assert first != second


def test_a_replay_does_not_refer_to_the_execution_before(story: Story) -> None:
    """S2 5"""
    slug, body = timeline(story), story.body()
    for _ in range(2):
        asked = story.asked(slug, key="key-same-0001", payload=body)
    assert story.attempt(asked).retry_of_id is None


def test_a_replay_is_not_deduplicated(story: Story) -> None:
    """S2 5"""
    slug, body = timeline(story), story.body()
    answers = [story.ask(slug, key="key-same-0001", payload=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert not any("Idempotent-Replayed" in answer.headers for answer in answers)


def test_a_replay_does_not_assume_idempotency(story: Story) -> None:
    """S2 5"""
    slug = timeline(story)
    assert story.ask(slug, key="key-same-0001").status_code == 201
    assert story.ask(slug, key="key-same-0001", action={"target_ref": "case-other"}).status_code == 201


def test_a_replay_reconciles_nothing(story: Story) -> None:
    """S2 5"""
    slug, body = timeline(story), story.body()
    first = story.asked(slug, key="key-same-0001", payload=body)
    before = story.actions(first)
    story.ask(slug, key="key-same-0001", payload=body)
    assert story.actions(first) == before


def test_each_invocation_is_deterministic(story: Story) -> None:
    """S2 5"""
    with every_tenant():
        assert decision_replay(row=story.decision(story.asked("hold"))).agrees


# 6 Determinism


def test_the_same_input_and_environment_give_the_same_decision() -> None:
    """S2 6"""
    assert as_bytes(evaluate(request(), environment())) == as_bytes(evaluate(request(), environment()))


def test_the_order_of_evaluators_is_fixed() -> None:
    """S2 6"""
    for world in ({}, {"contract": None}, {"facts.shutdowns": [{"id": "s", "scope": "global"}]}):
        assert tuple(row.evaluator for row in evaluate(request(), environment(world)).results) == EVALUATORS


def test_precedence_is_stable() -> None:
    """S2 6"""
    held = changed(request(), {"metadata.priority": 9})
    assert evaluate(held, environment()).verdict == "needs_approval"
    assert evaluate(held, environment({"facts.contract_state": "suspended"})).verdict == "deny"


def test_no_randomness_is_introduced() -> None:
    """S2 6"""
    documents = {str(decision_document(evaluate(request(), environment()))) for _ in range(20)}
    assert len(documents) == 1


def test_only_the_decision_id_and_the_time_differ(story: Story) -> None:
    """S2 6"""
    slug, body = timeline(story), story.body()
    first, second = (story.decision(story.asked(slug, key="key-same-0001", payload=body)) for _ in range(2))
    assert (first.verdict, first.reason_code, first.results) == (second.verdict, second.reason_code, second.results)
    assert first.id != second.id


# 7 No hidden recovery


FORBIDDEN = ("reconcile", "repair", "correct", "compensate", "fix")


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_scheduled_task_does(story: Story, word: str) -> None:
    """S2 7 — scheduled work may only end things or release what the record promised."""
    assert not [name for name in SCHEDULE if word in str(name)]
    case = story.failed()
    before = (story.counts()[0], story.states(case.attempt_id), story.receipts(case.attempt_id))
    story.ticks(later=timedelta(days=1))
    assert (story.counts()[0], story.states(case.attempt_id), story.receipts(case.attempt_id)) == before
    with every_tenant():
        assert QuarantineCase.objects.get(id=case.id).resolution == ""


def test_a_failure_is_final(story: Story) -> None:
    """S2 7"""
    case = story.failed()
    with every_tenant(), pytest.raises(DatabaseError), transaction.atomic():
        Attempt.objects.filter(id=case.attempt_id).update(state="approved-for-execution")


def test_a_failure_is_observable(story: Story) -> None:
    """S2 7"""
    case = story.failed()
    assert story.read(case.attempt_id)["state"] == "failed-quarantined"


def test_nothing_is_compensated_asynchronously(story: Story) -> None:
    """S2 7 — a person authorizes a compensation; it is a new attempt through the same gates."""
    story.contract("undoable", changes={"failure_quarantine": {"compensation_contract": "deny/1"}})
    case = story.failed("undoable")
    story.ticks(later=timedelta(days=1))
    assert story.follow_ups(case, "compensates") == []
    answer = story.case(case, "compensate", finding="happened")
    assert (answer.status_code, answer.json()["reason_code"]) == (403, "policy_denied")
    assert len(story.follow_ups(case, "compensates")) == 1


# 8 Safety under pressure


def test_under_high_traffic_execution_is_blocked(story: Story) -> None:
    """S2 8"""
    limits = [row | {"limit": 1} for row in default_documents()["throttles_and_misuse"]["limits"]]
    story.contract("busy", changes={"throttles_and_misuse": {"limits": limits}})
    answers = [story.ask("busy") for _ in range(3)]
    # The first may be over the tenant's limit already: what it asked for under other contracts counts.
    assert [answer.status_code for answer in answers[1:]] == [429, 429]


def test_under_a_partial_outage_execution_is_blocked() -> None:
    """S2 8"""
    decision = evaluate(request(), environment({"facts.throttle": {"status": "unavailable"}}))
    assert (decision.verdict, decision.reason_code) == ("deny", "throttle_unavailable")


def test_what_was_blocked_is_traceable(story: Story) -> None:
    """S2 8"""
    answer = story.ask("deny")
    assert story.decision(answer.json()["attempt_id"]).reason_code == "policy_denied"


def test_a_blocked_request_has_no_side_effect(story: Story) -> None:
    """S2 8"""
    assert story.intents(story.ask("deny").json()["attempt_id"]) == 0


# 9 Boundary of governance


def test_nobody_can_ask_for_a_change_of_the_record(story: Story) -> None:
    """S2 9"""
    with every_tenant():
        entry = LedgerEntry.objects.order_by("-id")[0].id
        before = GovernanceViolation.objects.count()
    for method in ("put", "patch", "delete"):
        answer = getattr(story.cast.api(), method)(f"/api/v1/ledger/entries/{entry}", {}, format="json")
        assert answer.status_code == 409
    with every_tenant():
        assert GovernanceViolation.objects.count() == before + 3


def test_nobody_can_replay_what_is_not_eligible(story: Story) -> None:
    """S2 9"""
    replay = {"eligible_states": ["preflight-denied"], "requires_role": None}
    story.contract("again", changes={"retry_and_replay": {"replay": replay}})
    asked = story.asked("again")
    story.complete(asked)
    answer = story.replay(asked)
    assert (answer.status_code, story.kind(answer)) == (409, "not-eligible")


def test_nobody_can_override_a_denial(story: Story) -> None:
    """S2 9"""
    denied = story.ask("deny").json()["attempt_id"]
    assert story.act(denied, "lease").status_code == 409


def test_a_stale_lease_is_a_recorded_violation(story: Story) -> None:
    """S2 9"""
    asked = story.asked()
    story.lease(asked)
    token = story.lease(story.asked())
    with every_tenant():
        before = GovernanceViolation.objects.count()
    assert story.act(asked, "complete", lease_token=token, response_metadata={}).status_code == 409
    with every_tenant():
        assert GovernanceViolation.objects.count() > before


def test_deciding_on_ones_own_request_is_a_violation(story: Story) -> None:
    """S2 9"""
    boss = story.cast.person("boss", "reviewer:customer_clinician", "operator", exception=True)
    held = story.asked("hold", client=story.cast.api("attempts:create", responsible=boss))
    assert story.decide(held, client=story.cast.session(boss)).status_code == 403


# 10 The constitutional statement


def test_failure_is_recorded_and_not_corrected(story: Story) -> None:
    """S2 10"""
    case = story.failed()
    story.case(case, "accept", finding="did_not_happen", evidence_ref="ev-1")
    assert story.attempt(case.attempt_id).state == "failed-quarantined"


def test_truth_survives_a_crash(story: Story) -> None:
    """S2 10"""
    asked = story.asked()
    story.lease(asked)
    # The executor is never heard of again: what it may have done is on record, and nobody guesses what became of it.
    assert story.intents(asked) == 1
    lease_runs_out(asked)
    with every_tenant():
        leases_expire()
        assert not Receipt.objects.filter(attempt_id=asked, outcome="success").exists()
        assert QuarantineCase.objects.get(attempt_id=asked).category == "outcome_unknown"
