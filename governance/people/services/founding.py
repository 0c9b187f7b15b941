"""The founding of an organization: one person acts alone until two can confirm for each other. It ends by itself, and
never begins again."""

from datetime import datetime

from django.db import transaction

from governance.authority.rules import ENOUGH
from governance.ledger.services import ledger_append
from governance.people.models import FoundingEnd
from governance.people.selectors.people import confirmers, founding_has_ended
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.tenancy import tenant_scope


def founding_settle(*, organization: Organization, at: datetime) -> bool:
    """Whether the organization is still being founded. Ends the founding if enough people can confirm now. Called
    whenever a role was given, and before every change of authority."""
    with tenant_scope([organization.id]), transaction.atomic():
        if founding_has_ended(organization_id=organization.id):
            return False
        # Two roles given at once would each count one person and leave the founding open. NO KEY: intake inserts rows
        # that refer to the organization and must not wait.
        Organization.objects.select_for_update(no_key=True).get(id=organization.id)
        if founding_has_ended(organization_id=organization.id):
            return False
        people = confirmers(organization_id=organization.id)
        if len(people) < ENOUGH:
            return True
        FoundingEnd(organization=organization, ended_at=at).save()
        ledger_append(
            action="founding.ended",
            organization_id=organization.id,
            subject_type="organization",
            subject_id=organization.id,
            actor=SYSTEM,
            at=at,
            payload={"people": len(people)},
        )
        return False
