"""Intake: reserve key and slots, decide, and write attempt, decision, transitions, review, record and ledger entries.

All rows commit together or not at all. What the rows contain is in `rows`, the checks before it in `door`.
"""

# There is one decision (`decide`) and one writer (`_admit`) with two sinks. `WriteNow` puts the reservation and all
# rows into one statement, which is a transaction of its own: nearly every request from outside. `LeaveToCaller`
# reserves in the caller's transaction and adds the rows to the caller's pending rows: workflow steps, and requests that
# lost a race for their key or for the last slot.

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Model

from attempts.execution.services.outcome import dispatch_wake_up
from attempts.intake.errors import KeyConflict, KeyExpired, KeyInProgress
from attempts.intake.models import EffectAsk, IdempotencyRecord, RepeatedRefusal
from attempts.intake.services.door import CheckedIntake, Intake, KeyUse, intake_check
from attempts.intake.services.effect import Asked, effect_ask_build, effect_look_up, effect_of
from attempts.intake.services.repeats import Repeated, refusal_first, refusal_repeated, repeated_entry
from attempts.intake.services.rows import (
    IntakeAnswer,
    answer_again,
    answer_build,
    answer_text,
    attempt_build,
    key_record_build,
    moves_build,
    request_build,
)
from attempts.lifecycle.models import Attempt, AttemptTransition
from attempts.lifecycle.services.hold import review_build
from attempts.lifecycle.services.slots import Busy, Claim, Reserved, queue_enter, slots_reserve, wait_seconds
from attempts.lifecycle.sql import RESERVATION_CONDITION
from attempts.lifecycle.states import SlotScope, is_ours_to_execute
from attempts.reviews.models import Review
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.services import Computed, decision_compute, decision_row
from governance.ledger.models import LedgerEntry
from governance.ledger.services import ledger_append, ledger_entry_build
from governance.sql.insert import Pending, insert_together
from governance.throttles.services import ThrottleAnswer, throttle_take, throttle_take_once
from governance.violations.services import misuse_strike
from reasoncodes.base.errors import DomainError, FieldError
from reasoncodes.base.ids import uuid7
from reasoncodes.base.tenancy import tenant_scope


@dataclass(frozen=True, slots=True)
class Decided:
    """All rows of one request and its answer, in memory. Nothing is written yet."""

    decision: EnforcementDecision
    attempt: Attempt
    review: Review | None
    transitions: list[AttemptTransition]
    entries: list[LedgerEntry]
    record: IdempotencyRecord | None
    answer: IntakeAnswer
    computed: Computed
    effect_ask: EffectAsk | None = None
    first: RepeatedRefusal | None = None
    """Where repetitions of this refusal are counted."""

    @property
    def groups(self) -> list[Sequence[Model]]:
        beside = [[row] if row else [] for row in (self.review, self.record, self.effect_ask, self.first)]
        return [[self.decision], [self.attempt], self.transitions, self.entries, *beside]


@dataclass(frozen=True, slots=True)
class Admission:
    """The result of admitting: `decided` for a new key, the first answer for a replayed one, else a refusal."""

    use: KeyUse
    answer: IntakeAnswer | None = None
    refusal: DomainError | None = None
    decided: Decided | None = None
    repeated: Repeated | None = None
    """Set if this request was refused before for the same reason; `refused_as` is the reason."""
    refused_as: str = ""


class Sink(Protocol):
    """Where the rows of an intake go, and when its key and slots are reserved."""

    @property
    def guards_key(self) -> bool:
        """Whether the reservation must lock the key and look for its record."""

    def reserve(self, claim: Claim) -> Reserved: ...

    def write(self, decided: Decided, claim: Claim, reserved: Reserved) -> bool:
        """False: nothing was written, because another request took the key or a slot."""

    def note(self, entry: LedgerEntry) -> None:
        """Writes an entry about an attempt that is stored."""


@dataclass(frozen=True, slots=True)
class WriteNow:
    """Writes what was decided on the condition that key and slot are free."""

    guards_key: bool = True

    def reserve(self, claim: Claim) -> Reserved:
        return Reserved()

    def write(self, decided: Decided, claim: Claim, reserved: Reserved) -> bool:
        parameters = claim.parameters()
        try:
            # A savepoint inside a caller's transaction: without it an error of a unique constraint would abort the
            # caller's work too. Otherwise none: the one statement is its own transaction and saves BEGIN and COMMIT.
            with transaction.atomic() if connection.in_atomic_block else nullcontext():
                locked, went = insert_together(*decided.groups, condition=RESERVATION_CONDITION, parameters=parameters)
        except IntegrityError:
            # Another request committed its record or slot after this statement began, so the admit condition could not
            # see it. The caller tries again under the key's lock.
            return False
        if not locked:
            raise KeyInProgress
        return bool(went)

    def note(self, entry: LedgerEntry) -> None:
        insert_together([entry], alone=True)


