"""Whether a person may decide on a review at this moment: roles, delegations and votes, read for the pure rules."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from attempts.models import Attempt, Delegation, Review, ReviewVote
from attempts.review_errors import AlreadyVoted, NotAReviewer, ReviewClaimed, ReviewExpired, ReviewOver
from attempts.review_rules import Exclusion, Facts, Quorum, Voice, authority_for, quorum_of
from attempts.selectors.review import claimed_by_other
from attempts.states import AttemptState, ReviewStatus, VoteVerdict
from governance.errors import OwnWork
from governance.models import PersonReference, RoleGroup, User
from governance.roles import AUDITOR
from reasoncodes.errors import DomainError, WrongState


@dataclass(frozen=True, slots=True)
class Standing:
    """One person's place in one review. `authority`: whose role counts, or why there is none."""

    facts: Facts
    person: UUID | None
    authority: UUID | Exclusion
    quorum: Quorum


def reviewer_role(tier: str) -> str:
    return f"reviewer:{tier}"


def role_holders(*, organization_id: UUID, role: str, people: Iterable[UUID]) -> frozenset[UUID]:
    """Who of these people has the role right now. A person who was switched off has none."""
    rows = RoleGroup.objects.filter(
        organization_id=organization_id, role=role, group__user__id__in=set(people), group__user__is_active=True
    )
    return frozenset(rows.values_list("group__user__id", flat=True))


def standing_of(*, review: Review, attempt: Attempt, person: UUID | None, now: datetime) -> Standing:
    """To be read under the review's lock by whoever decides: a role taken away a moment ago decides nothing."""
    facts = facts_of(review=review, attempt=attempt, person=person, now=now)
    authority = authority_for(person, facts) if person is not None else Exclusion.NOT_A_REVIEWER
    return Standing(facts, person, authority, quorum_with(facts, required=review.approvals_required))


def quorum_with(facts: Facts, *more: Voice, required: int) -> Quorum:
    return quorum_of((*facts.voices, *more), required=required, holders=facts.holders, requesters=facts.requesters)


def facts_of(*, review: Review, attempt: Attempt, person: UUID | None, now: datetime) -> Facts:
    responsible = attempt.caller.responsible_id
    voices = _voices(review)
    delegators = _delegators(review, person, now) if person is not None else ()
    people = {person, *delegators, *(voice.authority for voice in voices)} - {None}
    return Facts(
        requesters=frozenset({responsible} if responsible else ()),
        holders=role_holders(
            organization_id=review.organization_id,
            role=reviewer_role(review.tier),
            people=[row for row in people if row is not None],
        ),
        delegators=delegators,
        voices=voices,
    )


def refusal_of(
    *, review: Review, attempt: Attempt, standing: Standing, now: datetime, expired: bool = False
) -> DomainError | None:
    """What the person would be told if they decided now; None when their word would count. `expired`: just now."""
    if isinstance(standing.authority, Exclusion):
        return _excluded(review, standing.authority)
    if expired or review.status == ReviewStatus.EXPIRED or (_open(review) and review.expires_at <= now):
        return ReviewExpired(subject_type="review", subject_id=review.id)
    if not _open(review):
        return ReviewOver(f"This review is {review.status}.", subject_type="review", subject_id=review.id)
    if attempt.state != AttemptState.REVIEW_REQUIRED:
        return WrongState(f"The attempt is {attempt.state}.")
    if review.approvals_required == 1 and claimed_by_other(review, person=standing.person, now=now):
        return ReviewClaimed()
    return None


def members(*, organization_id: UUID, people: Iterable[UUID]) -> dict[UUID, str]:
    """Usernames of those who are in the organization; nobody else's name is given away."""
    rows = User.objects.filter(id__in=set(people), groups__role_group__organization_id=organization_id)
    return dict(rows.distinct().values_list("id", "username"))


def delegate_find(*, organization_id: UUID, username: str) -> User | None:
    """Somebody of the organization who may act in it at all: an auditor changes nothing, also not for others."""
    rows = User.objects.filter(username=username, is_active=True)
    return rows.filter(groups__role_group__in=_acting_roles(organization_id)).distinct().first()


def _acting_roles(organization_id: UUID) -> QuerySet[RoleGroup]:
    return RoleGroup.objects.filter(organization_id=organization_id).exclude(role=AUDITOR)


def _open(review: Review) -> bool:
    return review.status == ReviewStatus.REQUESTED


def _excluded(review: Review, reason: Exclusion) -> DomainError:
    if reason is Exclusion.OWN_REQUEST:
        words = "You are behind this request, or would decide for whoever is."
        return OwnWork(words, subject_type="review", subject_id=review.id)
    if reason is Exclusion.NOT_A_REVIEWER:
        words = f"This review is for the tier {review.tier}."
        return NotAReviewer(words, subject_type="review", subject_id=review.id)
    return AlreadyVoted(subject_type="review", subject_id=review.id)


def _voices(review: Review) -> tuple[Voice, ...]:
    votes = list(ReviewVote.objects.filter(review=review).order_by("id"))
    refs = {ref for vote in votes for ref in (vote.voter_ref, vote.on_behalf_of_ref) if ref}
    people = dict(PersonReference.objects.filter(commitment__in=refs).values_list("commitment", "user_id"))
    return tuple(
        Voice(
            voter=people.get(vote.voter_ref),
            authority=people.get(vote.on_behalf_of_ref or vote.voter_ref),
            approves=vote.verdict == VoteVerdict.APPROVE,
        )
        for vote in votes
    )


def _delegators(review: Review, person: UUID, now: datetime) -> tuple[UUID, ...]:
    """Only while the person is in the organization themselves."""
    rows = Delegation.objects.filter(
        organization_id=review.organization_id,
        tier=review.tier,
        to_user_id=person,
        to_user__groups__role_group__in=_acting_roles(review.organization_id),
        starts_at__lte=now,
        ends_at__gt=now,
    )
    return tuple(dict.fromkeys(rows.order_by("id").values_list("from_user_id", flat=True)))
