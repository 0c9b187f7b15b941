"""Intake: key, attempt, decision, transitions, review and ledger entries. All are committed, or none.

There is one decision (`decide`) and one way to what is written (`_admit`): reserve key and slots, decide, write. It has
two sinks. `WriteNow` puts the reservation and all rows into one statement, which is a transaction of its own: nearly
every request from outside. `LeaveToCaller` reserves in the caller's transaction and adds the rows to its pending ones:
a workflow step, and a request from outside that somebody else's use of the key or the last slot got in the way of.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Model

from attempts.intake.errors import KeyConflict, KeyExpired, KeyInProgress
from attempts.intake.models import IdempotencyRecord
from attempts.intake.services.door import CheckedIntake, Intake, intake_check
from attempts.intake.services.idempotency import KeyUse
from attempts.intake.services.rows import (
    IntakeAnswer,
    answer_build,
    attempt_build,
    key_record_build,
    moves_build,
    request_build,
    review_build,
)
from attempts.lifecycle.models import Attempt, AttemptTransition, Slot
from attempts.lifecycle.services.slots import Claim, Reserved, slots_reserve, slots_take
from attempts.lifecycle.services.transition import queue_enter
from attempts.lifecycle.sql import RESERVATION_GATE
from attempts.lifecycle.states import DISPATCH, is_ours_to_execute
from attempts.reviews.models import Review
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import Computed, decision_compute, decision_row
from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append, ledger_entry_build
from governance.outside.wake_up import wake_up
from governance.sql.insert import Pending, insert_together
from governance.throttles.services import ThrottleAnswer, throttle_take, throttle_take_once
from governance.violations.services import misuse_strike
from reasoncodes.base.errors import DomainError, FieldError
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import tenant_scope


@dataclass(frozen=True, slots=True)
class Decided:
    """Everything that is written of a request. Nothing of it is on record yet."""

    decision: EnforcementDecision
    attempt: Attempt
    review: Review | None
    transitions: list[AttemptTransition]
    entries: list[LedgerEntry]
    record: IdempotencyRecord | None
    answer: IntakeAnswer
    computed: Computed

    @property
    def groups(self) -> list[Sequence[Model]]:
        review, record = [self.review] if self.review else [], [self.record] if self.record else []
        return [[self.decision], [self.attempt], self.transitions, self.entries, review, record]


@dataclass(frozen=True, slots=True)
class Admission:
    """How it came out. `new` has what was decided, `replayed` the first answer, the others a refusal on record."""

    use: KeyUse
    answer: IntakeAnswer | None = None
    refusal: DomainError | None = None
    decided: Decided | None = None


class Sink(Protocol):
    """Where the rows of an intake go, and with it, when its key and slots are reserved."""

    @property
    def guards_key(self) -> bool:
        """Whether the reservation has to lock the key and look for its record."""

    def reserve(self, claim: Claim) -> Reserved: ...

    def write(self, decided: Decided, claim: Claim, reserved: Reserved) -> bool:
        """False: not written, because key or slots went to somebody else."""


@dataclass(frozen=True, slots=True)
class WriteNow:
    """Decided as if key and slots were free, then written on that condition."""

    guards_key: bool = True

    def reserve(self, claim: Claim) -> Reserved:
        return Reserved()

    def write(self, decided: Decided, claim: Claim, reserved: Reserved) -> bool:
        """Within somebody's transaction a savepoint: a refusal by a unique constraint would end it otherwise."""
        parameters = claim.parameters(keeps=decided.attempt.ended_at is None)
        try:
            with transaction.atomic() if connection.in_atomic_block else nullcontext():
                locked, went = insert_together(*decided.groups, condition=RESERVATION_GATE, parameters=parameters)
        except IntegrityError:  # what the statement could not see any more: another request's record or slot
            return False
        if not locked:
            raise KeyInProgress
        return bool(went)


