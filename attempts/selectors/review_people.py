"""Who may still sign a review, whom to remind of it, and when that is a matter for the operators too."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F

from attempts.models import Attempt, Delegation, Review
from attempts.review_quorum import Voice
from attempts.review_rules import Facts, excluded_people, quorum_for
from attempts.selectors.review import database_now
from attempts.selectors.review_standing import acting_people, facts_of, reviewer_role
from attempts.states import ReviewStatus
from governance.models import User
from governance.roles import OPERATOR


@dataclass(frozen=True, slots=True)
class ReminderPeople:
    """`operators` is empty unless the review escalates: nobody works on it, or too few people are left who may."""

    reviewers: tuple[User, ...]
    operators: tuple[User, ...]
    open_tiers: tuple[str, ...]


def reminder_people(*, review: Review, attempt: Attempt | None) -> ReminderPeople:
    now = database_now()
    facts = facts_of(review=review, attempt=attempt, person=None, now=now)
    by_tier = signers(review=review, facts=facts)
    reviewers = {person.id: person for people in by_tier.values() for person in people}
    claimed = review.claimed_until is not None and review.claimed_until > now
    operators: tuple[User, ...] = ()
    if not claimed or not _reachable(facts, by_tier):
        operators = tuple(_with_roles(review.organization_id, [OPERATOR]).get(OPERATOR, ()))
    return ReminderPeople(tuple(reviewers.values()), operators, tuple(by_tier))


def signers(*, review: Review, facts: Facts) -> dict[str, tuple[User, ...]]:
    """By tier whose signature still helps: everybody with its role who is not excluded."""
    tiers, excluded = quorum_for(facts).open_tiers, excluded_people(facts)
    found = _with_roles(review.organization_id, [reviewer_role(tier) for tier in tiers])
    return {
        tier: tuple(person for person in found.get(reviewer_role(tier), ()) if person.id not in excluded)
        for tier in tiers
    }


def progress_of(*, review: Review, facts: Facts, now: datetime) -> list[dict[str, Any]]:
    """Tier by tier: what is there, what is missing, and who may still sign."""
    waits = review.status == ReviewStatus.REQUESTED
    names = may_sign(review=review, facts=facts, now=now) if waits else {}
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


def may_sign(*, review: Review, facts: Facts, now: datetime) -> dict[str, list[str]]:
    """Their usernames, by tier; those to whom one of them delegates the tier are among them."""
    by_tier, excluded = signers(review=review, facts=facts), excluded_people(facts)
    rows = Delegation.objects.filter(
        organization_id=review.organization_id, tier__in=by_tier, starts_at__lte=now, ends_at__gt=now
    )
    lent = list(rows.select_related("to_user"))
    acting = acting_people(organization_id=review.organization_id, people={row.to_user_id for row in lent})
    names = {tier: {person.username for person in people} for tier, people in by_tier.items()}
    for row in lent:
        known = {person.id for person in by_tier[row.tier]}
        if row.from_user_id in known and row.to_user_id in acting - set(excluded):
            names[row.tier].add(row.to_user.username)
    return {tier: sorted(people) for tier, people in names.items()}


def _reachable(facts: Facts, by_tier: dict[str, tuple[User, ...]]) -> bool:
    """Whether the quorum could be met if everybody who is left signed."""
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
