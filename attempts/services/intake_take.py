"""Taking a request in. Nearly always its rows go into the database with one statement, which is a transaction of its
own; where that cannot be, or somebody else is at work on the key or the last place, step by step under locks."""

from contextlib import nullcontext
from dataclasses import dataclass

from django.db import IntegrityError, connection, transaction

from attempts.errors import KeyConflict, KeyExpired, KeyInProgress
from attempts.models import Attempt, IdempotencyRecord, Review, Slot
from attempts.services.idempotency import KeyUse, key_lock, key_look_up, key_use
from attempts.services.intake_answer import Answer
from attempts.services.intake_build import Ask, Built, afterwards, build
from attempts.services.intake_gate import GATE, gate_parameters
from attempts.services.slots import place_take, slots_release, slots_take
from governance.insert import insert_together
from governance.ledger.append import ledger_append, ledger_entry_build
from governance.models import EnforcementDecision
from governance.pending import Pending
from governance.throttling import ThrottleAnswer, throttle_take, throttle_take_once
from reasoncodes.errors import DomainError, FieldError
from reasoncodes.ids import uuid7


@dataclass(frozen=True, slots=True)
class Taken:
    """How it came out. `new` has the attempt, `replayed` the first answer, the others a refusal that is on record."""

    use: KeyUse
    answer: Answer | None = None
    refusal: DomainError | None = None
    attempt: Attempt | None = None
    decision: EnforcementDecision | None = None
    review: Review | None = None
    retry_after: int | None = None


def take_in(ask: Ask) -> Taken:
    """For a request from outside, in no transaction. What the door found under its key decides what it is."""
    if ask.intake.known is None:
        with transaction.atomic():
            return take_in_step_by_step(ask)
    use = _use(ask, ask.intake.known)
    if use.outcome == "replayed" and use.record is not None:
        return Taken(use, answer=_replay(ask, use.record, use.state))
    taken: Taken | ThrottleAnswer | None = None
    if use.outcome == "new":
        taken = _take_at_once(ask, use)
    if isinstance(taken, Taken):
        return taken
    with transaction.atomic():
        return take_in_step_by_step(ask, throttle=taken)


def take_in_step_by_step(ask: Ask, *, throttle: ThrottleAnswer | None = None) -> Taken:
    """In the caller's transaction, which nothing here breaks. `throttle`: what was taken from the limits already."""
    use = _look_up(ask) if ask.is_deduplicated else KeyUse("new")
    if use.outcome == "replayed" and use.record is not None:
        return Taken(use, answer=_replay(ask, use.record, use.state))
    refusal = _key_refusal(ask, use)
    if refusal is not None:
        return Taken(use, refusal=refusal)
    attempt_id = uuid7()
    throttle = throttle or throttle_take(limits=ask.limits)
    caps = ask.caps if throttle.status == "ok" else []
    busy = slots_take(organization_id=ask.intake.credential.organization.id, attempt_id=attempt_id, caps=caps)
    built = build(ask, use, attempt_id, throttle, busy)
    if built.attempt.ended_at is not None and caps and busy is None:
        slots_release(attempt_id=attempt_id)
    insert_together(*built.groups)
    return _taken(ask, use, built)


def take_in_pending(ask: Ask, pending: Pending, *, keeps: bool) -> Taken:
    """As step by step, for a request that its caller's transaction sends on at once: its rows are left to the caller.
    `keeps` false: it also ends there, so that it holds its places no longer than the transaction."""
    attempt_id, organization_id = uuid7(), ask.intake.credential.organization.id
    throttle = throttle_take(limits=ask.limits)
    place = place_take(
        lock=key_lock(organization_id=organization_id, scope=ask.scope, key=ask.key) if ask.is_deduplicated else None,
        organization_id=organization_id,
        scope=ask.scope,
        key=ask.key,
        attempt_id=attempt_id,
        caps=ask.caps if throttle.status == "ok" else [],
        keeps=keeps,
    )
    if place.known:
        return take_in_step_by_step(ask, throttle=throttle)
    built = build(ask, KeyUse("new"), attempt_id, throttle, place.busy)
    if place.busy is None:
        _settle_places(ask, built, pending, keeps=keeps)
    pending.add_groups(built.groups)
    return _taken(ask, KeyUse("new"), built, rings=False)


