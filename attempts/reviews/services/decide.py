"""Votes on reviews, and how a review ends. Checks happen under the locks; the vote and the end are recorded.

`review_vote` decides about held attempts. What follows from a vote on a workflow step is in `human_review`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from attempts.execution.services.outcome import dispatch_wake_up
from attempts.lifecycle.hooks import review_ended
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.hold import release_again
from attempts.lifecycle.services.slots import slot_or_queue
from attempts.lifecycle.services.transition import transition_apply
from attempts.lifecycle.states import AttemptState
from attempts.notify.services.announce import cards_touch
from attempts.quarantine.services.open import attempt_refuse
from attempts.reviews.errors import DigestChanged, ReleaseBlocked, TierComplete
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.rules import Delegated, Exclusion, Quorum, Voice, quorum_of_outcome
from attempts.reviews.selectors.reviews import (
    LockedReview,
    actor_at,
    database_now,
    release_blocked,
    review_deadline,
    review_lock,
)
from attempts.reviews.selectors.standing import ReviewStanding, refusal_of, standing_of
from attempts.reviews.services.signing import CheckedSignature, SignedWord, signature_store, signature_take
from attempts.reviews.states import FULFILLING, VERDICTS_OF, ReviewKind, ReviewStatus, VoteVerdict
from governance.boundary.models import Note
from governance.boundary.services import note_create, reference_check
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import actor_reference, ledger_append
from governance.people.selectors.people import person_stays
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import CLOCK, Actor, ActorKind
from reasoncodes.base.errors import DomainError, FieldError, InvalidInput, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

ACTION_OF = {
    ReviewStatus.APPROVED: "review.approved",
    ReviewStatus.REJECTED: "review.rejected",
    ReviewStatus.CONFIRMED: "review.confirmed",
    ReviewStatus.OVERRIDDEN: "review.overridden",
    ReviewStatus.DECIDED: "review.decided",
    ReviewStatus.EXPIRED: "review.expired",
    ReviewStatus.CANCELED: "review.canceled",
}


def review_end(
    review: Review,
    status: ReviewStatus,
    *,
    actor: Actor,
    at: datetime,
    reason_code: str = "",
    payload: Mapping[str, Any] | None = None,
    vote: ReviewVote | None = None,
) -> None:
    """Ends an open review and its claim, with a ledger entry, and refreshes its cards in the chat."""
    old = review.status
    if old != ReviewStatus.REQUESTED:
        raise WrongState(f"This review is {old}.")
    review.status = status.value
    review.decided_at = at
    review.claimed_by = None
    review.claimed_until = None
    review.save(update_fields=["status", "decided_at", "claimed_by", "claimed_until"])
    record_review(review, ACTION_OF[status], actor=actor, at=at, reason_code=reason_code, payload=payload)
    cards_touch(review)
    # Handlers are called only for human reviews of a workflow step (`origin_step`). The review of a held attempt has no
    # step: if a step opened that attempt, the attempt's own transition tells the engine. A canceled review of a step
    # calls none: the engine itself canceled it.
    if status is not ReviewStatus.CANCELED:
        review_ended(review, old=old, vote=vote, actor=actor, at=at)


def review_end_expired(locked: LockedReview, *, now: datetime) -> None:
    """Ends an overdue review and denies its attempt. The recorded time is the deadline, not when it was noticed."""
    review, at = locked.review, review_deadline(locked.review, now)
    if at is None:
        raise ValueError("a review without a deadline does not expire")
    review_end(review, ReviewStatus.EXPIRED, actor=CLOCK, at=at, reason_code="review_expired")
    if locked.attempt is not None:
        _attempt_deny(locked.attempt, review, actor=CLOCK, at=at, reason_code="review_expired")


def _attempt_deny(attempt: Attempt, review: Review, *, actor: Actor, at: datetime, reason_code: str) -> None:
    payload = {"review": str(review.id)}
    attempt_refuse(attempt, actor=actor, at=at, reason_code=reason_code, payload=payload)


def review_cancel(*, attempt: Attempt, actor: Actor, at: datetime, reason_code: str) -> Review | None:
    """Cancels the open review of an attempt that ends otherwise; None if there is none. The caller has locked the
    attempt and changes its state."""
    # Attempt before review, the lock order everywhere: the other way round this could deadlock with a vote.
    rows = Review.objects.select_for_update(no_key=True, of=("self",))
    review = rows.filter(attempt=attempt, status=ReviewStatus.REQUESTED).first()
    if review is None:
        return None
    review_end(review, ReviewStatus.CANCELED, actor=actor, at=at, reason_code=reason_code)
    return review


def record_review(
    review: Review,
    action: str,
    *,
    actor: Actor,
    at: datetime,
    reason_code: str = "",
    payload: Mapping[str, Any] | None = None,
) -> None:
    """Writes one ledger entry about a review."""
    ledger_append(
        action=action,
        organization_id=review.organization_id,
        subject_type="review",
        subject_id=review.id,
        actor=actor,
        at=at,
        payload={**_about(review), "tier": review.tier, **(payload or {})},
        reason_code=reason_code,
    )


def _about(review: Review) -> dict[str, str]:
    if review.attempt_id is not None:
        return {"attempt": str(review.attempt_id)}
    return {"kind": review.kind, "origin_step": str(review.origin_step)}


# The scope of reason codes that a person may choose from, by verdict.
SCOPE_OF = {
    VoteVerdict.APPROVE: Scope.INTERVENTION,
    VoteVerdict.REJECT: Scope.DENIAL,
    VoteVerdict.CONFIRM: Scope.INTERVENTION,
    VoteVerdict.OVERRIDE: Scope.INTERVENTION,
    VoteVerdict.DECLINE: Scope.HUMAN_DECLINE,
    VoteVerdict.ANSWER: Scope.INTERVENTION,
}


# Of the outcomes of a task. One person is enough for it, however many approvals the task asks for: as everywhere, one
# "no" ends what waits.
REFUSING = "reject"


@dataclass(frozen=True, slots=True)
class Word:
    """What the person submitted."""

    verdict: VoteVerdict
    action_digest: str
    reason_code: str = ""
    note: str = ""
    result_ref: str = ""
    result_sha256: str = ""
    via: str = ""
    """The chat that it came through; empty for the page and the API."""
    signature: SignedWord | None = None
    outcome: str = ""
    """Of a task; and the form, as it was filled in."""
    form: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CastVote:
    """A recorded vote, with the locked review and the quorum that includes it."""

    locked: LockedReview
    vote: ReviewVote
    quorum: Quorum
    actor: Actor
    at: datetime


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one kind of review: `unfit` returns a refusal, `settle` does what follows from a vote."""

    unfit: Callable[[LockedReview, ReviewStanding, Word], DomainError | None]
    settle: Callable[[CastVote], None]


