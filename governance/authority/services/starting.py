"""A first contract from a starter, and the policy that it needs."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from governance.authority.models import AuthorityChange
from governance.authority.services.changes import Outcome, authority_act
from governance.authority.states import AuthorityState
from governance.contracts.models import Contract
from governance.contracts.rules.starters import REVIEWER, Starter, starter_documents
from governance.contracts.services.contracts import contract_create
from governance.people.services.role_groups import role_group_ensure
from governance.policies.selectors import policy_list
from governance.policies.services import policy_create
from governance.policies.states import PolicyState
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound

PUBLISH = "policy.publish"


@dataclass(frozen=True, slots=True)
class Started:
    """`waiting`: the proposal to publish the starter's policy, if it waits for a second person."""

    contract: Contract
    waiting: AuthorityChange | None


def contract_from_starter(
    *, actor: Actor, at: datetime, organization: Organization, starter: Starter, slug: str, title: str = ""
) -> Started:
    """Creates a draft with the starter's documents. Drafts the starter's policy and publishes it, or proposes that,
    unless the organization already has an active one with this name."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    with transaction.atomic():
        # An organization from before tiers were its own may have others only.
        role_group_ensure(organization=organization, role=f"reviewer:{REVIEWER}")
        waiting = _policy(starter, organization, actor=actor, at=at)
        contract = contract_create(
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
    return Started(contract, waiting)


def _policy(starter: Starter, organization: Organization, *, actor: Actor, at: datetime) -> AuthorityChange | None:
    own = policy_list(slug=starter.policy_slug).filter(organization=organization)
    if own.filter(state=PolicyState.ACTIVE).exists():
        return None
    # A second contract from the same starter must not propose the same policy again.
    drafts = [str(id_) for id_ in own.filter(state=PolicyState.DRAFT).values_list("id", flat=True)]
    proposed = AuthorityChange.objects.filter(kind=PUBLISH, state=AuthorityState.PROPOSED, subject__in=drafts)
    known = proposed.filter(organization=organization).first()
    if known is not None:
        return known
    policy = policy_create(
        actor=actor,
        at=at,
        organization=organization,
        slug=starter.policy_slug,
        title=starter.title,
        rules=[dict(rule) for rule in starter.rules],
    )
    outcome: Outcome = authority_act(
        actor=actor, at=at, organization=organization, kind=PUBLISH, subject=str(policy.id)
    )
    return outcome.change if outcome.applied is None else None
