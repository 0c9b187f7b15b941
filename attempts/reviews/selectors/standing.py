"""Whether a person may vote in a review now: reads roles, delegations and votes for the pure rules. Who gets reminders
and who may still approve is here too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from attempts.lifecycle.models import Attempt
from attempts.reviews.errors import AlreadyVoted, NotAReviewer, NotAssigned, ReviewClaimed, ReviewExpired, ReviewOver
from attempts.reviews.models import Delegation, Review, ReviewVote
from attempts.reviews.rules import (
    Delegated,
    Exclusion,
    Facts,
    Mandate,
    Quorum,
    QuorumBucket,
    Voice,
    excluded_people,
    helps,
    mandate_for,
    quorum_for,
)
from attempts.reviews.selectors.reviews import (
    VoteSigned,
    claimed_by_other,
    database_now,
    review_overdue,
    signature_needed,
    votes_signed,
)
from attempts.reviews.states import FULFILLING, ReviewStatus
from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.people.models import PersonReference, User
from governance.people.rules.roles import OPERATOR
from governance.tenancy.models import RoleGroup
from governance.violations.errors import OwnWork
from reasoncodes.base.errors import DomainError, WrongState

ROLE = "reviewer:"


@dataclass(frozen=True, slots=True)
class ReviewStanding:
    """Whether one person may vote in one review. `mandate`: whose role counts, or why they may not vote."""

    facts: Facts
    person: UUID | None
    mandate: Mandate | Exclusion
    quorum: Quorum

    @property
    def stands_in(self) -> tuple[Delegated, ...]:
        """The delegations to this person in the review's tiers. They give no vote; the record names them."""
        return tuple(row for row in self.facts.delegations if row.to == self.person)

    @property
    def approval_helps(self) -> bool:
        """Whether an approval would count. A person of a tier that is complete can only reject."""
        if self.person is None or isinstance(self.mandate, Exclusion):
            return False
        return helps(self.person, self.mandate, self.facts)


def _reviewer_role(tier: str) -> str:
    return f"{ROLE}{tier}"


def role_holders(*, organization_id: UUID, tiers: Iterable[str], people: Iterable[UUID]) -> dict[str, frozenset[UUID]]:
    """Who of these people has the role of which tier now. An inactive person has none."""
    rows = RoleGroup.objects.filter(
        organization_id=organization_id,
        role__in=[_reviewer_role(tier) for tier in tiers],
        group__user__id__in=set(people),
        group__user__is_active=True,
    )
    found: dict[str, set[UUID]] = {}
    for role, person in rows.values_list("role", "group__user__id"):
        found.setdefault(role.removeprefix(ROLE), set()).add(person)
    return {tier: frozenset(holders) for tier, holders in found.items()}


def _buckets_of(review: Review) -> tuple[QuorumBucket, ...]:
    return tuple(QuorumBucket(part["tier"], part["approvals_required"]) for part in review.parts)


def standing_of(*, review: Review, attempt: Attempt | None, person: UUID | None, now: datetime) -> ReviewStanding:
    """The standing of a person now. A service that decides reads it under the review's lock, so that a role that was
    just revoked does not count."""
    facts = facts_of(review=review, attempt=attempt, person=person, now=now)
    mandate = mandate_for(person, facts) if person is not None else Exclusion.NOT_A_REVIEWER
    return ReviewStanding(facts, person, mandate, quorum_for(facts))


