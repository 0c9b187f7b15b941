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
class Report:
    """Who reports under which fence. A fence of None stands for a token that is not ours."""

    attempt_id: UUID
    fence: int | None
    executor: str


@dataclass(frozen=True, slots=True)
class Held:
    """The locked attempt; `intent` is the one of this executor under this fence, if there is one."""

    attempt: Attempt
    intent: DispatchIntent | None
    alive: bool
    now: datetime

    @property
    def holds(self) -> bool:
        return self.intent is not None and self.alive


def held_lock(*, report: Report) -> Held:
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
    return Held(attempt, intent, alive, now)


def reported_before(*, held: Held, outcome: ReceiptOutcome) -> bool:
    """The same report again, because its answer got lost on the way: it is answered again."""
    return (
        held.intent is not None
        and Receipt.objects.filter(intent_id=held.intent.id, outcome=outcome, late=False).exists()
    )


def late_keep(*, held: Held, outcome: ReceiptOutcome, actor: Actor, at: datetime) -> None:
    """Outcome and ids only, once per intent and outcome. It changes nothing; whoever looks into the case sees it."""
    if held.intent is None:
        return
    if Receipt.objects.filter(intent_id=held.intent.id, attempt_id=held.attempt.id, outcome=outcome).exists():
        return
    receipt = Receipt(
        attempt=held.attempt,
        intent=held.intent,
        outcome=outcome,
        late=True,
        reason_code="" if outcome is ReceiptOutcome.SUCCESS else "lease_lost",
        at=at,
    )
    payload = {"receipt": str(receipt.id), "outcome": outcome.value, "fence": held.intent.fence}
    insert_together(
        [receipt], [entry_build(held.attempt, "attempt.late_evidence", actor=actor, at=at, payload=payload)]
    )


def lease_lost(held: Held) -> LeaseLost:
    """Counted towards misuse as the attempt's contract says."""
    attempt = held.attempt
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
def attempt_heartbeat(*, actor: Actor, at: datetime, report: Report) -> Attempt:
    with transaction.atomic():
        held = held_lock(report=report)
        if held.holds:
            held.attempt.lease_expires_at = held.now + timedelta(seconds=LEASE_SECONDS)
            held.attempt.save(update_fields=["lease_expires_at"])
            return held.attempt
    raise lease_lost(held)