@dataclass(frozen=True, slots=True)
class LeaveToCaller:
    """`keeps` false: the caller ends the attempt in the same transaction, so its slots need no rows."""

    pending: Pending
    keeps: bool
    guards_key: bool

    def reserve(self, claim: Claim) -> Reserved:
        return slots_reserve(claim, keeps=self.keeps)

    def write(self, decided: Decided, claim: Claim, reserved: Reserved) -> bool:
        self.pending.add_groups(decided.groups)
        return True

    def note(self, entry: LedgerEntry) -> None:
        self.pending.add(entry)


def attempt_create(*, intake: Intake) -> IntakeAnswer:
    """From a parsed body to a recorded answer."""
    with tenant_scope(intake.credential.actor.organization_ids):
        admission = admit(intake_check(intake))
    if admission.answer is None:
        raise admission.refusal or RuntimeError("an intake without an answer")
    return admission.answer


def admit(asked: CheckedIntake) -> Admission:
    """Admits a request from outside: with one statement if its key looks new, otherwise under the key's lock."""
    # The lock is needed if the key was not read, if a refusal is about to be recorded for it, or if another request is
    # using the key or took the last slot.
    use, throttle, admission = asked.use_as_read(), None, None
    if use is not None and use.outcome == "replayed":
        return _settled(asked, use)
    if use is not None and use.outcome == "new":
        throttle = _limits_once(asked)
        # An effect that must be recognised is looked up under its lock, before it is decided.
        admission = _admit(asked, use, throttle, WriteNow()) if throttle and not effect_of(asked) else None
    if admission is None:
        # `throttle` is passed on: a request must not be counted twice because it lost a race.
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
    """Admits a request in the caller's transaction and leaves its rows in `pending`. `throttle`: what was already taken
    from the limits. `looks_first`: lock the key and read its record before anything else."""
    # Looking first costs two more round trips and is certain. Without it the reservation does both in one statement,
    # and the unique constraint refuses a record that was committed while that statement ran.
    use = asked.use_under_lock() if looks_first else KeyUse("new")
    if use.outcome != "new":
        return _settled(asked, use)
    throttle = throttle or throttle_take(limits=asked.limits)
    admission = _admit(asked, use, throttle, LeaveToCaller(pending, keeps, guards_key=not looks_first))
    return admission or admit_pending(asked, pending, keeps=keeps, throttle=throttle, looks_first=True)


def _admit(asked: CheckedIntake, use: KeyUse, throttle: ThrottleAnswer, sink: Sink) -> Admission | None:
    """Decides, reserves, writes. None: another request used the key or took a slot, and nothing was written."""
    # Decided as if there were free slots, because what a request needs depends on the verdict: only what may be
    # executed needs a slot. If there is none, it is decided again, with that fact.
    attempt_id = uuid7()
    effect = effect_of(asked)
    found = effect_look_up(asked, effect) if effect else None
    decided = decide(asked, use, attempt_id, throttle, None, found)
    claim = asked.claim(attempt_id, use=use, verdict=decided.decision.verdict, with_key=sink.guards_key)
    reserved = sink.reserve(claim)
    if reserved.known:
        return None
    if reserved.busy is not None:
        decided = decide(asked, use, attempt_id, throttle, reserved.busy, found)
    denied = decided.decision.verdict == "deny"
    repeated = refusal_repeated(asked, decided.computed) if denied else None
    if repeated is not None:
        return _again(asked, use, decided, repeated, throttle, sink)
    return Admission(use, decided.answer, None, decided) if sink.write(decided, claim, reserved) else None


def _again(
    asked: CheckedIntake, use: KeyUse, decided: Decided, repeated: Repeated, throttle: ThrottleAnswer, sink: Sink
) -> Admission:
    """The refusal of a request that was refused before: nothing is stored but its number."""
    if repeated.is_told:
        sink.note(repeated_entry(asked, repeated, reason_code=decided.decision.reason_code))
    answer = answer_again(asked.intake, repeated, throttle, decided.computed)
    return Admission(use, answer, repeated=repeated, refused_as=decided.decision.reason_code)


