"""Reading reviews: the queue, one review with what it holds, the database's clock, and what forbids a release now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.states import ReviewKind, ReviewStatus
from governance.console.selectors.lists import uuid_or_none
from governance.contracts.states import ContractState
from governance.enforcement.selectors.arrival import intake_facts
from governance.enforcement.sql import Closed
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import NotFound

ME, UNCLAIMED = "me", "unclaimed"


@dataclass(frozen=True, slots=True)
class LockedReview:
    """A review and, where it holds one, its attempt; both locked."""

    attempt: Attempt | None
    review: Review

    @property
    def is_open(self) -> bool:
        return self.review.status == ReviewStatus.REQUESTED

    def overdue(self, now: datetime) -> bool:
        return self.review.overdue(now)


def database_now() -> datetime:
    """The one clock that deadlines count by. Not the transaction's start: it may have waited for a lock since."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def review_list(
    *,
    actor: Actor,
    now: datetime,
    status: str | None = None,
    kind: str | None = None,
    tier: str | None = None,
    assigned: str | None = None,
) -> QuerySet[Review]:
    rows = Review.objects.select_related("attempt", "claimed_by").order_by("-id")
    exact = {"status": status, "kind": kind}
    rows = rows.filter(**{name: value for name, value in exact.items() if value is not None})
    if tier is not None:
        rows = rows.filter(_concerns(tier))
    if assigned == ME:
        mine = actor.id if actor.kind is ActorKind.PERSON else None
        return rows.filter(claimed_by_id=mine, claimed_until__gt=now) if mine else rows.none()
    if assigned == UNCLAIMED:
        return rows.filter(Q(claimed_by=None) | Q(claimed_until__lte=now), status=ReviewStatus.REQUESTED)
    return rows


def _concerns(tier: str) -> Q:
    """Where several tiers sign: while it is open, only those whose signature still helps."""
    waiting = Q(status=ReviewStatus.REQUESTED)
    several = (waiting & Q(open_tiers__contains=[tier])) | (~waiting & Q(buckets__contains=[{"tier": tier}]))
    return Q(tier=tier, buckets=[]) | several


def review_get(*, review_id: UUID) -> Review:
    return tenant_get(Review, review_id)


def review_lock(*, review_id: UUID) -> LockedReview:
    """Attempt first, then review: the lock order everywhere. A human review holds no attempt."""
    attempt_id = review_get(review_id=review_id).attempt_id
    attempt = tenant_get(Attempt, attempt_id, lock=True) if attempt_id is not None else None
    return LockedReview(attempt, tenant_get(Review, review_id, lock=True))


def review_lock_if_free(*, review_id: UUID) -> LockedReview | None:
    """For ticks: what somebody is busy with is left to them, or to the next tick."""
    attempts = Attempt.objects.filter(review__id=review_id)
    attempt = attempts.select_for_update(no_key=True, of=("self",), skip_locked=True).first()
    reviews = Review.objects.filter(id=review_id, attempt=attempt)
    review = reviews.select_for_update(no_key=True, of=("self",), skip_locked=True).first()
    return LockedReview(attempt, review) if review is not None else None


def actor_at(*, actor: Actor, review_id: UUID) -> Actor:
    """The actor, narrowed to the review's organization: a refusal is put on record there and nowhere else."""
    organization_id = review_get(review_id=review_id).organization_id
    if not actor.may_act_in(organization_id):
        raise NotFound
    return replace(actor, organization_ids=frozenset({organization_id}))


def claimed_by_other(review: Review, *, person: UUID | None, now: datetime) -> bool:
    live = review.claimed_by_id is not None and review.claimed_until is not None and review.claimed_until > now
    return live and review.claimed_by_id != person


def release_blocked(*, attempt: Attempt) -> str | None:
    """The reason code of what forbids a release right now: the contract and shutdowns as they are, not as they were."""
    organization = attempt.organization
    facts = intake_facts(organization=organization, slug=attempt.workflow_slug, version=str(attempt.contract_version))
    if facts is None or Closed.ORGANIZATION in facts.closed_by:
        return "attempt_creation_disabled"
    if Closed.SHUTDOWN in facts.closed_by:
        return facts.stopped_by
    if not facts.closed_by:
        return None
    if facts.contract.closed_reason_code == "readiness_revoked":
        return "readiness_revoked"
    return "contract_retired" if facts.contract.state == ContractState.RETIRED else "contract_suspended"


MOST = 100
LOW = "low"


def bulk_rows(*, review_ids: Iterable[UUID]) -> list[Review]:
    """In the order of their deadlines; those of other organizations do not exist."""
    wanted = list(dict.fromkeys(review_ids))[: MOST + 1]
    rows = Review.objects.filter(id__in=wanted).select_related("attempt__caller", "claimed_by")
    return list(rows.order_by("expires_at", "id"))


def bulk_widths(*, rows: Sequence[Review]) -> list[str]:
    """What makes the set too wide, as sentences; empty when it may be answered together."""
    attempts = [row.attempt for row in rows if row.attempt is not None]
    contracts = {(attempt.workflow_slug, attempt.contract_version) for attempt in attempts}
    found = []
    if not rows:
        found.append("Nothing is chosen.")
    if len(rows) > MOST:
        found.append(f"More than {MOST} are chosen.")
    if any(row.kind != ReviewKind.RELEASE for row in rows):
        found.append("Cases are judged one by one.")
    if len(contracts) > 1:
        found.append("They belong to several contracts.")
    if any(attempt.risk_tier != LOW for attempt in attempts):
        found.append("Not all of them are of the low risk tier.")
    return found


def reviews_shown(*, rows: QuerySet[Review], status: str, kind: str) -> QuerySet[Review]:
    """Those with this ending, or (unless one is asked for) those that wait; only of these the kind can be chosen."""
    if status in set(ReviewStatus) - {ReviewStatus.REQUESTED}:
        # Said twice, because the index is of those that have ended.
        return rows.exclude(status=ReviewStatus.REQUESTED).filter(status=status)
    rows = rows.filter(status=ReviewStatus.REQUESTED)
    return rows.filter(kind=kind) if kind in set(ReviewKind) else rows


def review_matches(term: str) -> Q | None:
    """By its own id, its attempt's, or that of the workflow step which waits for it."""
    wanted = uuid_or_none(term)
    if wanted is None:
        return None
    return Q(id=wanted) | Q(attempt_id=wanted) | Q(origin_step=wanted, status=ReviewStatus.REQUESTED)
