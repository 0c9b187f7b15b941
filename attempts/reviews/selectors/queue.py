"""The review queue of the pages: views, filters, search and counts, one page at a time, by deadline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from attempts.reviews.models import Delegation, Review, ReviewVote
from attempts.reviews.selectors.standing import ROLE
from attempts.reviews.states import FULFILLING, ReviewStatus
from governance.authorship.selectors import services_behind
from governance.outages.selectors import lost_lately
from governance.people.models import PersonReference
from governance.tenancy.models import RoleGroup
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.base.tenancy import current_scope

PAGE = 50
COUNTED = 100  # counting further would cost more the longer the queue is
SOON = timedelta(hours=1)
SEARCHED_HISTORY = 2_000
"""Among how many ended reviews words are searched: there is no index for words. An id is found in all of them."""
SEARCHED_FIELDS = (
    "attempt__target_ref",
    "attempt__workflow_slug",
    "attempt__operation",
    "subject_ref",
    "label",
)


class QueueView(StrEnum):
    MINE = "mine"
    GROUPS = "groups"
    UNCLAIMED = "unclaimed"
    EXPIRING = "expiring"
    WAITING = "waiting"
    ALL = "all"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """The filter in the URL of the page."""

    view: QueueView = QueueView.GROUPS
    tier: str = ""
    risk: str = ""
    kind: str = ""
    contract: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Covered:
    """A person for whom somebody stands in, in one tier."""

    organization_id: UUID
    tier: str
    person: UUID
    username: str
    until: datetime
    ref: str
    """Their commitment, if they have one."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The person whose queue it is: their commitment on votes, their tiers by organization, and for whom they stand
    in."""

    person: UUID | None
    ref: str
    tiers: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    covers: tuple[Covered, ...] = ()
    lost: timedelta = timedelta()
    """By how much a deadline can be later than its row says, because Holdpoint could not act."""

    def tiers_in(self, organization_id: UUID) -> frozenset[str]:
        return self.tiers.get(organization_id, frozenset())

    def covered_in(self, review: Review) -> list[Covered]:
        """For whom the person stands in, in the tiers of a review."""
        tiers = {part["tier"] for part in review.parts}
        return [one for one in self.covers if one.organization_id == review.organization_id and one.tier in tiers]


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of a page; the next page begins after it. Reviews without a deadline come last."""

    at: datetime | None
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat() if self.at else ''}~{self.id}"


@dataclass(frozen=True, slots=True)
class QueuePage:
    rows: list[Review]
    next: Cursor | None


def cursor_read(text: str) -> Cursor:
    moment, _, row = text.partition("~")
    try:
        return Cursor(datetime.fromisoformat(moment) if moment else None, UUID(row))
    except ValueError as error:
        raise InvalidInput(errors=[FieldError("/after", "is no place in this queue")]) from error


def reader_of(*, actor: Actor, now: datetime) -> Reader:
    person = actor.id or UUID(int=0)  # an actor without an id has no roles; None would match rows without a person
    ref = PersonReference.objects.filter(user_id=person).values_list("commitment", flat=True).first()
    found: dict[UUID, set[str]] = {}
    roles = RoleGroup.objects.filter(group__user__id=person, role__startswith=ROLE)
    for organization_id, role in roles.values_list("organization_id", "role"):
        found.setdefault(organization_id, set()).add(role.removeprefix(ROLE))
    lent = Delegation.objects.filter(to_user_id=person, ended_at=None, starts_at__lte=now, ends_at__gt=now)
    names = ("organization_id", "tier", "from_user_id", "from_user__username", "ends_at")
    given = lent.order_by("id").values_list(*names, "from_user__reference__commitment")
    covers = tuple(
        Covered(where, tier, who, name, until, commitment or "") for where, tier, who, name, until, commitment in given
    )
    mine = {id_: frozenset(tiers) for id_, tiers in found.items()}
    return Reader(actor.id, ref or "", mine, covers, lost_lately(now))


def queue_page(*, reader: Reader, wanted: QueueFilter, now: datetime, after: Cursor | None = None) -> QueuePage:
    rows = _ordered(_queue_rows(reader=reader, wanted=wanted, now=now), wanted.view)
    if after is not None:
        rows = rows.filter(_beyond(after, wanted.view))
    if wanted.view is QueueView.HISTORY:
        rows = _of_each_organization(rows)
    # One row more than the page: it tells whether there is a next page, without counting.
    found = list(rows.select_related("attempt__caller", "claimed_by", "organization")[: PAGE + 1])
    return QueuePage(found[:PAGE], _place(found[PAGE - 1], wanted.view) if len(found) > PAGE else None)


def _of_each_organization(rows: QuerySet[Review]) -> QuerySet[Review]:
    """The same page, made of one page of each organization."""
    # The index has the order of one organization. For several together PostgreSQL would sort all reviews that ended.
    organizations = sorted(current_scope().organization_ids)
    if len(organizations) < 2:
        return rows
    pages = [rows.filter(organization_id=one).values_list("id")[: PAGE + 1] for one in organizations]
    together = pages[0].union(*pages[1:], all=True)
    return _ordered(Review.objects.filter(id__in=[id_ for (id_,) in together]), QueueView.HISTORY)


def queue_next(*, reader: Reader, wanted: QueueFilter, now: datetime, past: Review) -> UUID | None:
    """The review to open after `past`: the next one in the same queue, else the first one that is left."""
    rows = _ordered(_queue_rows(reader=reader, wanted=wanted, now=now).exclude(id=past.id), wanted.view)
    place = _place(past, wanted.view)
    behind = rows.filter(_beyond(place, wanted.view)).values_list("id", flat=True).first()
    return behind or rows.values_list("id", flat=True).first()