def facts_of(*, review: Review, attempt: Attempt | None, person: UUID | None, now: datetime) -> Facts:
    # Also whoever was responsible for the caller before: they may have asked for this.
    behind = _behind(review, attempt)
    barred, voices, buckets = _barred(review), _voices(review, attempt), _buckets_of(review)
    requesters = barred[Exclusion.OWN_REQUEST] | behind
    authorizers = barred[Exclusion.AUTHORIZED_IT]
    # Roles are read now for everybody whose role counts, also for earlier votes: a revoked role no longer counts.
    signed = {who for voice in voices for who in (voice.voter, voice.authority)}
    return Facts(
        buckets=buckets,
        requesters=requesters,
        holders=role_holders(
            organization_id=review.organization_id,
            tiers=[bucket.tier for bucket in buckets],
            people=_known(signed | {person}),
        ),
        delegations=_delegations(review, person, requesters | authorizers, now),
        voices=voices,
        authorizers=authorizers,
        assigned=_assigned(review),
    )


def _behind(review: Review, attempt: Attempt | None) -> frozenset[UUID]:
    """The people behind the service that asked: for the attempt, or for the run whose step is the task."""
    asked_by = attempt.caller_id if attempt is not None else (review.task or {}).get("asked_by")
    return authors_of(kind=WorkKind.SERVICE, subject_id=UUID(str(asked_by))) if asked_by else frozenset()


def _assigned(review: Review) -> UUID | None:
    """Whom the workflow assigned the task to. If their commitment was erased, a person that there is not."""
    ref = (review.task or {}).get("assigned")
    if not ref:
        return None
    known = PersonReference.objects.filter(commitment=ref).values_list("user_id", flat=True).first()
    return known or UUID(int=0)


def refusal_of(
    *, review: Review, attempt: Attempt | None, standing: ReviewStanding, now: datetime, expired: bool = False
) -> DomainError | None:
    """The refusal that a vote would get now, or None. `expired`: the caller has just ended the review."""
    if isinstance(standing.mandate, Exclusion):
        return _excluded(review, standing.mandate)
    if expired or review.status == ReviewStatus.EXPIRED or review_overdue(review, now):
        return ReviewExpired(subject_type="review", subject_id=review.id)
    if review.status != ReviewStatus.REQUESTED:
        return ReviewOver(f"This review is {review.status}.", subject_type="review", subject_id=review.id)
    if attempt is not None and not review.holds(attempt):
        return WrongState(f"The attempt is {attempt.state}.")
    if review.approvals_required == 1 and claimed_by_other(review, person=standing.person, now=now):
        return ReviewClaimed()
    return None


def approval_stands(*, review: Review, attempt: Attempt, now: datetime) -> bool:
    """Whether the approval of a held attempt still counts: enough voters still have the role, are active and are not
    excluded."""
    facts = facts_of(review=review, attempt=attempt, person=None, now=now)
    return review.status == ReviewStatus.APPROVED and quorum_for(facts).met


def members(*, organization_id: UUID, people: Iterable[UUID]) -> dict[UUID, str]:
    """Usernames of those who are in the organization. Names of others are not shown."""
    rows = User.objects.filter(id__in=set(people), groups__role_group__organization_id=organization_id)
    return dict(rows.distinct().values_list("id", "username"))


def _known(people: Iterable[UUID | None]) -> set[UUID]:
    return {person for person in people if person is not None}


def _excluded(review: Review, reason: Exclusion) -> DomainError:
    if reason is Exclusion.OWN_REQUEST:
        words = "You are behind this request, or you stand in for somebody who is."
        return OwnWork(words, subject_type="review", subject_id=review.id)
    if reason is Exclusion.AUTHORIZED_IT:
        words = "You authorized this attempt, or you stand in for somebody who did."
        return OwnWork(words, subject_type="review", subject_id=review.id)
    if reason is Exclusion.ASSIGNED_ELSEWHERE:
        return NotAssigned(subject_type="review", subject_id=review.id)
    if reason is Exclusion.NOT_A_REVIEWER:
        words = f"This review is for the tier {' and the tier '.join(part['tier'] for part in review.parts)}."
        return NotAReviewer(words, subject_type="review", subject_id=review.id)
    return AlreadyVoted(subject_type="review", subject_id=review.id)