def review_decide(*, actor: Actor, at: datetime, review_id: UUID, word: Word, rules: Rules) -> Review:
    return _decide(actor=actor_at(actor=actor, review_id=review_id), at=at, review_id=review_id, word=word, rules=rules)


@violations_recorded
def _decide(*, actor: Actor, at: datetime, review_id: UUID, word: Word, rules: Rules) -> Review:
    with transaction.atomic():
        # The quorum is computed from all votes. Without the lock two last votes could both see it as not yet met.
        locked = review_lock(review_id=review_id)
        # After the lock: a vote that waited for it beyond the deadline comes too late.
        now = database_now()
        expired = locked.overdue(now)
        if expired:
            review_end_expired(locked, now=now)
        person = actor.id if actor.kind is ActorKind.PERSON else None
        if person is not None:
            # Before the standing is read: access that ends at this moment waits for the vote, or the vote sees its end.
            person_stays(user_id=person)
        standing = standing_of(review=locked.review, attempt=locked.attempt, person=person, now=now)
        refusal = (
            refusal_of(review=locked.review, attempt=locked.attempt, standing=standing, now=now, expired=expired)
            or _unfit(locked, word)
            or rules.unfit(locked, standing, word)
        )
        if refusal is None:
            taken = signature_take(locked, verdict=word.verdict, signed=word.signature, person=person, now=now)
            if isinstance(taken, DomainError):
                refusal = taken
            else:
                rules.settle(_cast(locked, standing, word, taken, actor=actor, at=at))
    # After the commit: raised inside, the refusal would roll back the expiry that was found on the way.
    if refusal is not None:
        raise refusal
    return locked.review


def _unfit(locked: LockedReview, word: Word) -> DomainError | None:
    """Refuses a verdict that this kind of review does not have, or a vote on an action that has changed."""
    known = VERDICTS_OF[ReviewKind(locked.review.kind)]
    if word.verdict not in known:
        return WrongState(f"This review is decided by: {', '.join(known)}.")
    return DigestChanged() if word.action_digest != locked.review.action_digest else None


def _cast(
    locked: LockedReview,
    standing: ReviewStanding,
    word: Word,
    checked: CheckedSignature | None,
    *,
    actor: Actor,
    at: datetime,
) -> CastVote:
    review = locked.review
    note = _reason(review, word)
    voice = _voice(standing, word)
    vote = ReviewVote(
        review=review,
        voter_ref=actor_reference(actor),
        verdict=word.verdict.value,
        reason_code=word.reason_code,
        result_ref=word.result_ref,
        result_sha256=word.result_sha256,
        outcome=word.outcome,
        form=word.form,
        note=note,
        action_digest=word.action_digest,
        at=at,
    )
    vote.save()
    quorum = quorum_of_outcome(standing.facts, word.outcome, voice)
    signed = signature_store(vote=vote, checked=checked) if checked is not None else {}
    more = {"via": word.via, **signed}
    _record_vote(review, vote, quorum, actor=actor, at=at, more=more, standing_in=standing.stands_in)
    return CastVote(locked, vote, quorum, actor, at)


def claim_drop(review: Review) -> None:
    """Ends the claim of a review that stays open."""
    review.claimed_by, review.claimed_until = None, None
    review.save(update_fields=["claimed_by", "claimed_until"])


