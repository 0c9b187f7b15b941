"""Reads delegations: whose they are, who may see them, who can be chosen, and for whom a person stands in."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from attempts.reviews.models import Delegation
from attempts.reviews.selectors.standing import ROLE
from attempts.reviews.states import DelegationState
from governance.people.models import User
from governance.people.rules.roles import AUDIT
from governance.people.selectors.people import organizations_where
from governance.tenancy.models import Organization, RoleGroup
from reasoncodes.base.actors import Actor

PAGE = 30
MOST_SHOWN = 200
GIVEN, RECEIVED = "given", "received"


def delegation_list(
    *, actor: Actor, now: datetime, state: str | None = None, direction: str | None = None, tier: str | None = None
) -> QuerySet[Delegation]:
    """A person's own delegations, and where they operate or audit, everybody's."""
    everywhere = organizations_where(user=User(id=actor.id), permission=AUDIT) & actor.organization_ids
    given, received = Q(from_user_id=actor.id), Q(to_user_id=actor.id)
    seen = {GIVEN: given, RECEIVED: received}.get(direction or "", given | received | Q(organization_id__in=everywhere))
    rows = Delegation.objects.filter(seen).select_related("from_user", "to_user", "ended_by").order_by("-id")
    if tier is not None:
        rows = rows.filter(tier=tier)
    return rows.filter(state_is(DelegationState(state), now)) if state is not None else rows


def state_is(state: DelegationState, now: datetime) -> Q:
    """The rows in this state; the twin of `Delegation.state_at`."""
    over = Q(ended_at__isnull=False) | Q(ends_at__lte=now)
    if state is DelegationState.ENDED:
        return over
    return ~over & (Q(starts_at__lte=now) if state is DelegationState.ACTIVE else Q(starts_at__gt=now))


@dataclass(frozen=True, slots=True)
class OwnDelegations:
    """A person's open delegations, and one page of those that ended. `next`: where the next page begins."""

    open: list[Delegation]
    ended: list[Delegation]
    next: UUID | None


def own_delegations(*, person: UUID, now: datetime, before: UUID | None = None) -> OwnDelegations:
    rows = Delegation.objects.filter(Q(from_user_id=person) | Q(to_user_id=person))
    rows = rows.select_related("from_user", "to_user", "ended_by", "organization").order_by("-id")
    over = state_is(DelegationState.ENDED, now)
    ended = rows.filter(over, **({"id__lt": before} if before else {}))[: PAGE + 1]
    found = list(ended)
    return OwnDelegations(
        list(rows.filter(~over)[:MOST_SHOWN]), found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else None
    )


@dataclass(frozen=True, slots=True)
class TierToDelegate:
    """A tier that a person can delegate, with the people who can be chosen. `people` is empty if nobody else has it, or
    everybody who has is away. `taken`: the person has delegated it already."""

    organization: Organization
    tier: str
    people: list[str]
    taken: bool


def tiers_to_delegate(*, person: UUID, organization_ids: Iterable[UUID]) -> list[TierToDelegate]:
    """Every tier of the person, with the other active people who have it and are not away themselves."""
    mine = RoleGroup.objects.filter(
        group__user__id=person, organization_id__in=list(organization_ids), role__startswith=ROLE
    ).select_related("organization")
    groups = {row.group_id: row for row in mine}
    rows = User.objects.filter(groups__in=groups, is_active=True).order_by("username")
    holders: dict[int, list[tuple[UUID, str]]] = defaultdict(list)
    for id_, username, group_id in rows.values_list("id", "username", "groups"):
        holders[group_id].append((id_, username))
    away = _away(organization_ids={row.organization_id for row in groups.values()})
    found = []
    for group_id, row in groups.items():
        tier = row.role.removeprefix(ROLE)
        absent = away[row.organization_id, tier]
        people = [name for id_, name in holders[group_id] if id_ != person and id_ not in absent]
        found.append(TierToDelegate(row.organization, tier, people, person in absent))
    return sorted(found, key=lambda one: (one.organization.slug, one.tier))


def _away(*, organization_ids: Iterable[UUID]) -> defaultdict[tuple[UUID, str], set[UUID]]:
    """Who has delegated which tier, now or for a later time."""
    found: defaultdict[tuple[UUID, str], set[UUID]] = defaultdict(set)
    rows = Delegation.objects.filter(organization_id__in=list(organization_ids), ended_at=None)
    for organization_id, tier, person in rows.values_list("organization_id", "tier", "from_user_id"):
        found[organization_id, tier].add(person)
    return found


def has_delegated(*, organization_id: UUID, tier: str, person: UUID) -> bool:
    return Delegation.objects.filter(
        organization_id=organization_id, tier=tier, from_user_id=person, ended_at=None
    ).exists()


def colleague(*, organization_id: UUID, username: str) -> User | None:
    """An active person with a role in the organization."""
    rows = User.objects.filter(username=username, is_active=True)
    return rows.filter(groups__role_group__organization_id=organization_id).distinct().first()
