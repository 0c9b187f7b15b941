"""A person's word on a held action: approve or reject. One rejection ends it, or approvals of enough people."""

from datetime import datetime
from uuid import UUID

from attempts.models import Attempt, Review
from attempts.review_errors import DigestChanged, ReleaseBlocked, TierComplete
from attempts.selectors.review import Held, release_blocked
from attempts.selectors.review_standing import Standing
from attempts.services.notify_touch import cards_touch
from attempts.services.queue_enter import queue_if_placeless
from attempts.services.retry import dispatch_ring
from attempts.services.review_decide import CastVote, Rules, Word, claim_drop, review_decide
from attempts.services.review_end import attempt_deny, review_end
from attempts.services.transition import transition_apply
from attempts.states import ReviewStatus, VoteVerdict
from governance.insert import insert_together
from reasoncodes.actors import Actor
from reasoncodes.errors import DomainError


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
) -> Review:
    word = Word(verdict, action_digest, reason_code, note, via=via)
    return review_decide(actor=actor, at=at, review_id=review_id, word=word, rules=RELEASE)


def _unfit(held: Held, standing: Standing, word: Word) -> DomainError | None:
    """About what would be done now, and, for a release, possible now and of use."""
    attempt = held.attempt
    if attempt is None or word.action_digest != attempt.action_digest:
        return DigestChanged()
    if word.verdict is not VoteVerdict.APPROVE:
        return None
    blocked = release_blocked(attempt=attempt)
    if blocked:
        return ReleaseBlocked(reason_code=blocked)
    return None if standing.approval_helps else TierComplete()


def _settle(cast: CastVote) -> None:
    review, attempt, vote = cast.held.review, cast.held.attempt, cast.vote
    if attempt is None:
        raise ValueError("a release is about an attempt")
    if vote.verdict == VoteVerdict.REJECT:
        review_end(review, ReviewStatus.REJECTED, actor=cast.actor, at=cast.at, reason_code=vote.reason_code)
        attempt_deny(attempt, review, actor=cast.actor, at=cast.at, reason_code="review_rejected")
    elif cast.quorum.met:
        _release(cast, review, attempt)
    else:
        _wait_on(cast, review)


def _wait_on(cast: CastVote, review: Review) -> None:
    """For the others: the queue shows it to the tiers whose signature still helps."""
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
    moved = {"review": str(review.id), "action_digest": review.action_digest}
    queued = queue_if_placeless(attempt, actor=actor, at=at)
    transition_apply(attempt, "approve", actor=actor, at=at, payload=moved)
    if queued is not None:
        insert_together([queued])
    dispatch_ring(attempt)


RELEASE = Rules(_unfit, _settle)
