"""Records the outcome of an execution under its fence: the receipt, and completion, retry or quarantine, together."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from attempts.execution.adapters.registry import effect_in_force
from attempts.execution.configured import crash_point
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.rules.retry import RetryPlan, retry_plan
from attempts.execution.services.lease_check import (
    FencedReport,
    LeaseCheck,
    late_keep,
    lease_check_lock,
    lease_lost,
    reported_before,
)
from attempts.execution.services.retry import retry_schedule
from attempts.execution.states import ReceiptOutcome
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.transition import transition_apply
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.services.open import quarantine_open
from attempts.quarantine.states import QuarantineCategory
from governance.sql.insert import insert_together
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor


@dataclass(frozen=True, slots=True)
class SuccessReport:
    """What the receiver answered. The caller has checked it against the metadata boundary."""

    response_metadata: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] | None = None
    reversible: bool = False
    reversal_hint: str = ""


@violations_recorded
def attempt_complete(*, actor: Actor, at: datetime, report: FencedReport, result: SuccessReport) -> Attempt:
    """Records a success. A report under a lost lease is kept as late evidence and refused."""
    with transaction.atomic():
        check = lease_check_lock(report=report)
        if check.holds:
            receipt = Receipt(
                attempt=check.attempt,
                intent=check.intent,
                outcome=ReceiptOutcome.SUCCESS,
                response_metadata=result.response_metadata,
                cost=result.cost,
                reversible=result.reversible,
                reversal_hint=result.reversal_hint,
                at=at,
            )
            insert_together([receipt])
            payload = {"receipt": str(receipt.id), "fence": report.fence}
            transition_apply(check.attempt, "complete", actor=actor, at=at, payload=payload)
            crash_point("before_commit")
            return check.attempt
        if reported_before(check=check, outcome=ReceiptOutcome.SUCCESS):
            return check.attempt
        late_keep(check=check, outcome=ReceiptOutcome.SUCCESS, actor=actor, at=at)
    # After the commit: raised inside, the error would roll the late evidence back.
    raise lease_lost(check)


# These may have taken effect. They are never tried again automatically, and get no receipt: nobody knows the outcome.
UNKNOWN = frozenset({QuarantineCategory.OUTCOME_UNKNOWN, QuarantineCategory.TIMEOUT})
RETRYABLE = frozenset({QuarantineCategory.ADAPTER_FAILURE, QuarantineCategory.INVALID_RESPONSE})


@dataclass(frozen=True, slots=True)
class FailureReport:
    category: QuarantineCategory
    retryable: bool = False
    reason_code: str = "adapter_failed"
    response_metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome_unknown(self) -> bool:
        return self.category in UNKNOWN


@violations_recorded
def attempt_fail(*, actor: Actor, at: datetime, report: FencedReport, failure: FailureReport) -> Attempt:
    """Records a failure. A report under a lost lease is kept as late evidence and refused."""
    with transaction.atomic():
        check = lease_check_lock(report=report)
        if check.holds:
            _apply(check, failure, actor=actor, at=at)
            crash_point("before_commit")
            return check.attempt
        if reported_before(check=check, outcome=ReceiptOutcome.FAILURE) or _agrees(check, report, failure):
            return check.attempt
        if not failure.outcome_unknown:
            late_keep(check=check, outcome=ReceiptOutcome.FAILURE, actor=actor, at=at)
    raise lease_lost(check)


def _apply(check: LeaseCheck, failure: FailureReport, *, actor: Actor, at: datetime) -> None:
    attempt = check.attempt
    if failure.outcome_unknown:
        quarantine_open(
            attempt,
            actor=actor,
            at=at,
            category=QuarantineCategory.OUTCOME_UNKNOWN,
            reason_code="outcome_unknown",
            payload={"trigger": "adapter_timeout", "fence": attempt.lease_token, **failure.response_metadata},
        )
        return
    receipt = _receipt(check, failure, at)
    insert_together([receipt])
    plan = _plan(attempt, failure, at)
    payload = {"receipt": str(receipt.id), "fence": attempt.lease_token, "tries": attempt.tries, "why": plan.why}
    if plan.due_at is not None:
        retry_schedule(
            attempt, due_at=plan.due_at, actor=actor, at=at, payload=payload, reason_code=failure.reason_code
        )
        return
    quarantine_open(
        attempt, actor=actor, at=at, category=failure.category, reason_code=failure.reason_code, payload=payload
    )


def _receipt(check: LeaseCheck, failure: FailureReport, at: datetime) -> Receipt:
    return Receipt(
        attempt=check.attempt,
        intent=check.intent,
        outcome=ReceiptOutcome.FAILURE,
        category=failure.category,
        retryable=failure.retryable,
        reason_code=failure.reason_code,
        response_metadata=failure.response_metadata,
        at=at,
    )


def _plan(attempt: Attempt, failure: FailureReport, at: datetime) -> RetryPlan:
    first = DispatchIntent.objects.filter(attempt_id=attempt.id).order_by("number").values_list("at", flat=True).first()
    return retry_plan(
        document=documents_of(attempt)["retry_and_replay"],
        effect=effect_in_force(adapter=attempt.connector, effect=attempt.effect),
        retryable=failure.retryable and failure.category in RETRYABLE,
        tries=attempt.tries,
        first_at=first or at,
        at=at,
        attempt_id=attempt.id,
    )


def _agrees(check: LeaseCheck, report: FencedReport, failure: FailureReport) -> bool:
    """Whether the report says "unknown" about an attempt that is already in quarantine for that: nothing to refuse."""
    attempt = check.attempt
    return (
        failure.outcome_unknown
        and check.intent is not None
        and attempt.lease_token == report.fence
        and attempt.state == AttemptState.QUARANTINED
        and attempt.reason_code == "outcome_unknown"
    )
