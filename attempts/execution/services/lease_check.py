"""Checks who has the lease, makes and reads lease tokens, extends leases, and keeps reports that come too late."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.core.signing import BadSignature, Signer
from django.db import transaction

from attempts.execution.errors import LeaseLost
from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.services.lease import LEASE_SECONDS
from attempts.execution.states import ReceiptOutcome
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import documents_of
from attempts.lifecycle.services.transition import entry_build
from attempts.lifecycle.states import AttemptState
from attempts.reviews.selectors.reviews import database_now
from governance.sql.insert import insert_together
from governance.tenancy.selectors import tenant_get
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor


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


def lease_check_lock(*, report: FencedReport) -> LeaseCheck:
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
        and attempt.lease_expires_at > now
    )
    return LeaseCheck(attempt, intent, alive, now)


def reported_before(*, check: LeaseCheck, outcome: ReceiptOutcome) -> bool:
    """Whether this report was already recorded, and its answer got lost: then it is answered again, not refused."""
    return (
        check.intent is not None
        and Receipt.objects.filter(intent_id=check.intent.id, outcome=outcome, late=False).exists()
    )


def late_keep(*, check: LeaseCheck, outcome: ReceiptOutcome, actor: Actor, at: datetime) -> None:
    """Keeps a report under a lost lease as evidence: outcome and ids, once per intent and outcome. The state of the
    attempt does not change."""
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
        check = lease_check_lock(report=report)
        if check.holds:
            check.attempt.lease_expires_at = check.now + timedelta(seconds=LEASE_SECONDS)
            check.attempt.save(update_fields=["lease_expires_at"])
            return check.attempt
    raise lease_lost(check)
