"""Reviews of workflow steps: opened and canceled by the engine; a person confirms, overrides or declines."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from attempts.reviews.models import Review
from attempts.reviews.rules import Exclusion
from attempts.reviews.selectors.reviews import LockedReview
from attempts.reviews.selectors.standing import ReviewStanding
from attempts.reviews.services.decide import CastVote, Rules, Word, claim_drop, record_review, review_decide, review_end
from attempts.reviews.services.signing import SignedWord
from attempts.reviews.states import ReviewKind, ReviewStatus, VoteVerdict
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError

END_OF = {VoteVerdict.CONFIRM: ReviewStatus.CONFIRMED, VoteVerdict.OVERRIDE: ReviewStatus.OVERRIDDEN}


def human_review_open(
    *,
    organization_id: UUID,
    origin_step: UUID,
    tier: str,
    context_ref: str,
    label: str,
    digest: str,
    actor: Actor,
    at: datetime,
    expires_at: datetime | None = None,
    requester_refs: Iterable[str] = (),
    contract_id: UUID | None = None,
) -> Review:
    """Opens the review of a step, in the caller's transaction. A step has at most one open review. A vote is bound to
    `digest`. `requester_refs`: commitments of people who may not decide. `contract_id`: of the run. The caller has
    checked `context_ref` and `label` against the metadata boundary."""
    review = Review(
        organization_id=organization_id,
        kind=ReviewKind.HUMAN_REVIEW.value,
        origin_step=origin_step,
        contract_id=contract_id,
        subject_ref=context_ref,
        label=label,
        tier=tier,
        approvals_required=1,
        action_digest=digest,
        excluded=[{"ref": ref, "reason": Exclusion.OWN_REQUEST.value} for ref in requester_refs],
        requested_at=at,
        expires_at=expires_at,
        remind_at=at + (expires_at - at) / 2 if expires_at is not None else None,
    )
    review.save(force_insert=True)
    until = expires_at.isoformat() if expires_at is not None else None
    record_review(review, "review.opened", actor=actor, at=at, payload={"action_digest": digest, "expires_at": until})
    return review


def human_review_end(*, origin_step: UUID, actor: Actor, at: datetime, reason_code: str) -> Review | None:
    """Cancels the open review of a step that ends otherwise, in the caller's transaction; None if there is none. No
    handlers are called, because the caller is the engine."""
    # Locked: a person may be voting on it at this moment.
    rows = Review.objects.select_for_update(no_key=True, of=("self",))
    review = rows.filter(origin_step=origin_step, status=ReviewStatus.REQUESTED).first()
    if review is not None:
        review_end(review, ReviewStatus.CANCELED, actor=actor, at=at, reason_code=reason_code)
    return review


def human_review_decide(
    *,
    actor: Actor,
    at: datetime,
    review_id: UUID,
    verdict: VoteVerdict,
    action_digest: str,
    reason_code: str = "",
    note: str = "",
    result_ref: str = "",
    payload_sha256: str = "",
    signature: SignedWord | None = None,
) -> Review:
    """Votes on the review of a step. Confirm and override end it; `result_ref` and its hash say where an overriding
    judgement is kept. Decline needs a reason, and puts the review back into the queue without the person."""
    word = Word(VoteVerdict(verdict), action_digest, reason_code, note, result_ref, payload_sha256, signature=signature)
    return review_decide(actor=actor, at=at, review_id=review_id, word=word, rules=HUMAN_REVIEW)


def _unfit(locked: LockedReview, standing: ReviewStanding, word: Word) -> DomainError | None:
    return None  # it releases nothing, so digest and standing, which are already checked, are enough


def _settle(cast: CastVote) -> None:
    review, vote = cast.locked.review, cast.vote
    if vote.verdict == VoteVerdict.DECLINE:
        _requeue(cast)
        return
    payload = {"vote": str(vote.id), "action_digest": review.action_digest}
    review_end(
        review,
        END_OF[VoteVerdict(vote.verdict)],
        actor=cast.actor,
        at=cast.at,
        reason_code=vote.reason_code,
        payload=payload,
        vote=vote,
    )


def _requeue(cast: CastVote) -> None:
    """Keeps the review open for the others, and ends the claim."""
    review = cast.locked.review
    review.requeues += 1
    review.save(update_fields=["requeues"])
    claim_drop(review)
    record_review(
        review,
        "review.requeued",
        actor=cast.actor,
        at=cast.at,
        reason_code=cast.vote.reason_code,
        payload={"requeues": review.requeues},
    )


HUMAN_REVIEW = Rules(_unfit, _settle)