@dataclass(frozen=True, slots=True)
class LeaveToCaller:
    """`keeps` false: the attempt also ends in the caller's transaction, so it holds its slots no longer than that."""

    pending: Pending
    keeps: bool
    guards_key: bool

    def reserve(self, claim: Claim) -> Reserved:
        return slots_reserve(claim, keeps=self.keeps)

    def write(self, decided: Decided, claim: Claim, reserved: Reserved) -> bool:
        """A denied one gives its slots back; one that waits for people keeps them, whatever was meant to become of
        it."""
        if claim.caps and reserved.busy is None:
            if self.keeps and decided.attempt.ended_at is not None:
                self.pending.remove(Slot, "attempt_id", claim.attempt_id)
            elif not self.keeps and decided.decision.verdict == "needs_approval":
                slots_take(organization_id=claim.organization_id, attempt_id=claim.attempt_id, caps=claim.caps)
        self.pending.add_groups(decided.groups)
        return True


def attempt_create(*, intake: Intake) -> IntakeAnswer:
    """The way of a request from its parsed body to an answer that is on record."""
    with tenant_scope(intake.credential.actor.organization_ids):
        admission = admit(intake_check(intake))
    if admission.answer is None:
        raise admission.refusal or RuntimeError("an intake without an answer")
    return admission.answer


def admit(asked: CheckedIntake) -> Admission:
    """For a request from outside. What the door found under its key says whether one statement can do it. Where that
    cannot be, because nobody looked or somebody else is at work on the key or the last slot: under the key's lock."""
    use, throttle, admission = asked.use_as_read(), None, None
    if use is not None and use.outcome == "replayed":
        return _settled(asked, use)
    if use is not None and use.outcome == "new":
        throttle = _limits_once(asked)
        admission = _admit(asked, use, throttle, WriteNow()) if throttle else None
    if admission is None:
        with transaction.atomic():
            pending = Pending()
            admission = admit_pending(asked, pending, throttle=throttle, looks_first=True)
            pending.write()
    _afterwards(asked, admission)
    return admission


def admit_pending(
    asked: CheckedIntake,
    pending: Pending,
    *,
    keeps: bool = True,
    throttle: ThrottleAnswer | None = None,
    looks_first: bool = False,
) -> Admission:
    """In the caller's transaction, which nothing here breaks; its rows are left in `pending`. `throttle`: what was
    taken from the limits already.

    `looks_first`: the key is locked, then its record read, in two statements: certain, and two trips more. Otherwise
    the reservation does both, and a record that is committed in that moment is refused by its unique constraint."""
    use = asked.use_under_lock() if looks_first else KeyUse("new")
    if use.outcome != "new":
        return _settled(asked, use)
    throttle = throttle or throttle_take(limits=asked.limits)
    admission = _admit(asked, use, throttle, LeaveToCaller(pending, keeps, guards_key=not looks_first))
    return admission or admit_pending(asked, pending, keeps=keeps, throttle=throttle, looks_first=True)


def _admit(asked: CheckedIntake, use: KeyUse, throttle: ThrottleAnswer, sink: Sink) -> Admission | None:
    """Reserve, decide, write. None: the key has been used, or a slot has gone; the caller looks under the lock."""
    claim = asked.claim(uuid7(), use=use, with_slots=throttle.status == "ok", with_key=sink.guards_key)
    reserved = sink.reserve(claim)
    if reserved.known:
        return None
    decided = decide(asked, use, claim.attempt_id, throttle, reserved.busy)
    return Admission(use, decided.answer, None, decided) if sink.write(decided, claim, reserved) else None


def decide(asked: CheckedIntake, use: KeyUse, attempt_id: UUID, throttle: ThrottleAnswer, busy: str | None) -> Decided:
    """The decision, with the rows and the exact answer. Nothing is written."""
    intake, at = asked.intake, asked.intake.at
    computed = decision_compute(
        credential=intake.credential,
        intake=intake.facts,
        request=request_build(intake, asked.key, attempt_id),
        at=at,
        deployment_region=intake.deployment_region,
        throttle=throttle.facts,
        concurrency=_concurrency(asked.documents, busy),
    )
    decision = decision_row(computed=computed, at=at)
    attempt = attempt_build(intake, asked.key, attempt_id, computed, decision)
    review = review_build(attempt, decision, at, authorized_by=intake.authorized_by)
    queued = _queue(asked, attempt, decision, busy)
    transitions, entries = moves_build(attempt, decision, actor=intake.credential.actor, at=at)
    answer = answer_build(intake, attempt, decision, review, throttle, computed)
    record = key_record_build(asked, attempt, answer, use)
    return Decided(decision, attempt, review, transitions, entries + queued, record, answer, computed)


