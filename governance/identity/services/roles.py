"""Roles that a mapping gives: recomputed at each sign-in, at each change by SCIM, and when the mapping changes."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import transaction

from governance.identity.models import IdentityProvider, ProviderGroup, ProviderPerson
from governance.identity.rules.mapping import roles_allowed, roles_given, roles_of_values
from governance.identity.selectors import provider_actor
from governance.identity.states import Origin
from governance.people.errors import RolesForbidden
from governance.people.models import User
from governance.people.selectors.people import roles_held, standing_held
from governance.people.services.people import person_role_give, person_role_take
from governance.tenancy.models import Organization
from governance.violations.services import violation_record
from reasoncodes.base.actors import Actor

CONSOLE_ROLES = ("operator", "auditor", "owner:")


def roles_from_claims(
    *, at: datetime, provider: IdentityProvider, person: ProviderPerson, values: Iterable[str]
) -> frozenset[str]:
    """What the claims of a sign-in say. If the provider sends groups by SCIM, they alone count: a claim from an old
    sign-in must not outlive a removal there."""
    if _sends_groups(provider):
        return roles_recompute(at=at, provider=provider, person_id=person.id)
    return roles_apply(at=at, provider=provider, person=person, wanted=roles_of_values(values, provider.mapping))


def roles_recompute(*, at: datetime, provider: IdentityProvider, person_id: UUID) -> frozenset[str]:
    """After a change of groups or of the mapping. Without groups from SCIM, roles that the mapping no longer has are
    taken; new ones come with the next sign-in."""
    with transaction.atomic():
        person = ProviderPerson.objects.select_for_update(no_key=True, of=("self",)).get(id=person_id)
        if _sends_groups(provider):
            names = ProviderGroup.objects.filter(provider=provider, members=person).values_list("name", flat=True)
            wanted = roles_of_values(names, provider.mapping)
        else:
            wanted = frozenset(person.roles) & frozenset(roles_given(provider.mapping))
        return roles_apply(at=at, provider=provider, person=person, wanted=wanted)


def roles_apply(
    *, at: datetime, provider: IdentityProvider, person: ProviderPerson, wanted: frozenset[str]
) -> frozenset[str]:
    """Gives and takes, by the provider, so that the person has the wanted roles and those that people gave. The mapping
    was confirmed by two people; the ledger names the provider as the one who gives."""
    actor, user, organization = provider_actor(provider), person.user, provider.organization
    if not (person.active and user.is_active):
        wanted = frozenset()
    before = frozenset(roles_held(user_id=user.id, organization_id=organization.id))
    standing = frozenset(standing_held(user_id=user.id, organization_id=organization.id))
    asked, by_hand = wanted, standing - frozenset(person.roles)
    wanted = roles_allowed(asked, by_hand=by_hand)
    if wanted != asked:
        _forbidden_tell(actor, at, user, organization)
    for role in sorted(set(person.roles) - wanted):
        person_role_take(actor=actor, at=at, user=user, organization=organization, role=role)
    held = before - (frozenset(person.roles) - wanted)
    given = sorted(wanted - held)
    for role in given:
        person_role_give(actor=actor, at=at, user=user, organization=organization, role=role)
    # A role that somebody gave by hand stays when the group goes: only what the mapping gave is the mapping's to take.
    person.roles = sorted((set(person.roles) & wanted) | set(given))
    person.changed_at = at
    person.save(update_fields=["roles", "changed_at"])
    if person.origin != Origin.LINKED:
        _console_access(person, held | wanted)
    return held | wanted


def _forbidden_tell(actor: Actor, at: datetime, user: User, organization: Organization) -> None:
    """On record, but not raised: a refusal would also undo what the same change takes away."""
    broken = RolesForbidden(subject_type="person", subject_id=user.id, organization_id=organization.id)
    transaction.on_commit(lambda: violation_record(actor=actor, at=at, broken=broken))


def _console_access(person: ProviderPerson, roles: frozenset[str]) -> None:
    """Reviewers have their own pages; everybody else works in the console."""
    opens = any(role.startswith(CONSOLE_ROLES) for role in roles)
    if person.user.is_staff != opens:
        person.user.is_staff = opens
        person.user.save(update_fields=["is_staff"])


def _sends_groups(provider: IdentityProvider) -> bool:
    return ProviderGroup.objects.filter(provider=provider).exists()