def _voices(review: Review, attempt: Attempt | None) -> tuple[Voice, ...]:
    # Votes name people by commitments. A person whose commitment was erased becomes None, and the vote stops counting.
    votes = list(ReviewVote.objects.filter(review=review).order_by("id"))
    # Checked each time, also before the action is sent: a vote that somebody wrote into the table has no signature.
    signed = votes_signed(votes=votes) if votes and signature_needed(review=review, attempt=attempt) else None
    refs = {ref for vote in votes for ref in (vote.voter_ref, vote.on_behalf_of_ref) if ref}
    people = dict(PersonReference.objects.filter(commitment__in=refs).values_list("commitment", "user_id"))
    return tuple(
        Voice(
            voter=people.get(vote.voter_ref),
            authority=people.get(vote.on_behalf_of_ref or vote.voter_ref),
            approves=vote.verdict in FULFILLING and (signed is None or _is_signed(signed.get(vote.id))),
            tier=vote.tier,
            outcome=vote.outcome,
        )
        for vote in votes
    )


def _is_signed(found: VoteSigned | None) -> bool:
    return found is not None and found.by_person


def _barred(review: Review) -> dict[Exclusion, frozenset[UUID]]:
    """People who were excluded when the review was opened. A person whose commitment was erased cannot be found."""
    reasons = {row["ref"]: Exclusion(row["reason"]) for row in review.excluded}
    known = PersonReference.objects.filter(commitment__in=reasons) if reasons else PersonReference.objects.none()
    people = dict(known.values_list("commitment", "user_id"))
    return {
        reason: frozenset(people[ref] for ref, given in reasons.items() if given is reason and ref in people)
        for reason in (Exclusion.OWN_REQUEST, Exclusion.AUTHORIZED_IT)
    }


def _delegations(review: Review, person: UUID | None, barred: frozenset[UUID], now: datetime) -> tuple[Delegated, ...]:
    """The delegations in force of this review's tiers that the rules ask about."""
    if person is None and not barred:
        return ()
    rows = in_force(organization_id=review.organization_id, tiers=[part["tier"] for part in review.parts], now=now)
    rows = rows.filter(Q(to_user_id=person) | Q(from_user_id__in=barred)).order_by("id")
    return tuple(Delegated(*row) for row in rows.values_list("tier", "from_user_id", "to_user_id", "id"))


def in_force(*, organization_id: UUID, tiers: Iterable[str], now: datetime) -> QuerySet[Delegation]:
    """Delegations of these tiers that have begun and not ended."""
    # The end in time counts at once, also before the scheduled task has put it on record.
    return Delegation.objects.filter(
        organization_id=organization_id, tier__in=list(tiers), ended_at=None, starts_at__lte=now, ends_at__gt=now
    )


def votes_covered(*, review: Review, votes: Iterable[ReviewVote]) -> dict[UUID, list[str]]:
    """For whom each voter stood in when they voted, in this review's tiers: usernames by vote."""
    given = {vote.id: vote for vote in votes}
    people = dict(
        PersonReference.objects.filter(commitment__in={vote.voter_ref for vote in given.values()}).values_list(
            "commitment", "user_id"
        )
    )
    rows = Delegation.objects.filter(
        organization_id=review.organization_id,
        tier__in=[part["tier"] for part in review.parts],
        to_user_id__in=people.values(),
    ).select_related("from_user")
    lent = list(rows.order_by("id")) if people else []
    return {
        vote.id: list(
            dict.fromkeys(
                row.from_user.username
                for row in lent
                if row.to_user_id == people.get(vote.voter_ref)
                and row.starts_at <= vote.at < (row.ended_at or row.ends_at)
            )
        )
        for vote in given.values()
    }


