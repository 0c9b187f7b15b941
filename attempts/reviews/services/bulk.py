"""Votes on many held attempts with one verdict: only of one contract and of low risk. Each gets its own vote."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from attempts.reviews.errors import BulkTooWide
from attempts.reviews.models import Review
from attempts.reviews.selectors.reviews import bulk_rows, bulk_widths
from attempts.reviews.services.decide import review_vote
from attempts.reviews.states import VoteVerdict
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError


@dataclass(frozen=True, slots=True)
class ReviewBulkItem:
    review_id: UUID
    action_digest: str


@dataclass(frozen=True, slots=True)
class BulkResult:
    """`refusal` is None if the vote counts."""

    review: Review
    refusal: DomainError | None


def review_bulk(
    *,
    actor: Actor,
    at: datetime,
    verdict: VoteVerdict,
    items: Sequence[ReviewBulkItem],
    reason_code: str = "",
    note: str = "",
) -> list[BulkResult]:
    """Votes on each item in its own transaction. A set that is too wide is refused as a whole before any vote."""
    # One transaction each: an item that became impossible meanwhile is refused alone and does not undo the others. The
    # digest comes with each item, so that nobody votes on an action that changed after the page was shown.
    rows = bulk_rows(review_ids=[item.review_id for item in items])
    too_wide = bulk_widths(rows=rows)
    if too_wide:
        raise BulkTooWide(" ".join(too_wide))
    digests = {item.review_id: item.action_digest for item in items}
    return [
        BulkResult(row, _vote(row, digests[row.id], actor=actor, at=at, verdict=verdict, word=(reason_code, note)))
        for row in rows
    ]


def _vote(
    review: Review, digest: str, *, actor: Actor, at: datetime, verdict: VoteVerdict, word: tuple[str, str]
) -> DomainError | None:
    reason_code, note = word
    try:
        review_vote(
            actor=actor,
            at=at,
            review_id=review.id,
            verdict=verdict,
            action_digest=digest,
            reason_code=reason_code,
            note=note,
        )
    except DomainError as refusal:
        return refusal
    return None
