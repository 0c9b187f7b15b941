"""The last steps of a first run: has anything been asked, and has a person decided?"""

from dataclasses import dataclass
from uuid import UUID

from attempts.models import Attempt, Review
from attempts.states import ReviewStatus


@dataclass(frozen=True, slots=True)
class Asked:
    attempt: Attempt | None
    waiting: Review | None
    decided: Review | None


def asked(*, organization_id: UUID) -> Asked:
    """The newest attempt, a review that waits, and one that people ended."""
    reviews = Review.objects.filter(organization_id=organization_id)
    ended = [ReviewStatus.APPROVED, ReviewStatus.REJECTED, ReviewStatus.CONFIRMED, ReviewStatus.OVERRIDDEN]
    return Asked(
        Attempt.objects.filter(organization_id=organization_id).order_by("-id").first(),
        reviews.filter(status=ReviewStatus.REQUESTED).order_by("expires_at").first(),
        reviews.exclude(status=ReviewStatus.REQUESTED).filter(status__in=ended).order_by("-id").first(),
    )
