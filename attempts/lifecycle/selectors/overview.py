"""Figures of the console's overview: open reviews, quarantine, recent denials, and how far an organization has come.

Every query has a limit, so that the page does not become slower when more happens.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Min, Q

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.models import QuarantineCase
from attempts.reviews.models import Review
from attempts.reviews.states import ReviewStatus
from governance.console.selectors.lists import by_organization, counted_by
from governance.console.selectors.pages import COUNT_LIMIT, id_floor

DENIALS = 2_000  # read and counted in memory; enough to see what is going on
AGES: tuple[tuple[str, timedelta | None], ...] = (
    ("under 15 minutes", timedelta(minutes=15)),
    ("under 1 hour", timedelta(hours=1)),
    ("under 4 hours", timedelta(hours=4)),
    ("under 1 day", timedelta(days=1)),
    ("older", None),
)


@dataclass(frozen=True, slots=True)
class Holds:
    by_age: list[tuple[str, int]]
    total: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class Denials:
    """Recent denials by reason, and the callers that were throttled. `capped`: there were more than were counted."""

    by_reason: list[tuple[str, int]]
    throttled: list[tuple[str, int]]
    capped: bool


def holds_by_age(*, at: datetime) -> Holds:
    """Open reviews by how long they have waited, in one query, counted up to the limit."""
    rows = Review.objects.filter(status=ReviewStatus.REQUESTED).order_by()[:COUNT_LIMIT]
    counts, younger = {}, Q(pk__isnull=True)  # each row is counted in the first range that it fits
    for number, (_, age) in enumerate(AGES):
        within = Q(requested_at__gt=at - age) if age else Q()
        counts[f"age_{number}"] = Count("id", filter=within & ~younger)
        younger = within
    found = rows.aggregate(all=Count("id"), oldest=Min("requested_at"), **counts)
    by_age = [(words, found[f"age_{number}"]) for number, (words, _) in enumerate(AGES)]
    return Holds(by_age, found["all"], found["oldest"])


def quarantine_by_category() -> list[tuple[str, int]]:
    """How many open quarantine cases there are of each category."""
    return counted_by(QuarantineCase.objects.filter(by_organization(), resolution=""), "category")


def quarantine_escalated() -> int:
    """How many open cases were escalated."""
    rows = QuarantineCase.objects.filter(by_organization(), resolution="", escalated_at__isnull=False).order_by()
    return rows[:COUNT_LIMIT].count()


def denials_lately(*, at: datetime, within: timedelta = timedelta(hours=1)) -> Denials:
    """The newest denials of the last hour, up to DENIALS."""
    # By id instead of `created_at`: ids are UUIDv7, which sort by time, and the index `attempt_by_state` ends with it.
    rows = Attempt.objects.filter(
        by_organization(), state=AttemptState.PREFLIGHT_DENIED, id__gte=id_floor(at - within)
    ).order_by("-id")
    found = list(rows.values_list("reason_code", "caller__slug")[:DENIALS])
    throttled = Counter(slug for code, slug in found if code in {"rate_limited", "misuse_suspended"})
    return Denials(
        Counter(code for code, _ in found).most_common(8), throttled.most_common(8), capped=len(found) == DENIALS
    )


@dataclass(frozen=True, slots=True)
class Asked:
    attempt: Attempt | None
    waiting: Review | None
    decided: Review | None


def asked(*, organization_id: UUID) -> Asked:
    """The newest attempt of an organization, a review that waits, and one that people decided."""
    reviews = Review.objects.filter(organization_id=organization_id)
    ended = [ReviewStatus.APPROVED, ReviewStatus.REJECTED, ReviewStatus.CONFIRMED, ReviewStatus.OVERRIDDEN]
    ended.append(ReviewStatus.DECIDED)
    return Asked(
        Attempt.objects.filter(organization_id=organization_id).order_by("-id").first(),
        reviews.filter(status=ReviewStatus.REQUESTED).order_by("expires_at").first(),
        reviews.exclude(status=ReviewStatus.REQUESTED).filter(status__in=ended).order_by("-id").first(),
    )
