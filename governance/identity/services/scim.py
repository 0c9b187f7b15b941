"""What a provider says by SCIM about people and groups. The connection was confirmed by two people; each change is on
the ledger with the provider as its actor."""

from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.identity.models import IdentityProvider, ProviderGroup, ProviderPerson
from governance.identity.rules.scim import GroupChange, UserChange
from governance.identity.selectors import person_of
from governance.identity.services.people import (
    access_release,
    person_deprovision,
    person_reprovision,
    provider_person_add,
    username_at,
)
from governance.identity.services.roles import roles_recompute
from governance.identity.states import Origin
from reasoncodes.base.errors import AlreadyExists, NotFound

NAME_TAKEN = "The provider has sent another one with this name already."


def scim_user_create(*, at: datetime, provider: IdentityProvider, change: UserChange) -> ProviderPerson:
    with transaction.atomic():
        person = provider_person_add(
            at=at,
            provider=provider,
            subject=change.external_id or change.user_name or "",
            user_name=change.user_name or "",
            external_id=change.external_id or "",
            email=change.email or "",
            origin=Origin.SCIM,
        )
        if change.active is False:
            person = person_deprovision(at=at, provider=provider, person_id=person.id)
    return person


def scim_user_change(
    *, at: datetime, provider: IdentityProvider, person_id: UUID, change: UserChange
) -> ProviderPerson:
    with transaction.atomic():
        # Deactivation first: it takes locks that come before the row of this person.
        if change.active is False:
            person_deprovision(at=at, provider=provider, person_id=person_id)
        elif change.active is True:
            person_reprovision(at=at, provider=provider, person_id=person_id)
        person = person_of(provider=provider, person_id=person_id)
        if person is None:
            raise NotFound
        _rename(at=at, person=person, change=change)
    return person


def _rename(*, at: datetime, person: ProviderPerson, change: UserChange) -> None:
    """Names only. Of a linked person the provider changes neither the username nor the subject: they chose both. The
    subject of somebody who has signed in stays: otherwise whoever holds the token could put their own subject there
    and sign in as that person."""
    if person.origin != Origin.LINKED:
        if change.external_id and person.origin == Origin.SCIM and person.user.last_login is None:
            person.subject = change.external_id
        if change.user_name and change.user_name != person.user_name:
            person.user_name = change.user_name
            person.user.username = username_at(provider=person.provider, user_name=change.user_name)
        if change.email is not None:
            person.user.email = change.email
    if change.external_id is not None:
        person.external_id = change.external_id
    person.changed_at = at
    try:
        with transaction.atomic():
            person.user.save(update_fields=["username", "email"])
            person.save(update_fields=["subject", "user_name", "external_id", "changed_at"])
    except IntegrityError as error:
        raise AlreadyExists(NAME_TAKEN) from error


def scim_group_create(*, at: datetime, provider: IdentityProvider, change: GroupChange) -> ProviderGroup:
    group = ProviderGroup(
        provider=provider, name=change.name or "", external_id=change.external_id or "", changed_at=at
    )
    try:
        with transaction.atomic():
            before = _everybody(provider)
            group.save(force_insert=True)
            group.members.set(_members(provider, change.members or set()))
            # The first group makes groups decide instead of claims: that concerns everybody.
            first = ProviderGroup.objects.filter(provider=provider).count() == 1
            _recompute(at=at, provider=provider, people=before if first else set(change.members or ()))
    except IntegrityError as error:
        raise AlreadyExists(NAME_TAKEN) from error
    return group


def scim_group_change(
    *, at: datetime, provider: IdentityProvider, group_id: UUID, change: GroupChange
) -> ProviderGroup:
    try:
        with transaction.atomic():
            group = _lock_group(provider, group_id)
            touched = set(group.members.values_list("id", flat=True))
            if change.name:
                group.name = change.name
            if change.external_id is not None:
                group.external_id = change.external_id
            group.changed_at = at
            group.save(update_fields=["name", "external_id", "changed_at"])
            if change.members is not None:
                group.members.set(_members(provider, change.members))
            group.members.add(*_members(provider, change.add))
            group.members.remove(*group.members.filter(id__in=change.remove))
            touched |= set(group.members.values_list("id", flat=True))
            _recompute(at=at, provider=provider, people=touched)
    except IntegrityError as error:
        raise AlreadyExists(NAME_TAKEN) from error
    return group


def scim_group_delete(*, at: datetime, provider: IdentityProvider, group_id: UUID) -> None:
    """Its members lose what the group gave. The row of a group can go: nothing refers to it."""
    with transaction.atomic():
        group = _lock_group(provider, group_id)
        touched = set(group.members.values_list("id", flat=True))
        group.members.clear()
        # Before the group goes: without any group the claims of a sign-in would decide again.
        _recompute(at=at, provider=provider, people=touched)
        group.delete()


def _recompute(*, at: datetime, provider: IdentityProvider, people: set[UUID]) -> None:
    # In order of id: two changes at once lock people in the same order.
    for person in ProviderPerson.objects.select_related("user").filter(provider=provider, id__in=people).order_by("id"):
        before = bool(person.roles)
        roles = roles_recompute(at=at, provider=provider, person_id=person.id)
        if before and not roles:
            access_release(at=at, provider=provider, person=person)


def _members(provider: IdentityProvider, ids: set[UUID]) -> list[ProviderPerson]:
    found = list(ProviderPerson.objects.filter(provider=provider, id__in=ids))
    # Another provider's person and nobody at all get the same answer.
    if len(found) != len(ids):
        raise NotFound
    return found


def _everybody(provider: IdentityProvider) -> set[UUID]:
    return set(ProviderPerson.objects.filter(provider=provider).values_list("id", flat=True))


def _lock_group(provider: IdentityProvider, group_id: UUID) -> ProviderGroup:
    # Two changes of one group at once: the second one sees what the first one did.
    group = (
        ProviderGroup.objects.select_for_update(no_key=True, of=("self",))
        .filter(provider=provider, id=group_id)
        .first()
    )
    if group is None:
        raise NotFound
    return group
