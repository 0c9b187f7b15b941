"""Reads policies, and the reviewer tiers that their rules may name."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from governance.policies.models import Policy
from governance.tenancy.models import ReviewerTier
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound


def policy_list(*, slug: str | None = None, state: str | None = None) -> QuerySet[Policy]:
    rows = Policy.objects.all()
    if slug is not None:
        rows = rows.filter(slug=slug)
    if state is not None:
        rows = rows.filter(state=state)
    return rows


def policy_get(*, policy_id: UUID) -> Policy:
    return tenant_get(Policy, policy_id)


def policy_lock(*, actor: Actor, policy_id: UUID) -> Policy:
    """The locked row (FOR NO KEY UPDATE). NotFound if the actor may not act in its organization."""
    policy = tenant_get(Policy, policy_id, lock=True)
    if not actor.may_act_in(policy.organization_id):
        raise NotFound
    return policy


def reviewer_tiers(*, organization_id: UUID) -> tuple[str, ...]:
    """The active tiers of the organization, which rules and steps may name."""
    return tiers_active(organization_ids=[organization_id])


def tiers_active(*, organization_ids: Iterable[UUID]) -> tuple[str, ...]:
    rows = ReviewerTier.objects.filter(organization_id__in=list(organization_ids), active=True)
    return tuple(rows.order_by("slug").values_list("slug", flat=True).distinct())
