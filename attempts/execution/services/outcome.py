"""Reports under a lease: who has the lease, heartbeat, success, failure and the next try.

Also lease tokens, and reports that come too late. Granting a lease is in `lease`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models.functions import Now

from attempts.execution.adapters.base import effect_in_force
from attempts.execution.configured import crash_point
from attempts.execution.errors import LeaseLost
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.rules import LEASE_SECONDS, RetryPlan, retry_plan
from attempts.execution.selectors import lease_deadline
from attempts.execution.states import ReceiptOutcome
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.slots import slots_release
from attempts.lifecycle.services.transition import entry_build, transition_apply
from attempts.lifecycle.states import DISPATCH, STEP_DISPATCH, AttemptState, RuntimeMode, is_ours_to_execute
from attempts.quarantine.services.open import category_for, quarantine_open
from attempts.quarantine.states import QuarantineCategory
from attempts.reviews.selectors.reviews import database_now
from governance.contracts.states import AdapterName
from governance.outside.wake_up import wake_up, wake_up_once
from governance.sql.insert import insert_together
from governance.tenancy.selectors import tenant_get
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor

BATCH = 200  # bounds one run of the scheduled task; the next one goes on
CONTRADICTED = "contradictory_evidence"  # the trigger, as the ledger has it


def retry_schedule(
    attempt: Attempt, *, due_at: datetime, actor: Actor, at: datetime, payload: Mapping[str, Any], reason_code: str
) -> None:
    """Schedules the next try of a stored and locked attempt. It gives its slot back: the next lease takes one again."""
    slots_release(attempt_id=attempt.id)
    attempt.next_eligible_at = due_at
    attempt.lease_expires_at, attempt.lease_owner = None, ""
    attempt.save(update_fields=["next_eligible_at", "lease_expires_at", "lease_owner"])
    recorded = {"due_at": due_at.isoformat(), **payload}
    entry = entry_build(attempt, "attempt.retried", actor=actor, at=at, payload=recorded, reason_code=reason_code)
    insert_together([entry])


def dispatch_wake_up(attempt: Attempt) -> None:
    """Wakes a worker up after the commit, if the attempt is ours to execute. Call it after making it eligible."""
    if not is_ours_to_execute(attempt):
        return
    if attempt.origin_step is not None:
        wake_up(STEP_DISPATCH, attempt.id)
    else:
        # Without an id: the worker takes the attempt whose turn it is.
        wake_up_once(DISPATCH)


def retries_due() -> int:
    """Wakes workers up for due attempts: due retries, those whose first wake-up was lost, and those whose receiver may
    be asked again. Returns how many steps it named, and one for all others."""
    # By the database's clock, as the lease itself. A wake-up too many does no harm: the lease decides.
    due = Attempt.objects.filter(
        state=AttemptState.APPROVED,
        next_eligible_at__lte=Now(),
        queued_until=None,
        runtime_mode=RuntimeMode.ACTIVE,
    ).exclude(connector=AdapterName.EXTERNAL)
    steps = due.filter(origin_step__isnull=False).order_by("next_eligible_at")
    ids = list(steps.values_list("id", flat=True)[:BATCH])
    others = due.filter(origin_step=None).order_by().exists()
    # In a transaction, because `wake_up` sends on commit: all messages are sent after the query, not between.
    with transaction.atomic():
        for attempt_id in ids:
            wake_up(STEP_DISPATCH, attempt_id)
        if others:
            wake_up_once(DISPATCH)
    return len(ids) + others


@dataclass(frozen=True, slots=True)
class FencedReport:
    """Who reports, and under which fence. None: the token is not valid, and no lease matches it."""

    attempt_id: UUID
    fence: int | None
    executor: str


@dataclass(frozen=True, slots=True)
class LeaseCheck:
    """The locked attempt, the intent of this executor under this fence (or None), and whether the lease is alive."""

    attempt: Attempt
    intent: DispatchIntent | None
    alive: bool
    now: datetime

    @property
    def holds(self) -> bool:
        return self.intent is not None and self.alive


def _lease_check_lock(*, report: FencedReport) -> LeaseCheck:
    """Locks the attempt (FOR NO KEY UPDATE) and compares its lease with the report. An attempt of another organization
    is not found."""
    # Under the lock: without it a lease could expire and be given to somebody else between the check and the receipt.
    attempt = tenant_get(Attempt, report.attempt_id, lock=True)
    # Read after the lock, because waiting for the lock takes time; the database's clock ended or extended the lease.
    now = database_now()
    intent = DispatchIntent.objects.filter(
        attempt_id=attempt.id, fence=report.fence or 0, executor_ref=report.executor
    ).first()
    alive = (
        attempt.state == AttemptState.APPROVED
        and attempt.lease_token == report.fence
        and attempt.lease_expires_at is not None
        and (attempt.lease_expires_at > now or lease_deadline(attempt.lease_expires_at, now=now) > now)
    )
    return LeaseCheck(attempt, intent, alive, now)


def _reported_before(*, check: LeaseCheck, outcome: ReceiptOutcome) -> bool:
    """Whether this report was already recorded, and its answer got lost: then it is answered again, not refused."""
    return (
        check.intent is not None
        and Receipt.objects.filter(intent_id=check.intent.id, outcome=outcome, late=False).exists()
    )


def _late_keep(*, check: LeaseCheck, outcome: ReceiptOutcome, actor: Actor, at: datetime) -> None:
    """Keeps a report under a lost lease as evidence: outcome and ids, once per intent and outcome. It settles nothing.
    If it contradicts what was reported before, the attempt is set apart for a person and not tried again."""
    # Only for a real intent of this executor: anybody could send reports under invented fences.
    if check.intent is None:
        return
    if Receipt.objects.filter(intent_id=check.intent.id, attempt_id=check.attempt.id, outcome=outcome).exists():
        return
    receipt = Receipt(
        attempt=check.attempt,
        intent=check.intent,
        outcome=outcome,
        late=True,
        reason_code="" if outcome is ReceiptOutcome.SUCCESS else "lease_lost",
        at=at,
    )
    payload = {"receipt": str(receipt.id), "outcome": outcome.value, "fence": check.intent.fence}
    insert_together(
        [receipt], [entry_build(check.attempt, "attempt.late_evidence", actor=actor, at=at, payload=payload)]
    )
    _contradiction_open(check, receipt, actor=actor, at=at)


def _contradiction_open(check: LeaseCheck, late: Receipt, *, actor: Actor, at: datetime) -> None:
    """Quarantines an attempt that would be tried again, if this late report says the opposite of the first one."""
    # Also while another executor has a newer lease: its report is then late evidence too, and a person sees all of it.
    earlier = Receipt.objects.filter(intent_id=late.intent_id, late=False).exclude(outcome=late.outcome).first()
    if earlier is None or check.attempt.state != AttemptState.APPROVED:
        return
    reports = [str(earlier.id), str(late.id)]
    quarantine_open(
        check.attempt,
        actor=actor,
        at=at,
        category=QuarantineCategory.OUTCOME_UNKNOWN,
        reason_code="outcome_unknown",
        payload={"trigger": CONTRADICTED, "fence": check.attempt.lease_token, "reports": reports},
    )


def lease_lost(check: LeaseCheck) -> LeaseLost:
    """The error for a lost lease. It counts as misuse by the rule of the attempt's contract."""
    attempt = check.attempt
    return LeaseLost(
        subject_type="attempt",
        subject_id=attempt.id,
        organization_id=attempt.organization_id,
        misuse_rule=documents_of(attempt)["throttles_and_misuse"]["misuse"],
    )


