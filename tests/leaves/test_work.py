"""Settings of concurrency_and_locks, retry_and_replay and failure_quarantine, each changed alone."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from time_machine import travel

from attempts.execution.models import DispatchIntent
from attempts.execution.rules import jitter
from attempts.execution.services.dispatch import attempt_dispatch
from attempts.lifecycle.models import Attempt
from attempts.quarantine.models import QuarantineCase
from governance.contracts.rules.documents import default_documents
from governance.contracts.services.contracts import contract_retire
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import change, retry_becomes_due
from tests.cast import Cast
from tests.governed import DENY, HOLD
from tests.leaves.support import ask, attempt_of, changed, inner, opened, said
from tests.workflows.running import ANSWERS
from tests.workflows.test_gates import open_up
from tests.workflows.world import World, brief

RETRIES = {"automatic_retries": "when_safe", "max_attempts": 2}


@pytest.mark.parametrize(
    ("limits", "same_context"),
    [
        ({"per_context": 2}, True),
        ({"per_context": None, "per_workflow": 2}, False),
        ({"per_context": None, "per_workflow": None, "per_tenant": 2}, False),
        ({"per_context": None, "per_workflow": None, "per_tenant": None, "per_user": 2}, False),
        ({"per_context": None, "per_workflow": None, "per_tenant": None, "per_region": 2}, False),
    ],
    ids=["per_context", "per_workflow", "per_tenant", "per_user", "per_region"],
)
def test_a_cap_lets_as_many_in_as_it_says(
    cast: Cast, caller: Any, limits: dict[str, int | None], same_context: bool
) -> None:
    opened(cast, inner("concurrency_and_locks", "limits", **limits))
    context = {"patient_context_ref": "ctx-0001"} if same_context else {}
    answers = [ask(caller, number, **context) for number in (1, 2, 3)]
    assert [said(answer)[0] for answer in answers] == [201, 201, 429]
    assert said(answers[2])[1] == "concurrency_limit"


def test_where_busy_means_queue_a_further_attempt_waits_as_long_as_the_contract_says(cast: Cast, caller: Any) -> None:
    opened(cast, changed("concurrency_and_locks", when_busy="queue"))
    ask(caller)
    waiting = attempt_of(ask(caller, 2, patient_context_ref="ctx-0001"))
    assert waiting.queued_until is not None
    opened(cast, changed("concurrency_and_locks", when_busy="queue", queue_timeout_seconds=600), slug="patient")
    ask(caller, 3, slug="patient", patient_context_ref="ctx-0003")
    longer = attempt_of(ask(caller, 4, slug="patient", patient_context_ref="ctx-0003"))
    assert longer.queued_until is not None
    assert longer.queued_until - longer.created_at == timedelta(seconds=600)


def test_a_refusal_by_a_full_cap_says_when_to_come_back(cast: Cast, caller: Any) -> None:
    opened(cast, changed("concurrency_and_locks", retry_after_seconds=77))
    ask(caller)
    assert ask(caller, 2, patient_context_ref="ctx-0001")["Retry-After"] == "77"


def test_a_held_request_is_told_when_to_ask_again(cast: Cast, caller: Any) -> None:
    opened(cast, changed("retry_and_replay", retry_after_seconds=77), rules=HOLD)
    answer = ask(caller)
    assert (answer.status_code, answer["Retry-After"]) == (202, "77")


def leased(executor: Any, attempt_id: str | UUID) -> str:
    answer = executor.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json")
    assert answer.status_code == 200, answer.content
    return str(answer.json()["lease_token"])


def fails(executor: Any, attempt_id: str | UUID, category: str = "adapter_failure", **changes: Any) -> Any:
    """Lease it and report a failure that may be tried again."""
    report = {"category": category, "retryable": True, "reason_code": "adapter_failed"} | changes
    report["lease_token"] = leased(executor, attempt_id)
    return executor.post(f"/api/v1/attempts/{attempt_id}/fail", report, format="json")


def row(attempt_id: str | UUID) -> Attempt:
    with every_tenant():
        return Attempt.objects.get(id=attempt_id)


def case_of(attempt_id: str | UUID) -> QuarantineCase:
    with every_tenant():
        return QuarantineCase.objects.get(attempt_id=attempt_id)


def failed(cast: Cast, caller: Any, executor: Any, **retry: Any) -> Attempt:
    opened(cast, changed("retry_and_replay", **(RETRIES | retry)), effect="idempotent")
    attempt_id = ask(caller).json()["id"]
    assert fails(executor, attempt_id).status_code == 200
    return row(attempt_id)


def wait_of(attempt: Attempt) -> timedelta:
    with every_tenant():
        at: datetime = DispatchIntent.objects.filter(attempt_id=attempt.id).latest("number").at
    assert attempt.next_eligible_at is not None
    return attempt.next_eligible_at - at


def test_a_failure_is_tried_again_only_where_the_contract_says_so(cast: Cast, caller: Any, executor: Any) -> None:
    assert failed(cast, caller, executor).state == "approved-for-execution"


def test_it_is_tried_as_often_as_the_contract_says(cast: Cast, caller: Any, executor: Any) -> None:
    attempt = failed(cast, caller, executor, max_attempts=3)
    for state in ("approved-for-execution", "failed-quarantined"):
        retry_becomes_due(attempt.id)
        fails(executor, attempt.id)
        assert row(attempt.id).state == state


def test_the_wait_before_the_next_try_is_the_contracts(cast: Cast, caller: Any, executor: Any) -> None:
    assert wait_of(failed(cast, caller, executor, backoff_seconds=[900])) >= timedelta(seconds=900)


def test_jitter_lengthens_the_wait_by_the_contracts_part(cast: Cast, caller: Any, executor: Any) -> None:
    attempt = failed(cast, caller, executor, jitter_fraction=1)
    expected = 5 * (1 + jitter(attempt.id, 1))
    assert abs(wait_of(attempt).total_seconds() - expected) < min(0.5, 2 * jitter(attempt.id, 1)) + 0.3


def test_when_the_window_is_over_it_stops_under_the_category_for_that(cast: Cast, caller: Any, executor: Any) -> None:
    documents = changed("retry_and_replay", **RETRIES, window_seconds=60)
    documents["failure_quarantine"]["triggers"][3]["category"] = "policy_changed"
    assert documents["failure_quarantine"]["triggers"][3]["on"] == "deadline_passed_before_intent"
    opened(cast, documents, effect="idempotent")
    attempt_id = ask(caller).json()["id"]
    token = leased(executor, attempt_id)
    report = {"category": "adapter_failure", "retryable": True, "reason_code": "adapter_failed", "lease_token": token}
    with every_tenant():
        change(UUID(attempt_id), "lease_expires_at = clock_timestamp() + interval '10 minutes'")
    with travel(timezone.now() + timedelta(seconds=58)):
        answer = executor.post(f"/api/v1/attempts/{attempt_id}/fail", report, format="json")
    assert answer.status_code == 200, answer.content
    assert case_of(attempt_id).category == "policy_changed"


@pytest.mark.parametrize("state", ["preflight-denied", "completed", "failed-quarantined"])
def test_a_replay_is_possible_from_the_states_that_the_contract_lists_and_no_other(
    cast: Cast, caller: Any, executor: Any, state: str
) -> None:
    listed = [] if state == "preflight-denied" else [state]
    documents = inner("retry_and_replay", "replay", eligible_states=listed)
    opened(cast, documents, effect="idempotent", rules=DENY if state == "preflight-denied" else None)
    answer = ask(caller)
    attempt_id = answer.json().get("id") or answer.json()["attempt_id"]
    if state == "completed":
        report = {"lease_token": leased(executor, attempt_id), "response_metadata": {}}
        executor.post(f"/api/v1/attempts/{attempt_id}/complete", report, format="json")
    elif state == "failed-quarantined":
        fails(executor, attempt_id)
    assert row(attempt_id).state == state
    again = caller.post(f"/api/v1/attempts/{attempt_id}/replay", HTTP_IDEMPOTENCY_KEY="key-00000009")
    assert again.status_code == (201 if listed else 409), again.content


CATEGORIES = ["adapter_failure", "timeout", "invalid_response", "policy_changed", "lease_lost"]


@pytest.mark.parametrize("category", CATEGORIES)
def test_an_executor_reports_only_categories_that_are_in_use(
    cast: Cast, caller: Any, executor: Any, category: str
) -> None:
    rules = default_documents()["failure_quarantine"]
    rules["categories"].remove(category)
    for trigger in rules["triggers"]:
        if trigger["category"] == category:
            trigger["category"] = "outcome_unknown"
    opened(cast, changed("failure_quarantine", **rules))
    answer = fails(executor, ask(caller).json()["id"], category)
    assert (answer.status_code, answer.json()["errors"][0]["rule"]) == (400, "unknown_category")


def triggered(on: str, category: str) -> dict[str, Any]:
    documents = changed("retry_and_replay", **RETRIES)
    for trigger in documents["failure_quarantine"]["triggers"]:
        if trigger["on"] == on:
            trigger["category"] = category
    return documents


def test_a_withdrawal_after_a_lease_gets_the_category_for_that(cast: Cast, caller: Any, executor: Any) -> None:
    contract = opened(cast, triggered("recheck_refused_after_lease", "lease_lost"), effect="idempotent")
    attempt_id = ask(caller).json()["id"]
    fails(executor, attempt_id)
    retry_becomes_due(UUID(attempt_id))
    with every_tenant():
        actor = cast.actor(cast.operator, [cast.organization])
        contract_retire(actor=actor, at=timezone.now(), contract_id=contract.id, reason_code="planned_maintenance")
    assert executor.post(f"/api/v1/attempts/{attempt_id}/lease", {}, format="json").status_code == 409
    assert case_of(attempt_id).category == "lease_lost"


def test_a_case_names_its_owner_and_when_it_is_escalated(cast: Cast, caller: Any, executor: Any) -> None:
    opened(cast, changed("failure_quarantine", escalation_owner="night-shift", escalation_after_seconds=120))
    attempt_id = ask(caller).json()["id"]
    fails(executor, attempt_id)
    case = case_of(attempt_id)
    assert (case.escalation_owner, case.escalate_at - case.opened_at) == ("night-shift", timedelta(seconds=120))


def test_a_failure_that_an_adapter_reports_gets_the_category_for_that(cast: Cast, caller: Any) -> None:
    # Nobody has set a target for this route, so the adapter reports that it sent nothing.
    opened(cast, triggered("adapter_reported_failure", "policy_changed"), effect="idempotent", adapter="http")
    attempt_id = ask(caller, action={"connector": "http"}).json()["id"]
    assert attempt_dispatch(attempt_id=UUID(attempt_id), now=timezone.now) == "failed-quarantined"
    assert case_of(attempt_id).category == "policy_changed"


def test_an_answer_without_the_declared_shape_gets_the_category_for_that(cast: Cast) -> None:
    world = World(cast, brief(), opened=False)
    triggers = triggered("response_rejected", "policy_changed")["failure_quarantine"]["triggers"]
    open_up(world, failure_quarantine={"triggers": triggers})
    instance = world.start()
    step = world.current(instance)
    world.tell(
        instance,
        ANSWERS["ai_review.requested"][0],
        {"confidence": "very", "diagnoses": [], "raw_response_id": "resp-1"},
    )
    assert world.halted(instance) == "output_contract_drift"
    assert case_of(step.governed_attempt).category == "policy_changed"