def queue_counts(*, reader: Reader, now: datetime) -> dict[QueueView, int]:
    """How many reviews each open view has, counted up to one more than COUNTED."""
    open_views = [view for view in QueueView if view is not QueueView.HISTORY]
    return {
        view: _queue_rows(reader=reader, wanted=QueueFilter(view), now=now).order_by()[: COUNTED + 1].count()
        for view in open_views
    }


def _queue_rows(*, reader: Reader, wanted: QueueFilter, now: datetime) -> QuerySet[Review]:
    rows = _in_view(reader, wanted.view, now)
    exact: dict[str, Any] = {
        "attempt__risk_tier": wanted.risk,
        "kind": wanted.kind,
        "attempt__workflow_slug": wanted.contract,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value})
    if wanted.tier:
        rows = rows.filter(Q(tier=wanted.tier) | Q(buckets__contains=[{"tier": wanted.tier}]))
    return _searched(rows, wanted) if wanted.text else rows


def _in_view(reader: Reader, view: QueueView, now: datetime) -> QuerySet[Review]:
    if view is QueueView.HISTORY:
        return Review.objects.filter(decided_at__isnull=False)
    # An overdue review is not shown, although it is open until the scheduled task ends it: a vote on it is refused.
    # After an outage some are shown until that task ends them: each has a deadline of its own.
    open_still = Q(expires_at=None) | Q(expires_at__gt=now - reader.lost)
    rows = Review.objects.filter(open_still, status=ReviewStatus.REQUESTED)
    if view is QueueView.ALL:
        return rows
    if view is QueueView.MINE:
        return rows.filter(claimed_by_id=reader.person, claimed_until__gt=now)
    signed = ReviewVote.objects.filter(review_id=OuterRef("id"), voter_ref=reader.ref)
    if view is QueueView.WAITING:
        return rows.filter(Exists(signed.filter(verdict__in=FULFILLING))) if reader.ref else rows.none()
    rows = _for_my_groups(rows, reader, signed)
    if view is QueueView.UNCLAIMED:
        return rows.filter(Q(claimed_by=None) | Q(claimed_until__lte=now))
    return rows.filter(expires_at__lte=now + SOON) if view is QueueView.EXPIRING else rows


def _for_my_groups(rows: QuerySet[Review], reader: Reader, signed: QuerySet[ReviewVote]) -> QuerySet[Review]:
    """Reviews that the person can still approve: of their tiers, without their vote, and not of their own request."""
    concerned = Q(pk__in=[])  # a person without tiers sees nothing; an empty Q() would select everything
    for organization_id, tiers in reader.tiers.items():
        several = [Q(open_tiers__contains=[tier]) for tier in sorted(tiers)]
        mine = Q(tier__in=sorted(tiers), buckets=[])
        for one in several:
            mine |= one
        concerned |= Q(organization_id=organization_id) & mine
    rows = rows.filter(concerned)
    if reader.person is not None:
        rows = rows.exclude(_barred_to(reader.person, reader.ref))
    for cover in reader.covers:
        # What is barred to the person for whom they stand in is barred to them too.
        theirs = Q(tier=cover.tier) | Q(buckets__contains=[{"tier": cover.tier}])
        rows = rows.exclude(Q(organization_id=cover.organization_id) & _barred_to(cover.person, cover.ref) & theirs)
    return rows.exclude(Exists(signed)) if reader.ref else rows


def _barred_to(person: UUID, ref: str) -> Q:
    """Reviews that a vote of the person would be refused for (`facts_of`): of services that they answer for or ever
    answered for, and those that named them when they were opened."""
    # The attempt is asked for too: a human review has none, and NULL IN (…) would hide it.
    asked = Q(attempt__isnull=False, attempt__caller_id__in=services_behind(person_ids=[person]))
    return asked | Q(excluded__contains=[{"ref": ref}]) if ref else asked


def _searched(rows: QuerySet[Review], wanted: QueueFilter) -> QuerySet[Review]:
    """Searches words in target, case, contract and label, or the id of a review, an attempt or a step. Among ended
    reviews, words are searched in the newest only."""
    found = Q()
    for name in SEARCHED_FIELDS:
        found |= Q(**{f"{name}__icontains": wanted.text})
    if wanted.view is QueueView.HISTORY:
        newest = _ordered(Review.objects.filter(decided_at__isnull=False), wanted.view).values("id")
        found &= Q(id__in=newest[:SEARCHED_HISTORY])
    try:
        id_ = UUID(wanted.text)
    except ValueError:
        return rows.filter(found)
    known = Review.objects.filter(Q(id=id_) | Q(attempt_id=id_) | Q(origin_step=id_, status=ReviewStatus.REQUESTED))
    return rows.filter(Q(id__in=known.values("id")) | found)


def _ordered(rows: QuerySet[Review], view: QueueView) -> QuerySet[Review]:
    """Open reviews by deadline, ended ones newest first."""
    return rows.order_by("-decided_at", "-id") if view is QueueView.HISTORY else rows.order_by("expires_at", "id")


def _place(review: Review, view: QueueView) -> Cursor:
    return Cursor(review.decided_at if view is QueueView.HISTORY else review.expires_at, review.id)


def _beyond(after: Cursor, view: QueueView) -> Q:
    if view is QueueView.HISTORY:
        return Q(decided_at__lt=after.at) | Q(decided_at=after.at, id__lt=after.id)
    # PostgreSQL sorts NULL last: reviews without a deadline come after every review with one.
    if after.at is None:
        return Q(expires_at=None, id__gt=after.id)
    return Q(expires_at__gt=after.at) | Q(expires_at=after.at, id__gt=after.id) | Q(expires_at=None)