def _queue(
    asked: CheckedIntake, attempt: Attempt, decision: EnforcementDecision, busy: str | None
) -> list[LedgerEntry]:
    """Allowed while a cap is full and the contract queues: it waits for a slot before anybody may lease it."""
    if busy is None or decision.verdict != "allow":
        return []
    seconds = asked.documents["concurrency_and_locks"]["queue_timeout_seconds"]
    return [queue_enter(attempt, timeout_seconds=seconds, actor=asked.intake.credential.actor, at=asked.intake.at)]


def _concurrency(documents: dict[str, Any], busy: str | None) -> dict[str, Any]:
    rules = documents["concurrency_and_locks"]
    return {
        "status": "busy" if busy else "ok",
        "busy": busy,
        "when_busy": rules["when_busy"],
        "retry_after": rules["retry_after_seconds"] if busy else 0,
    }


def _limits_once(asked: CheckedIntake) -> ThrottleAnswer | None:
    """None: somebody has just come with this key, and nothing was taken from the limits."""
    if asked.lock is None:
        return throttle_take(limits=asked.limits)
    return throttle_take_once(limits=asked.limits, claim=asked.lock)


def _afterwards(asked: CheckedIntake, admission: Admission) -> None:
    """After the commit."""
    if admission.decided is None:
        return
    intake, attempt = asked.intake, admission.decided.attempt
    if is_ours_to_execute(attempt):
        wake_up(DISPATCH, attempt.id)
    if attempt.reason_code == "metadata_boundary":
        rule = asked.documents["throttles_and_misuse"]["misuse"]
        transaction.on_commit(lambda: misuse_strike(actor=intake.credential.actor, at=intake.at, rule=rule))


def _settled(asked: CheckedIntake, use: KeyUse) -> Admission:
    """A key that was used before, and is not free again."""
    if use.record is None:
        raise ValueError(f"a key that is {use.outcome} has a record")
    if use.outcome == "replayed":
        return Admission(use, answer=_replay(asked, use.record, use.state))
    return Admission(use, refusal=_refuse_key(asked, use, use.record))


def _replay(asked: CheckedIntake, record: IdempotencyRecord, state: str) -> IntakeAnswer:
    """The first answer again. All that is written is that it was given."""
    entry = ledger_entry_build(
        action="attempt.replayed",
        organization_id=record.organization_id,
        subject_type="attempt",
        subject_id=record.attempt_id,
        actor=asked.intake.credential.actor,
        at=asked.intake.at,
        payload={"state": state},
    )
    insert_together([entry], alone=True)
    headers = {"Idempotent-Replayed": "true", "Attempt-State": state}
    if record.status in {201, 202}:
        headers["Location"] = f"/api/v1/attempts/{record.attempt_id}"
    return IntakeAnswer(
        record.status, record.body, headers, is_problem=record.status >= 400, attempt_id=record.attempt_id
    )


def _refuse_key(asked: CheckedIntake, use: KeyUse, record: IdempotencyRecord) -> DomainError:
    """Committed as a ledger entry, then raised by whoever asked."""
    action, refusal = {
        "conflicting": (
            "attempt.conflicted",
            KeyConflict(errors=[FieldError(f"/{part}", "differs from the first request") for part in use.differing]),
        ),
        "expired": ("attempt.key_expired", KeyExpired(extensions={"attempt_id": str(record.attempt_id)})),
    }[use.outcome]
    ledger_append(
        action=action,
        organization_id=record.organization_id,
        subject_type="attempt",
        subject_id=record.attempt_id,
        actor=asked.intake.credential.actor,
        at=asked.intake.at,
        payload={"differing": list(use.differing)},
    )
    return refusal