def decide(
    asked: CheckedIntake,
    use: KeyUse,
    attempt_id: UUID,
    throttle: ThrottleAnswer,
    busy: Busy | None,
    found: Asked | None = None,
) -> Decided:
    """Computes the decision, all rows and the exact answer. Writes nothing."""
    # Made before the decision, because the request that is decided about names the entry that tells of it.
    intake, at, entry_id = asked.intake, asked.intake.at, uuid7()
    computed = decision_compute(
        credential=intake.credential,
        intake=intake.facts,
        request=request_build(intake, asked.key, entry_id),
        at=at,
        deployment_region=intake.deployment_region,
        throttle=throttle.facts,
        concurrency=_concurrency(asked, busy),
        effect=found.fact if found else None,
    )
    decision = decision_row(computed=computed, at=at)
    attempt = attempt_build(intake, asked.key, attempt_id, computed, decision)
    review = review_build(attempt, decision, at, authorized_by=intake.authorized_by)
    queued = _queue(asked, attempt, decision, busy)
    transitions, entries = moves_build(attempt, decision, actor=intake.credential.actor, at=at, entry_id=entry_id)
    answer = answer_build(asked, attempt, decision, review, throttle, computed)
    record = key_record_build(asked, attempt, answer, use)
    ask = effect_ask_build(attempt, found)
    first = refusal_first(asked, attempt, computed) if decision.verdict == "deny" else None
    return Decided(decision, attempt, review, transitions, entries + queued, record, answer, computed, ask, first)


def _queue(
    asked: CheckedIntake, attempt: Attempt, decision: EnforcementDecision, busy: Busy | None
) -> list[LedgerEntry]:
    """An attempt that is allowed while a cap is full waits for a slot, and cannot be leased before it has one."""
    if busy is None or decision.verdict != "allow":
        return []
    rules, is_step = asked.documents["concurrency_and_locks"], asked.intake.origin_step is not None
    seconds = wait_seconds(rules, is_step=is_step)
    return [queue_enter(attempt, timeout_seconds=seconds, actor=asked.intake.credential.actor, at=asked.intake.at)]


def _concurrency(asked: CheckedIntake, busy: Busy | None) -> dict[str, Any]:
    rules = asked.documents["concurrency_and_locks"]
    facts = {"status": "ok", "busy": None, "when_busy": rules["when_busy"], "retry_after": 0}
    if busy is None:
        return facts
    if busy.cap.scope is SlotScope.HOLDS:
        # What would wait for people cannot wait for a place to do so: that queue would have no end.
        facts["when_busy"] = "deny"
    elif asked.intake.origin_step is not None:
        # Nobody hears a refusal: the engine would ask again and again. The step waits in the queue instead.
        facts["when_busy"] = "queue"
    facts |= {"status": "busy", "busy": busy.cap.scope.value, "retry_after": rules["retry_after_seconds"]}
    # Only with a refusal: a decision that allows is stored by what it has in common with others, and the use differs.
    return facts | ({"cap": busy.facts} if facts["when_busy"] == "deny" else {})


def _limits_once(asked: CheckedIntake) -> ThrottleAnswer | None:
    """None: another request with this key came a moment ago, and nothing was taken from the limits."""
    # Without the claim a burst of repetitions of one request would use up the limits of its caller.
    if asked.lock is None:
        return throttle_take(limits=asked.limits)
    return throttle_take_once(limits=asked.limits, claim=asked.lock)


def _afterwards(asked: CheckedIntake, admission: Admission) -> None:
    """What follows after the commit: the wake-up of a worker, and a strike for forbidden metadata."""
    if admission.decided is None:
        return
    intake, attempt = asked.intake, admission.decided.attempt
    if is_ours_to_execute(attempt):
        dispatch_wake_up(attempt)
    if attempt.reason_code == "metadata_boundary":
        rule = asked.documents["throttles_and_misuse"]["misuse"]
        # On commit: a strike can suspend the account, and must not count for a request that was rolled back.
        transaction.on_commit(lambda: misuse_strike(actor=intake.credential.actor, at=intake.at, rule=rule))


def _settled(asked: CheckedIntake, use: KeyUse) -> Admission:
    """The answer for a key that was used before and is not free again."""
    if use.record is None:
        raise ValueError(f"a key that is {use.outcome} has a record")
    if use.outcome == "replayed":
        return Admission(use, answer=_replay(asked, use.record, use.state))
    return Admission(use, refusal=_refuse_key(asked, use, use.record))


def _replay(asked: CheckedIntake, record: IdempotencyRecord, state: str) -> IntakeAnswer:
    """Gives the first answer again. The only row written is a ledger entry about it."""
    entry = ledger_entry_build(
        action="attempt.replayed",
        organization_id=record.organization_id,
        subject_type="attempt",
        subject_id=record.attempt_id,
        actor=asked.intake.credential.actor,
        at=asked.intake.at,
        payload={"state": state},
    )
    # `alone`: the entry describes no change, so it needs no transaction with other rows.
    insert_together([entry], alone=True)
    headers = {"Idempotent-Replayed": "true", "Attempt-State": state}
    if record.status in {201, 202}:
        headers["Location"] = f"/api/v1/attempts/{record.attempt_id}"
    return IntakeAnswer(
        record.status, answer_text(record), headers, is_problem=record.status >= 400, attempt_id=record.attempt_id
    )


def _refuse_key(asked: CheckedIntake, use: KeyUse, record: IdempotencyRecord) -> DomainError:
    """Puts the refusal on the ledger and returns it. The caller raises it after the commit."""
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
