"""A person's word on a hold: approve or reject, bound to the digest of what they saw, checked under the locks."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from attempts.models import Review, ReviewVote
from attempts.review_errors import DigestChanged, ReleaseBlocked
from attempts.review_rules import Exclusion, Quorum, Voice
from attempts.selectors.review import Held, actor_at, database_now, release_blocked, review_lock
from attempts.selectors.review_standing import Standing, quorum_with, refusal_of, standing_of
from attempts.services.queue_enter import queue_if_placeless
from attempts.services.retry import dispatch_ring
from attempts.services.review_end import attempt_deny, record_review, review_end, review_end_expired
from attempts.services.transition import transition_apply
from attempts.states import ReviewStatus, VoteVerdict
from governance.insert import insert_together
from governance.ledger.append import actor_reference, person_commitment
from governance.models import Note
from governance.services.note import note_create
from governance.services.violation import violations_recorded
from reasoncodes.actors import Actor, ActorKind
from reasoncodes.codes import Scope
from reasoncodes.errors import DomainError, FieldError, InvalidInput
from reasoncodes.selectors import reason_code_require

# Why an action is denied comes from the denials; why it is released, if anybody says so, from people's interventions.
SCOPE_OF = {VoteVerdict.REJECT: Scope.DENIAL, VoteVerdict.APPROVE: Scope.INTERVENTION}


@dataclass(frozen=True, slots=True)
class Word:
    """What the person said."""

    verdict: VoteVerdict
    action_digest: str
    reason_code: str = ""
    note: str = ""


def review_vote(
    *,
    actor: Actor,
    at: datetime,
    review_id: UUID,
    verdict: VoteVerdict,
    action_digest: str,
    reason_code: str = "",
    note: str = "",
) -> Review:
    """One rejection ends the review; approvals end it when enough different people gave one."""
    word = Word(verdict, action_digest, reason_code, note)
    return _vote(actor=actor_at(actor=actor, review_id=review_id), at=at, review_id=review_id, word=word)


@violations_recorded
def _vote(*, actor: Actor, at: datetime, review_id: UUID, word: Word) -> Review:
    """A refusal is raised after the commit, because an expiry that was found on the way must stay."""
    with transaction.atomic():
        held = review_lock(review_id=review_id)
        now = database_now()
        expired = held.overdue(now)
        if expired:
            review_end_expired(held)
        person = actor.id if actor.kind is ActorKind.PERSON else None
        standing = standing_of(review=held.review, attempt=held.attempt, person=person, now=now)
        refusal = refusal_of(
            review=held.review, attempt=held.attempt, standing=standing, now=now, expired=expired
        ) or _unfit(held, word)
        if refusal is None:
            _cast(held, standing, word, actor=actor, at=at)
    if refusal is not None:
        raise refusal
    return held.review


def _unfit(held: Held, word: Word) -> DomainError | None:
    """The word itself: about what is proposed now, and, for a release, possible now."""
    if not word.action_digest == held.review.action_digest == held.attempt.action_digest:
        return DigestChanged()
    blocked = release_blocked(attempt=held.attempt) if word.verdict is VoteVerdict.APPROVE else None
    return ReleaseBlocked(reason_code=blocked) if blocked else None


def _cast(held: Held, standing: Standing, word: Word, *, actor: Actor, at: datetime) -> None:
    review = held.review
    note = _reason(review, word)
    voice = _voice(standing, word)
    vote = ReviewVote(
        review=review,
        voter_ref=actor_reference(actor),
        on_behalf_of_ref=_on_behalf_of(voice),
        verdict=word.verdict.value,
        reason_code=word.reason_code,
        note=note,
        action_digest=word.action_digest,
        at=at,
    )
    vote.save()
    quorum = quorum_with(standing.facts, voice, required=review.approvals_required)
    _record_vote(review, vote, quorum, actor=actor, at=at)
    if word.verdict is VoteVerdict.REJECT:
        review_end(review, ReviewStatus.REJECTED, actor=actor, at=at, reason_code=word.reason_code)
        attempt_deny(held, actor=actor, at=at, reason_code="review_rejected")
    elif quorum.met:
        _release(held, quorum, actor=actor, at=at)
    elif review.claimed_by_id == actor.id:
        review.claimed_by, review.claimed_until = None, None
        review.save(update_fields=["claimed_by", "claimed_until"])


def _reason(review: Review, word: Word) -> Note | None:
    """The code that the person chose must exist, and says whether a note is needed."""
    if word.reason_code:
        reason_code_require(
            organization_id=review.organization_id,
            scope=SCOPE_OF[word.verdict],
            code=word.reason_code,
            note=word.note,
        )
    elif word.verdict is VoteVerdict.REJECT:
        raise InvalidInput(errors=[FieldError("/reason_code", "is required", rule="required")])
    return note_create(organization_id=review.organization_id, text=word.note)


def _voice(standing: Standing, word: Word) -> Voice:
    if isinstance(standing.authority, Exclusion):
        raise ValueError("an excluded person cannot vote")
    return Voice(standing.person, standing.authority, word.verdict is VoteVerdict.APPROVE)


def _on_behalf_of(voice: Voice) -> str:
    if voice.authority is None or voice.authority == voice.voter:
        return ""
    return person_commitment(user_id=voice.authority)


def _record_vote(review: Review, vote: ReviewVote, quorum: Quorum, *, actor: Actor, at: datetime) -> None:
    payload = {
        "vote": str(vote.id),
        "verdict": vote.verdict,
        "action_digest": vote.action_digest,
        "on_behalf_of": vote.on_behalf_of_ref or None,
        "approvals": quorum.approvals,
        "approvals_required": quorum.required,
        "note_sha256": vote.note.sha256 if vote.note else None,
    }
    record_review(review, "review.voted", actor=actor, at=at, reason_code=vote.reason_code, payload=payload)


def _release(held: Held, quorum: Quorum, *, actor: Actor, at: datetime) -> None:
    payload = {"action_digest": held.review.action_digest, "approvals": quorum.approvals}
    review_end(held.review, ReviewStatus.APPROVED, actor=actor, at=at, payload=payload)
    moved = {"review": str(held.review.id), "action_digest": held.review.action_digest}
    queued = queue_if_placeless(held.attempt, actor=actor, at=at)
    transition_apply(held.attempt, "approve", actor=actor, at=at, payload=moved)
    if queued is not None:
        insert_together([queued])
    dispatch_ring(held.attempt)
