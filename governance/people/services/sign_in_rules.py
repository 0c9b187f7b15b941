"""An organization's own rules for signing in: which kinds of roles need a second factor there."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from governance.ledger.services import ledger_append
from governance.people.models import SignInRules
from governance.people.rules.sign_in import KINDS_OF_AN_ORGANIZATION
from governance.people.selectors.sign_in import sign_in_rules_of
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound
from reasoncodes.base.tenancy import tenant_scope


def sign_in_rules_change(
    *, actor: Actor, at: datetime, organization: Organization, second_factor_roles: Sequence[str]
) -> SignInRules:
    """Takes effect with the next request of each person. It adds to what the installation requires, and cannot take
    that away."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    if set(second_factor_roles) - set(KINDS_OF_AN_ORGANIZATION):
        allowed = ", ".join(KINDS_OF_AN_ORGANIZATION)
        raise InvalidInput(errors=[FieldError("/second_factor_roles", f"zero or more of: {allowed}")])
    chosen = [kind for kind in KINDS_OF_AN_ORGANIZATION if kind in second_factor_roles]
    with tenant_scope([organization.id]), transaction.atomic():
        # Two changes at once: the second one waits, so that the ledger has them in the order in which they count.
        Organization.objects.select_for_update(no_key=True).get(id=organization.id)
        before = sign_in_rules_of(organization_id=organization.id)
        rules, _ = SignInRules.objects.update_or_create(
            organization=organization, defaults={"second_factor_roles": chosen, "changed_at": at}
        )
        ledger_append(
            action="sign_in_rules.changed",
            organization_id=organization.id,
            subject_type="organization",
            subject_id=organization.id,
            actor=actor,
            at=at,
            payload={"before": before, "after": chosen},
        )
    return rules
