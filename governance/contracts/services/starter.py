"""A first contract from a starter, in one transaction around the ordinary services."""

from datetime import datetime

from django.db import transaction

from governance.contracts.models import Contract
from governance.contracts.rules.starters import REVIEWER, Starter, starter_documents
from governance.contracts.services.contracts import contract_create
from governance.policies.selectors import policy_list
from governance.policies.services import policy_create, policy_publish
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound


def contract_from_starter(
    *, actor: Actor, at: datetime, organization: Organization, starter: Starter, slug: str, title: str = ""
) -> Contract:
    """Creates a draft with the starter's documents, and publishes the starter's policy unless the organization already
    has an active one with this name."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    with transaction.atomic():
        active = policy_list(state="active").filter(organization=organization, slug=starter.policy_slug)
        if not active.exists():
            policy = policy_create(
                actor=actor,
                at=at,
                organization=organization,
                slug=starter.policy_slug,
                title=starter.title,
                rules=[dict(rule) for rule in starter.rules],
            )
            policy_publish(actor=actor, at=at, policy_id=policy.id)
        return contract_create(
            actor=actor,
            at=at,
            organization=organization,
            slug=slug,
            title=title or starter.title,
            effect=starter.effect,
            risk_tier=starter.risk_tier,
            adapter=starter.adapter,
            review_owner=REVIEWER,
            policy_slug=starter.policy_slug,
            documents=starter_documents(starter),
        )