def _settle_places(ask: Ask, built: Built, pending: Pending, *, keeps: bool) -> None:
    """A denied one gives its places back; one that people hold keeps them, whatever was meant to become of it."""
    attempt = built.attempt
    if keeps and attempt.ended_at is not None:
        pending.remove(Slot, "attempt_id", attempt.id)
    elif not keeps and built.decision.verdict == "needs_approval":
        slots_take(organization_id=attempt.organization_id, attempt_id=attempt.id, caps=ask.caps)


def _take_at_once(ask: Ask, use: KeyUse) -> Taken | ThrottleAnswer | None:
    """Decided as if a place were free, then written on that condition. Not taken in: what the limits said, or nothing
    if they were not asked because somebody else has just come with this key."""
    organization_id = ask.intake.credential.organization.id
    lock = key_lock(organization_id=organization_id, scope=ask.scope, key=ask.key) if ask.is_deduplicated else None
    throttle = throttle_take_once(limits=ask.limits, claim=lock) if lock else throttle_take(limits=ask.limits)
    if throttle is None:
        return None
    built = build(ask, use, uuid7(), throttle, None)
    parameters = gate_parameters(
        lock=lock,
        organization_id=organization_id,
        scope=ask.scope,
        key=ask.key,
        generation=use.record.generation + 1 if use.record else 1,
        caps=ask.caps if throttle.status == "ok" else [],
        attempt_id=built.attempt.id,
        keeps=built.attempt.ended_at is None,
    )
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            locked, went = insert_together(*built.groups, gate=GATE, parameters=parameters)
    except IntegrityError:  # what the statement could not see any more: another request's record or place
        return throttle
    if not locked:
        raise KeyInProgress
    return _taken(ask, use, built) if went else throttle


def _taken(ask: Ask, use: KeyUse, built: Built, *, rings: bool = True) -> Taken:
    afterwards(ask, built.attempt, rings=rings)
    retry_after = built.computed.decision.retry_after
    return Taken(use, built.answer, None, built.attempt, built.decision, built.review, retry_after)


def _look_up(ask: Ask) -> KeyUse:
    return key_look_up(
        organization_id=ask.intake.credential.organization.id,
        scope=ask.scope,
        key=ask.key,
        fingerprint=ask.fingerprint,
        policy=ask.documents["idempotency_key_policy"],
        at=ask.intake.at if ask.intake.origin_step is None else None,
    )


def _use(ask: Ask, known: tuple[tuple[object, ...], ...]) -> KeyUse:
    if not known or not ask.is_deduplicated:
        return KeyUse("new")
    policy = ask.documents["idempotency_key_policy"]
    return key_use(known, scope=ask.scope, fingerprint=ask.fingerprint, policy=policy, at=ask.intake.at)


def _replay(ask: Ask, record: IdempotencyRecord, state: str) -> Answer:
    """The first answer again. All that is written is that it was given."""
    entry = ledger_entry_build(
        action="attempt.replayed",
        organization_id=record.organization_id,
        subject_type="attempt",
        subject_id=record.attempt_id,
        actor=ask.intake.credential.actor,
        at=ask.intake.at,
        payload={"state": state},
    )
    insert_together([entry], alone=True)
    headers = {"Idempotent-Replayed": "true", "Attempt-State": state}
    if record.status in {201, 202}:
        headers["Location"] = f"/api/v1/attempts/{record.attempt_id}"
    return Answer(record.status, record.body, headers, is_problem=record.status >= 400, attempt_id=record.attempt_id)


def _key_refusal(ask: Ask, use: KeyUse) -> DomainError | None:
    """Committed as a ledger entry, then raised."""
    if use.record is None or use.outcome == "new":
        return None
    action, refusal = {
        "conflicting": (
            "attempt.conflicted",
            KeyConflict(errors=[FieldError(f"/{part}", "differs from the first request") for part in use.differing]),
        ),
        "expired": ("attempt.key_expired", KeyExpired(extensions={"attempt_id": str(use.record.attempt_id)})),
    }[use.outcome]
    ledger_append(
        action=action,
        organization_id=use.record.organization_id,
        subject_type="attempt",
        subject_id=use.record.attempt_id,
        actor=ask.intake.credential.actor,
        at=ask.intake.at,
        payload={"differing": list(use.differing)},
    )
    return refusal
