"""Who holds the lease? The row under its lock against the fence that a report brings, by the database's clock."""

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
    """Who reports under which fence. A fence of None stands for a token that is not ours."""

    attempt_id: UUID
    fence: int | None
    executor: str


@dataclass(frozen=True, slots=True)
class LeaseCheck:
    """The locked attempt; `intent` is the one of this executor under this fence, if there is one."""

    attempt: Attempt
    intent: DispatchIntent | None
    alive: bool
    now: datetime

    @property
    def holds(self) -> bool:
        return self.intent is not None and self.alive


def lease_check_lock(*, report: FencedReport) -> LeaseCheck:
    """Locks the attempt (FOR NO KEY UPDATE). Somebody else's does not exist."""
    attempt = tenant_get(Attempt, report.attempt_id, lock=True)
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
    """The same report again, because its answer got lost on the way: it is answered again."""
    return (
        check.intent is not None
        and Receipt.objects.filter(intent_id=check.intent.id, outcome=outcome, late=False).exists()
    )


def late_keep(*, check: LeaseCheck, outcome: ReceiptOutcome, actor: Actor, at: datetime) -> None:
    """Outcome and ids only, once per intent and outcome. It changes nothing; whoever looks into the case sees it."""
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
    """Counted towards misuse as the attempt's contract says."""
    attempt = check.attempt
    return LeaseLost(
        subject_type="attempt",
        subject_id=attempt.id,
        organization_id=attempt.organization_id,
        misuse_rule=documents_of(attempt)["throttles_and_misuse"]["misuse"],
    )


_signer = Signer(salt="holdpoint.attempts.lease")


def lease_token_make(*, attempt_id: UUID, fence: int, epoch: str) -> str:
    return _signer.sign(f"{attempt_id}:{fence}:{epoch}")


def lease_token_read(*, token: str, attempt_id: UUID, epoch: str) -> int | None:
    """The fence, or nothing when the token is not one of ours for this attempt in this epoch."""
    try:
        named, fence, given = _signer.unsign(token).split(":")
    except (BadSignature, ValueError):
        return None
    return int(fence) if (named, given) == (str(attempt_id), epoch) else None


@violations_recorded
def attempt_heartbeat(*, actor: Actor, at: datetime, report: FencedReport) -> Attempt:
    with transaction.atomic():
        check = lease_check_lock(report=report)
        if check.holds:
            check.attempt.lease_expires_at = check.now + timedelta(seconds=LEASE_SECONDS)
            check.attempt.save(update_fields=["lease_expires_at"])
            return check.attempt
    raise lease_lost(check)
