"""Holds: the review that a decision asks for, and a released attempt that is held again before an act."""

# An attempt that is held again stays `approved-for-execution`, as one that waits for a slot does: S1 has no way back to
# `review-required`. It is not due, so nothing can lease it until its new review ends.

from datetime import datetime, timedelta

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.transition import entry_build
from attempts.lifecycle.states import RuntimeMode
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from attempts.reviews.rules import Exclusion
from attempts.reviews.states import ReviewStatus
from governance.enforcement.models import EnforcementDecision
from governance.sql.insert import insert_together
from reasoncodes.base.actors import Actor


def review_build(
    attempt: Attempt, decision: EnforcementDecision, at: datetime, *, authorized_by: str = ""
) -> Review | None:
    if decision.approval is None or decision.verdict != "needs_approval":
        return None
    buckets = decision.approval.get("buckets", [])
    return Review(
        organization_id=attempt.organization_id,
        attempt_id=attempt.id,
        decision_id=decision.id,
        tier=decision.approval["tier"],
        approvals_required=decision.approval["approvals_required"],
        buckets=buckets,
        open_tiers=[bucket["tier"] for bucket in buckets],
        excluded=[{"ref": authorized_by, "reason": Exclusion.AUTHORIZED_IT.value}] if authorized_by else [],
        action_digest=attempt.action_digest,
        requested_at=at,
        remind_at=at + timedelta(seconds=decision.approval["expires_in_seconds"] / 2),
        expires_at=at + timedelta(seconds=decision.approval["expires_in_seconds"]),
    )


def hold_again(attempt: Attempt, decision: EnforcementDecision, *, actor: Actor, at: datetime) -> Review | None:
    """Holds a stored and locked attempt that was released, because the decision of an act asks for more approval than
    was given. None: it is held already."""
    attempt.next_eligible_at = None
    attempt.save(update_fields=["next_eligible_at"])
    if Review.objects.filter(attempt=attempt, status=ReviewStatus.REQUESTED).exists():
        return None
    review = review_build(attempt, decision, at, authorized_by=_authorized_by(attempt))
    if review is None:
        raise ValueError("a decision that asks for nobody holds nothing")
    payload = {"review": str(review.id), "decision": str(decision.id)}
    entry = entry_build(
        attempt, "attempt.held_again", actor=actor, at=at, payload=payload, reason_code=decision.reason_code
    )
    insert_together([review], [entry])
    return review


def release_again(attempt: Attempt, review: Review, *, actor: Actor, at: datetime) -> None:
    """Makes a locked attempt due again, after the people whom a later decision asked for approved it."""
    attempt.next_eligible_at = None if attempt.runtime_mode == RuntimeMode.SHADOW else at
    attempt.save(update_fields=["next_eligible_at"])
    payload = {"review": str(review.id), "action_digest": review.action_digest}
    insert_together([entry_build(attempt, "attempt.released_again", actor=actor, at=at, payload=payload)])


def _authorized_by(attempt: Attempt) -> str:
    """Who authorized this retry or compensation: that person may not approve it."""
    if attempt.retry_of_id is None and attempt.compensates_id is None:
        return ""
    found = QuarantineCase.objects.filter(follow_up_id=attempt.id).values_list("resolved_by_ref", flat=True).first()
    return found or ""
