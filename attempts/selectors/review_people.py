"""Whom to remind of a review, and when that is a matter for the operators too."""

from dataclasses import dataclass
from uuid import UUID

from attempts.models import Attempt, Review
from attempts.review_rules import excluded_people
from attempts.selectors.review import database_now
from attempts.selectors.review_standing import facts_of, reviewer_role
from governance.models import User
from governance.roles import OPERATOR


@dataclass(frozen=True, slots=True)
class ReminderPeople:
    """`operators` is empty unless the review escalates: nobody works on it, or too few people are left who may."""

    reviewers: tuple[User, ...]
    operators: tuple[User, ...]


def reminder_people(*, review: Review, attempt: Attempt) -> ReminderPeople:
    now = database_now()
    facts = facts_of(review=review, attempt=attempt, person=None, now=now)
    excluded = excluded_people(facts)
    holders = _with_role(review.organization_id, reviewer_role(review.tier))
    reviewers = tuple(person for person in holders if person.id not in excluded)
    claimed = review.claimed_until is not None and review.claimed_until > now
    too_few = len(reviewers) < review.approvals_required - len({voice.authority for voice in facts.voices})
    operators = _with_role(review.organization_id, OPERATOR) if too_few or not claimed else ()
    return ReminderPeople(reviewers, operators)


def _with_role(organization_id: UUID, role: str) -> tuple[User, ...]:
    rows = User.objects.filter(
        groups__role_group__organization_id=organization_id, groups__role_group__role=role, is_active=True
    )
    return tuple(rows.order_by("username"))