def told(*, review: Review, by_tier: Mapping[str, tuple[User, ...]], now: datetime) -> dict[str, tuple[User, ...]]:
    """Of the people who may sign, those who get messages: not a person who is away while somebody who may sign stands
    in for them."""
    rows = in_force(organization_id=review.organization_id, tiers=by_tier, now=now)
    away = {(tier, by): to for tier, by, to in rows.values_list("tier", "from_user_id", "to_user_id")}
    found = {}
    for tier, people in by_tier.items():
        ids = {person.id for person in people}
        found[tier] = tuple(person for person in people if away.get((tier, person.id)) not in ids)
    return found


@dataclass(frozen=True, slots=True)
class ReminderPeople:
    """Who gets a reminder. `operators` is empty unless the review escalates: nobody has claimed it, or too few people
    are left who may approve."""

    reviewers: tuple[User, ...]
    operators: tuple[User, ...]
    open_tiers: tuple[str, ...]


def reminder_people(*, review: Review, attempt: Attempt | None) -> ReminderPeople:
    now = database_now()
    facts = facts_of(review=review, attempt=attempt, person=None, now=now)
    by_tier = signers(review=review, facts=facts)
    present = told(review=review, by_tier=by_tier, now=now)
    reviewers = {person.id: person for people in present.values() for person in people}
    claimed = review.claimed_until is not None and review.claimed_until > now
    operators: tuple[User, ...] = ()
    if not claimed or not _reachable(facts, by_tier):
        operators = tuple(_with_roles(review.organization_id, [OPERATOR]).get(OPERATOR, ()))
    return ReminderPeople(tuple(reviewers.values()), operators, tuple(by_tier))


def signers(*, review: Review, facts: Facts) -> dict[str, tuple[User, ...]]:
    """Everybody who may still approve, by tier: has the role, is not excluded, and the tier is not complete."""
    tiers, excluded = quorum_for(facts).open_tiers, excluded_people(facts)
    found = _with_roles(review.organization_id, [_reviewer_role(tier) for tier in tiers])
    return {
        tier: tuple(
            person
            for person in found.get(_reviewer_role(tier), ())
            if person.id not in excluded and facts.assigned in (None, person.id)
        )
        for tier in tiers
    }


def progress_of(*, review: Review, facts: Facts) -> list[dict[str, Any]]:
    """For each tier: approvals, what is missing, and who may still approve."""
    waits = review.status == ReviewStatus.REQUESTED
    names = may_sign(review=review, facts=facts) if waits else {}
    return [
        {
            "tier": bucket.tier,
            "approvals_required": bucket.required,
            "approvals": bucket.approvals,
            "missing": bucket.missing,
            "may_sign": names.get(bucket.tier, []),
        }
        for bucket in quorum_for(facts).buckets
    ]


def may_sign(*, review: Review, facts: Facts) -> dict[str, list[str]]:
    """Usernames of those who may still approve, by tier."""
    by_tier = signers(review=review, facts=facts)
    return {tier: sorted(person.username for person in people) for tier, people in by_tier.items()}


def _reachable(facts: Facts, by_tier: dict[str, tuple[User, ...]]) -> bool:
    """Whether the quorum could be met if everybody who is left approved."""
    left = {tier: frozenset(person.id for person in people) for tier, people in by_tier.items()}
    holders = {tier: facts.holders.get(tier, frozenset()) | left.get(tier, frozenset()) for tier in _tiers(facts)}
    everybody = sorted(frozenset().union(*left.values()))
    signed = [Voice(person, person, approves=True) for person in everybody]
    return quorum_for(replace(facts, holders=holders), *signed).met


def _tiers(facts: Facts) -> Iterable[str]:
    return {bucket.tier for bucket in facts.buckets}


def _with_roles(organization_id: UUID, roles: list[str]) -> dict[str, list[User]]:
    rows = User.objects.filter(
        groups__role_group__organization_id=organization_id, groups__role_group__role__in=roles, is_active=True
    )
    found: dict[str, list[User]] = {}
    for person in rows.order_by("username").annotate(role=F("groups__role_group__role")):
        found.setdefault(person.role, []).append(person)
    return found
