"""A sign-in that a provider confirmed: who it is here, and which roles they have now."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from governance.identity.errors import ProviderOverreach, ProviderSignInRefused
from governance.identity.models import IdentityProvider, ProviderPerson
from governance.identity.rules.mapping import roles_of_values, values_of
from governance.identity.selectors import roles_elsewhere
from governance.identity.services.people import access_release, provider_person_add
from governance.identity.services.roles import roles_from_claims
from governance.identity.states import Origin
from governance.people.models import User
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists
from reasoncodes.base.tenancy import tenant_scope

LONGEST_NAME = 80


def provider_sign_in(
    *, actor: Actor, at: datetime, provider: IdentityProvider, subject: str, claims: Mapping[str, Any], name: str
) -> User:
    """The person whom provider and subject name. Mail addresses and usernames are not looked at: a provider could claim
    any of them. `actor` is the provider."""
    with tenant_scope({provider.organization_id}):
        return _sign_in(actor=actor, at=at, provider=provider, subject=subject, claims=claims, name=name)


@violations_recorded
def _sign_in(
    *, actor: Actor, at: datetime, provider: IdentityProvider, subject: str, claims: Mapping[str, Any], name: str
) -> User:
    values = values_of(claims, provider.roles_claim)
    with transaction.atomic():
        # Waits for a change by SCIM that is under way: its result decides.
        rows = ProviderPerson.objects.select_related("user").select_for_update(no_key=True, of=("self",))
        person = rows.filter(provider=provider, subject=subject).first()
        if person is None:
            person = _first_sign_in(at=at, provider=provider, subject=subject, values=values, name=name)
        _require_own(provider, person.user)
        if not (person.active and person.user.is_active):
            raise ProviderSignInRefused
        before = bool(person.roles)
        roles = roles_from_claims(at=at, provider=provider, person=person, values=values)
        if not roles and before:
            access_release(at=at, provider=provider, person=person)
    # After the commit: that the roles are gone stays, although the sign-in is refused.
    if not roles:
        raise ProviderSignInRefused("Your provider gives you no group that has a role here.")
    return person.user


def _first_sign_in(
    *, at: datetime, provider: IdentityProvider, subject: str, values: frozenset[str], name: str
) -> ProviderPerson:
    if not provider.create_on_first_sign_in:
        raise ProviderSignInRefused
    if not roles_of_values(values, provider.mapping):
        raise ProviderSignInRefused("Your provider gives you no group that has a role here.")
    chosen = name.strip()[:LONGEST_NAME] or subject[:LONGEST_NAME]
    try:
        return provider_person_add(at=at, provider=provider, subject=subject, user_name=chosen, origin=Origin.SIGN_IN)
    except AlreadyExists:
        # Another subject has this name at the provider: the subject itself is a name that nobody else has.
        return provider_person_add(
            at=at, provider=provider, subject=subject, user_name=subject[:LONGEST_NAME], origin=Origin.SIGN_IN
        )


def _require_own(provider: IdentityProvider, user: User) -> None:
    """Checked at each sign-in: a person may have become an administrator, or got a role elsewhere, since the first
    one."""
    if user.is_superuser or roles_elsewhere(user=user, organization_id=provider.organization_id):
        raise ProviderOverreach(
            subject_type="identity_provider", subject_id=provider.id, organization_id=provider.organization_id
        )
