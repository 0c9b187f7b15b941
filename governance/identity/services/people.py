"""People of a provider: bring one in, end and give back their access."""

from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.identity.errors import EndedByOperator, ProviderOverreach
from governance.identity.models import IdentityProvider, ProviderPerson
from governance.identity.selectors import provider_actor, roles_elsewhere
from governance.identity.services.roles import roles_recompute
from governance.identity.states import Origin
from governance.ledger.services import ledger_append, person_commitment
from governance.people.models import User
from governance.people.services.leaving import accounts_suspend, sessions_end, work_release
from governance.people.services.people import person_create, person_deactivate, person_reactivate
from governance.retention.selectors.subjects import person_organizations
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, NotFound

DEACTIVATED = "provider_deactivated"


def username_at(*, provider: IdentityProvider, user_name: str) -> str:
    """The username here. With the provider's slug and a colon, which no form accepts in a username, it cannot meet
    anybody's name: neither one of another organization nor one that somebody typed."""
    return f"{provider.slug}:{user_name}"


def provider_person_add(
    *,
    at: datetime,
    provider: IdentityProvider,
    subject: str,
    user_name: str,
    origin: Origin,
    external_id: str = "",
    email: str = "",
) -> ProviderPerson:
    """A new person without a password and without a role. Never an existing one, whatever name or address they have."""
    actor = provider_actor(provider)
    try:
        with transaction.atomic():
            user = person_create(
                actor=actor, at=at, username=username_at(provider=provider, user_name=user_name), email=email
            )
            person = ProviderPerson(
                provider=provider,
                user=user,
                subject=subject,
                user_name=user_name,
                external_id=external_id,
                origin=origin,
                changed_at=at,
            )
            person.save(force_insert=True)
            record_person(person, "identity_provider.person_added", actor=actor, at=at, payload={"origin": origin})
    # Two first sign-ins at once, or a name that SCIM sends twice.
    except IntegrityError as error:
        raise AlreadyExists("The provider has a person with this name or subject already.") from error
    return person


def person_link(*, actor: Actor, at: datetime, provider: IdentityProvider, user: User, subject: str) -> ProviderPerson:
    """Ties an existing person to their subject at the provider. They asked for it while signed in, with a fresh proof;
    the door checks that. A link to a provider that is disconnected is replaced."""
    if user.is_superuser or roles_elsewhere(user=user, organization_id=provider.organization_id):
        raise ProviderOverreach(subject_type="identity_provider", subject_id=provider.id)
    if not actor.may_act_in(provider.organization_id):
        raise NotFound
    try:
        with transaction.atomic():
            ProviderPerson.objects.filter(user=user, provider__active=False).delete()
            person = ProviderPerson(
                provider=provider,
                user=user,
                subject=subject,
                user_name=user.username[:80],
                origin=Origin.LINKED,
                changed_at=at,
            )
            person.save(force_insert=True)
            record_person(person, "identity_provider.person_linked", actor=actor, at=at)
    except IntegrityError as error:
        raise AlreadyExists("This account is linked to somebody, or you are linked already.") from error
    return person


def person_deprovision(*, at: datetime, provider: IdentityProvider, person_id: UUID) -> ProviderPerson:
    """The provider says that the person is gone: their access ends as if an operator had ended it. Somebody who belongs
    to another organization as well loses what they have in this one."""
    actor = provider_actor(provider)
    with transaction.atomic():
        person = _lock(provider, person_id)
        if not person.active:
            return person
        user = person.user
        person.active = False
        person.changed_at = at
        person.save(update_fields=["active", "changed_at"])
        if user.is_active and person_organizations(user=user) <= {provider.organization_id}:
            person_deactivate(actor=actor, at=at, user_id=user.id, reason_code=DEACTIVATED)
            person.roles = []
            person.save(update_fields=["roles"])
        elif user.is_active:
            access_release(at=at, provider=provider, person=person)
            roles_recompute(at=at, provider=provider, person_id=person.id)
    person.refresh_from_db()
    return person


def access_release(*, at: datetime, provider: IdentityProvider, person: ProviderPerson) -> None:
    """For somebody who keeps the account but has no role here any more: what they hold is given back, and they are
    signed out."""
    actor = provider_actor(provider)
    with transaction.atomic():
        released = work_release(actor=actor, at=at, user_id=person.user_id)
        released["sessions"] = sessions_end(user=person.user)
        suspended = accounts_suspend(actor=actor, at=at, user=person.user)
        payload: dict[str, object] = {"released": released, "suspended": [str(one.id) for one in suspended]}
        record_person(person, "person.left_groups", actor=actor, at=at, payload=payload, reason_code=DEACTIVATED)


def person_reprovision(*, at: datetime, provider: IdentityProvider, person_id: UUID) -> ProviderPerson:
    """The provider gives back what it took. What an operator ended stays ended."""
    with transaction.atomic():
        person = _lock(provider, person_id)
        if person.active:
            if not person.user.is_active:
                raise EndedByOperator
            return person
        person.active = True
        person.changed_at = at
        person.save(update_fields=["active", "changed_at"])
        if not person.user.is_active:
            person_reactivate(
                actor=provider_actor(provider), at=at, user_id=person.user_id, organization=provider.organization
            )
        roles_recompute(at=at, provider=provider, person_id=person.id)
    person.refresh_from_db()
    return person


def _lock(provider: IdentityProvider, person_id: UUID) -> ProviderPerson:
    rows = ProviderPerson.objects.select_related("user").select_for_update(no_key=True, of=("self",))
    person = rows.filter(id=person_id, provider=provider).first()
    if person is None:
        raise NotFound
    if person.user.is_superuser:
        raise ProviderOverreach(subject_type="identity_provider", subject_id=provider.id)
    return person


def record_person(
    person: ProviderPerson,
    action: str,
    *,
    actor: Actor,
    at: datetime,
    payload: dict[str, object] | None = None,
    reason_code: str = "",
) -> None:
    ledger_append(
        action=action,
        organization_id=person.provider.organization_id,
        subject_type="identity_provider",
        subject_id=person.provider_id,
        actor=actor,
        at=at,
        payload={"person": person_commitment(user_id=person.user_id)} | (payload or {}),
        reason_code=reason_code,
    )