# Signed, because an executor presents the token: a plain number could be guessed, and a report for somebody else's
# lease be forged. The epoch makes tokens from before a restore invalid: after it the same fence is given out again.
_signer = Signer(salt="holdpoint.attempts.lease")


def lease_token_make(*, attempt_id: UUID, fence: int, epoch: str) -> str:
    return _signer.sign(f"{attempt_id}:{fence}:{epoch}")


def lease_token_read(*, token: str, attempt_id: UUID, epoch: str) -> int | None:
    """The fence, or None if the token is not valid for this attempt in this epoch."""
    try:
        named, fence, given = _signer.unsign(token).split(":")
    except (BadSignature, ValueError):
        return None
    return int(fence) if (named, given) == (str(attempt_id), epoch) else None


@violations_recorded
def attempt_heartbeat(*, actor: Actor, at: datetime, report: FencedReport) -> Attempt:
    """Extends a lease that is still alive. An expired one stays expired."""
    with transaction.atomic():
        check = _lease_check_lock(report=report)
        if check.holds:
            check.attempt.lease_expires_at = check.now + timedelta(seconds=LEASE_SECONDS)
            check.attempt.save(update_fields=["lease_expires_at"])
            return check.attempt
    raise lease_lost(check)


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
        check = _lease_check_lock(report=report)
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
        if _reported_before(check=check, outcome=ReceiptOutcome.SUCCESS):
            return check.attempt
        _late_keep(check=check, outcome=ReceiptOutcome.SUCCESS, actor=actor, at=at)
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
        check = _lease_check_lock(report=report)
        if check.holds:
            _apply(check, failure, actor=actor, at=at)
            crash_point("before_commit")
            return check.attempt
        if _reported_before(check=check, outcome=ReceiptOutcome.FAILURE) or _agrees(check, report, failure):
            return check.attempt
        if not failure.outcome_unknown:
            _late_keep(check=check, outcome=ReceiptOutcome.FAILURE, actor=actor, at=at)
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
    category = failure.category
    if plan.why == "window_passed":  # it would be tried again, but the time for it is over
        category = category_for(documents_of(attempt), "deadline_passed_before_intent")
        payload["trigger"] = "deadline_passed_before_intent"
    quarantine_open(attempt, actor=actor, at=at, category=category, reason_code=failure.reason_code, payload=payload)


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