def _reason(review: Review, word: Word) -> Note | None:
    """Checks the reason code, which says whether a note is needed, and stores the note."""
    if word.reason_code:
        reason_code_require(
            organization_id=review.organization_id,
            scope=Scope.DENIAL if word.outcome == REFUSING else SCOPE_OF[word.verdict],
            code=word.reason_code,
            note=word.note,
            step_kind=(review.task or {}).get("step_kind", ""),
        )
    elif word.verdict not in FULFILLING:
        raise InvalidInput(errors=[FieldError("/reason_code", "is required", rule="required")])
    reference_check(reference=word.result_ref, pointer="/result_ref")
    return note_create(organization_id=review.organization_id, text=word.note)


def _voice(standing: ReviewStanding, word: Word) -> Voice:
    mandate = standing.mandate
    if isinstance(mandate, Exclusion):
        raise ValueError("an excluded person cannot vote")
    return Voice(standing.person, mandate.authority, word.verdict in FULFILLING, outcome=word.outcome)


def _record_vote(
    review: Review,
    vote: ReviewVote,
    quorum: Quorum,
    *,
    actor: Actor,
    at: datetime,
    more: Mapping[str, str],
    standing_in: tuple[Delegated, ...],
) -> None:
    payload: dict[str, Any] = {
        "vote": str(vote.id),
        "verdict": vote.verdict,
        "action_digest": vote.action_digest,
        "on_behalf_of": vote.on_behalf_of_ref or None,
        "approvals": quorum.approvals,
        "approvals_required": quorum.required,
        "note_sha256": vote.note.sha256 if vote.note else None,
    }
    if review.buckets:
        payload["by_tier"] = {bucket.tier: bucket.approvals for bucket in quorum.buckets}
    found = {"result_ref": vote.result_ref, "result_sha256": vote.result_sha256, "outcome": vote.outcome, **more}
    if vote.form is not None:
        found["form_sha256"] = canonical_sha256(vote.form)
    payload |= {name: value for name, value in found.items() if value}
    if standing_in:
        payload["stands_in_by"] = [str(row.id) for row in standing_in]
    record_review(review, "review.voted", actor=actor, at=at, reason_code=vote.reason_code, payload=payload)


def review_vote(
    *,
    actor: Actor,
    at: datetime,
    review_id: UUID,
    verdict: VoteVerdict,
    action_digest: str,
    reason_code: str = "",
    note: str = "",
    via: str = "",
    signature: SignedWord | None = None,
) -> Review:
    word = Word(verdict, action_digest, reason_code, note, via=via, signature=signature)
    return review_decide(actor=actor, at=at, review_id=review_id, word=word, rules=RELEASE)


def _unfit_release(locked: LockedReview, standing: ReviewStanding, word: Word) -> DomainError | None:
    """Refuses a vote on a changed action, and an approval that is blocked now or that no tier needs."""
    attempt = locked.attempt
    if attempt is None or word.action_digest != attempt.action_digest:
        return DigestChanged()
    if word.verdict is not VoteVerdict.APPROVE:
        return None
    # Checked at the lease too. Here it tells the person now, instead of letting an approval wait behind a shutdown.
    blocked = release_blocked(attempt=attempt)
    if blocked:
        return ReleaseBlocked(reason_code=blocked)
    return None if standing.approval_helps else TierComplete()


def _settle(cast: CastVote) -> None:
    review, attempt, vote = cast.locked.review, cast.locked.attempt, cast.vote
    if attempt is None:
        raise ValueError("a release is about an attempt")
    if vote.verdict == VoteVerdict.REJECT:
        review_end(review, ReviewStatus.REJECTED, actor=cast.actor, at=cast.at, reason_code=vote.reason_code)
        _attempt_deny(attempt, review, actor=cast.actor, at=cast.at, reason_code="review_rejected")
    elif cast.quorum.met:
        _release(cast, review, attempt)
    else:
        _wait_on(cast, review)


def _wait_on(cast: CastVote, review: Review) -> None:
    """Keeps the review open for the others. The queue shows it to the tiers whose approval still helps."""
    if review.claimed_by_id == cast.actor.id:
        claim_drop(review)
    if review.buckets:
        review.open_tiers = list(cast.quorum.open_tiers)
        review.save(update_fields=["open_tiers"])
    cards_touch(review)


def _release(cast: CastVote, review: Review, attempt: Attempt) -> None:
    actor, at = cast.actor, cast.at
    payload = {"action_digest": review.action_digest, "approvals": cast.quorum.approvals}
    review_end(review, ReviewStatus.APPROVED, actor=actor, at=at, payload=payload)
    if attempt.state == AttemptState.APPROVED:
        release_again(attempt, review, actor=actor, at=at)
        dispatch_wake_up(attempt)
        return
    moved = {"review": str(review.id), "action_digest": review.action_digest}
    # Before the transition, which makes the attempt eligible unless it is queued.
    queued = slot_or_queue(attempt, actor=actor, at=at)
    transition_apply(attempt, "approve", actor=actor, at=at, payload=moved, then=[queued] if queued is not None else [])
    dispatch_wake_up(attempt)


RELEASE = Rules(_unfit_release, _settle)
