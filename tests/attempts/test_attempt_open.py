"""A workflow step opens an attempt: the same gates and rows as over HTTP, in the engine's own transaction."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from attempts.execution.models import DispatchIntent
from attempts.execution.services.queue import queue_dispatch
from attempts.intake.models import IdempotencyRecord
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.reviews.models import Review
from attempts.steps.services.open import Opened, attempt_open
from governance.contracts.models import Contract
from governance.contracts.rules.documents import default_documents
from governance.contracts.services.contracts import contract_suspend
from governance.enforcement.models import EnforcementDecision
from governance.ledger.models import LedgerEntry
from governance.ledger.selectors import tells
from governance.people.models import ServiceAccount
from governance.people.services.accounts import service_account_suspend
from governance.shutdown.services import shutdown_engage
from governance.shutdown.states import ShutdownScope
from governance.sql.insert import Pending
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.base.trace import read_trace
from tests.attempts.test_intake import body, post
from tests.attempts.test_intake_races import at_once
from tests.cast import Cast
from tests.governed import AT, DENY, HOLD, open_contract

STEP = UUID("0197f0a0-0000-7000-8000-000000000001")


def arguments(contract: Contract, **changes: Any) -> dict[str, Any]:
    action = {"operation": "case.close", "target_ref": "case-0001", "risk_tier": "low", "fields": ["status"]}
    usual = {
        "contract_id": contract.id,
        "actor": SYSTEM,
        "at": AT,
        "action": action | changes.pop("action", {}),
        "metadata": {},
        "context_ref": "ctx-0001",
        "idempotency_key": "step-00000001",
        "origin_step": STEP,
        "trace": read_trace(request_id="", traceparent=""),
        "deployment_region": "US",
    }
    return usual | changes


def opening(contract: Contract, **changes: Any) -> Opened:
    pending = Pending()
    with transaction.atomic():
        opened = attempt_open(**arguments(contract, pending=pending, **changes))
        pending.write()
    return opened


def test_an_allowed_step_has_an_attempt_with_every_row_of_an_intake_and_is_sent(cast: Cast) -> None:
    opened = opening(open_contract(cast))
    assert (opened.verdict, opened.reason_code, opened.review, opened.existed) == ("allow", "", None, False)
    with every_tenant():
        attempt = Attempt.objects.select_related("caller", "decision").get()
        assert opened.attempt == attempt
        assert (attempt.state, attempt.runtime_mode) == ("approved-for-execution", "active")
        assert (attempt.origin_step, attempt.caller.slug) == (STEP, "workflow-engine")
        assert attempt.decision.verdict == "allow"
        assert AttemptTransition.objects.count() == 2
        assert Slot.objects.count() == 1
        assert IdempotencyRecord.objects.get().key == "step-00000001"
        written = LedgerEntry.objects.get(subject_id=attempt.id)
        taken_in = ["attempt.received", "attempt.deduplicated", "attempt.approved"]
        assert [move.action for move in written.moves] == [*taken_in, "attempt.leased", "attempt.dispatched"]
        assert written.actor_ref == str(attempt.caller_id)
        intent = DispatchIntent.objects.get()
        assert opened.intent == intent
        assert (intent.attempt_id, intent.number, intent.fence, intent.once) == (attempt.id, 1, 1, True)
        assert (intent.effect_key, intent.action_digest) == (f"hp-{attempt.id}", attempt.action_digest)
        assert (attempt.lease_owner, attempt.lease_token, attempt.tries) == ("workflow", 1, 1)
        assert (attempt.lease_expires_at, attempt.next_eligible_at) == (None, None)


def test_one_that_ends_in_the_same_transaction_and_one_that_is_held_take_no_slot_beyond_it(cast: Cast) -> None:
    contract = open_contract(cast)
    assert opening(contract, keeps=False).verdict == "allow"
    with every_tenant():
        assert not Slot.objects.exists()
    holding = open_contract(cast, rules=HOLD, slug="held", policy_slug="held")
    held = opening(holding, keeps=False, idempotency_key="step-00000003")
    assert held.verdict == "needs_approval"
    again = opening(contract, keeps=False, idempotency_key="step-00000002", context_ref="ctx-0001")
    assert again.verdict == "allow"
    with every_tenant():
        assert not Slot.objects.exists()


def test_a_held_step_has_its_review_and_a_denied_one_its_reason(cast: Cast) -> None:
    held = opening(open_contract(cast, rules=HOLD, slug="held", policy_slug="held"))
    denying = open_contract(cast, rules=DENY, slug="denied", policy_slug="denied")
    denied = opening(denying, idempotency_key="step-00000002", context_ref="ctx-0002")
    assert (held.verdict, held.reason_code) == ("needs_approval", "review_required")
    assert denied.attempt is not None
    assert denied.intent is held.intent is None
    assert (denied.verdict, denied.reason_code, denied.attempt.state) == ("deny", "policy_denied", "preflight-denied")
    with every_tenant():
        assert held.review == Review.objects.get()
        assert not Slot.objects.exists()


def test_a_closed_contract_is_an_answer_and_leaves_no_row(cast: Cast) -> None:
    contract = open_contract(cast)
    with every_tenant():
        contract_suspend(
            actor=cast.actor(cast.operator, [cast.organization]),
            at=AT,
            contract_id=contract.id,
            reason_code="planned_maintenance",
        )
    for contract_id in (contract.id, uuid4()):
        opened = opening(contract, contract_id=contract_id)
        assert (opened.attempt, opened.verdict, opened.reason_code) == (None, "deny", "attempt_creation_disabled")
    with every_tenant():
        assert not Attempt.objects.exists()
        assert not EnforcementDecision.objects.exists()


def test_a_shutdown_stops_a_step_and_a_drill_does_not(cast: Cast) -> None:
    contract = open_contract(cast)
    person = cast.actor(cast.operator, [cast.organization])
    facts: dict[str, Any] = {
        "actor": person,
        "at": AT,
        "scope": ShutdownScope.CONTRACT,
        "organization_id": cast.organization.id,
        "target": contract.slug,
        "reason_code": "planned_maintenance",
    }
    with every_tenant():
        shutdown_engage(drill=True, **facts)
    assert opening(contract).verdict == "allow"
    with every_tenant():
        shutdown_engage(**facts)
    stopped = opening(contract, idempotency_key="step-00000002")
    assert (stopped.attempt, stopped.verdict, stopped.reason_code) == (None, "deny", "shutdown_engaged")


def test_somebody_who_does_not_act_for_the_organization_opens_nothing(cast: Cast) -> None:
    contract = open_contract(cast)
    stranger = Actor(ActorKind.SERVICE, uuid4(), frozenset({cast.other.id}))
    assert opening(contract, actor=stranger).reason_code == "attempt_creation_disabled"


def test_the_same_key_leads_to_the_same_attempt_also_after_its_end(cast: Cast) -> None:
    documents = default_documents()
    documents["idempotency_key_policy"]["on_expired"] = "new"
    contract = open_contract(cast, rules=HOLD, documents=documents)
    first, again, late = opening(contract), opening(contract), opening(contract, at=AT + timedelta(days=9))
    assert again.existed
    assert late.existed
    assert first.attempt == again.attempt == late.attempt
    assert (again.verdict, again.reason_code, again.review) == ("needs_approval", "review_required", first.review)
    with every_tenant():
        assert Attempt.objects.count() == 1
        assert LedgerEntry.objects.filter(action="attempt.replayed").count() == 2


def test_the_same_key_for_something_else_is_refused_on_record(cast: Cast) -> None:
    contract = open_contract(cast)
    opening(contract)
    other = opening(contract, action={"target_ref": "case-0002"})
    assert (other.attempt, other.verdict, other.problem) == (None, "deny", "idempotency-conflict")
    with every_tenant():
        assert LedgerEntry.objects.filter(action="attempt.conflicted").count() == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"action": {"risk_tier": "enormous"}}, "invalid-input"),
        ({"action": {"unknown": 1}}, "invalid-input"),
        ({"idempotency_key": "x"}, "idempotency-key-invalid"),
    ],
)
def test_a_request_of_the_wrong_shape_is_an_answer_too(cast: Cast, changes: dict[str, Any], problem: str) -> None:
    opened = opening(open_contract(cast), **changes)
    assert (opened.attempt, opened.verdict, opened.problem) == (None, "deny", problem)
    assert opened.reason_code == "invalid_input"


def test_a_full_cap_is_a_denial_that_says_when_to_come_again_and_keeps_the_key_free(cast: Cast) -> None:
    contract = open_contract(cast)
    opening(contract)
    queued = opening(contract, idempotency_key="step-00000002")
    assert queued.attempt is not None
    assert (queued.verdict, queued.intent, queued.attempt.queued_until is None) == ("allow", None, False)
    again = opening(contract, idempotency_key="step-00000002")
    assert (again.existed, again.attempt) == (True, queued.attempt)
    with every_tenant():
        assert Slot.objects.count() == 1
        Slot.objects.all().delete()
        assert queue_dispatch() == 1
        assert Slot.objects.get().attempt_id == queued.attempt.id


def test_forbidden_metadata_denies_and_never_suspends_the_engine(cast: Cast) -> None:
    contract = open_contract(cast)
    for number in range(30):
        opened = opening(contract, idempotency_key=f"step-{number:08d}", metadata={"note": "jane@example.com"})
        assert opened.reason_code == "metadata_boundary"
    with every_tenant():
        assert ServiceAccount.objects.get(slug="workflow-engine").status == "active"


def test_a_suspended_engine_is_denied_and_the_denial_is_on_record(cast: Cast) -> None:
    contract = open_contract(cast)
    opening(contract)
    with every_tenant():
        account = ServiceAccount.objects.get(slug="workflow-engine")
        service_account_suspend(actor=SYSTEM, at=AT, service_account_id=account.id, reason_code="misuse_suspended")
    opened = opening(contract, idempotency_key="step-00000002", context_ref="ctx-0002")
    assert opened.attempt is not None
    assert (opened.verdict, opened.reason_code) == ("deny", "misuse_suspended")


def test_it_is_undone_with_its_callers_transaction(cast: Cast) -> None:
    contract = open_contract(cast)
    with transaction.atomic():
        assert opening(contract).verdict == "allow"
        transaction.set_rollback(True)
    with every_tenant():
        assert not Attempt.objects.exists()
        assert not LedgerEntry.objects.filter(tells("attempt.received")).exists()


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_refuses_to_start() -> None:
    with pytest.raises(transaction.TransactionManagementError):
        attempt_open(**arguments(open_contract(Cast()), pending=Pending()))


@pytest.mark.django_db(transaction=True)
def test_it_costs_three_statements_and_no_savepoint(django_assert_num_queries: Any) -> None:
    contract = open_contract(Cast())
    opening(contract)
    pending = Pending()
    with transaction.atomic(), django_assert_num_queries(3):
        attempt_open(**arguments(contract, pending=pending, idempotency_key="step-00000002", context_ref="ctx-0002"))
        pending.write()


@pytest.mark.django_db(transaction=True)
def test_two_first_steps_at_once_share_one_engine_account() -> None:
    cast = Cast()
    contract = open_contract(cast)
    calls = [
        lambda n=n: opening(contract, idempotency_key=f"step-{n:08d}", context_ref=f"ctx-{n:04d}") for n in range(6)
    ]
    assert [opened.verdict for opened in at_once(calls)] == ["allow"] * 6
    with every_tenant():
        assert ServiceAccount.objects.filter(slug="workflow-engine").count() == 1


def test_a_caller_over_http_cannot_take_a_steps_answer(cast: Cast) -> None:
    contract = open_contract(cast)
    opening(contract)
    answer = post(cast.api("attempts:create"), body(), key="step-00000001")
    assert answer.status_code == 422
    assert answer.json()["type"].endswith("/idempotency-conflict")
