"""Reading identity providers: by address, by organization, by SCIM token; their people and groups."""

import hmac
from uuid import UUID

from django.db.models import QuerySet

from governance.identity.models import IdentityProvider, ProviderGroup, ProviderPerson
from governance.identity.states import Origin
from governance.outside.secret_box import unseal
from governance.people.models import User
from governance.people.rules.keys import key_hash
from governance.tenancy.models import RoleGroup
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant

SECRET = "identity provider"  # noqa: S105  # the purpose of the box, not a secret


def provider_actor(provider: IdentityProvider) -> Actor:
    """The provider, as the record names it: a service outside, by its id. It acts in its own organization only."""
    return Actor(ActorKind.SERVICE, provider.id, frozenset({provider.organization_id}))


def provider_by_slug(*, slug: str) -> IdentityProvider | None:
    """An active one, before anybody is signed in: there is no scope yet."""
    with every_tenant():
        return IdentityProvider.objects.select_related("organization").filter(slug=slug, active=True).first()


def provider_of_organization(*, organization_slug: str) -> IdentityProvider | None:
    with every_tenant():
        rows = IdentityProvider.objects.select_related("organization").filter(active=True)
        return rows.filter(organization__slug=organization_slug, organization__status="active").first()


def provider_for_scim(*, slug: str, token: str) -> IdentityProvider | None:
    """None for an unknown provider, a wrong token and a closed connection: the caller must not learn which it is."""
    provider = provider_by_slug(slug=slug)
    given = key_hash(token)
    known = bytes(provider.scim_sha256) if provider and provider.scim_sha256 else b"\x00" * 32
    # Compared even without a provider, so that the answer takes as long.
    return provider if hmac.compare_digest(given, known) else None


def provider_list() -> QuerySet[IdentityProvider]:
    return IdentityProvider.objects.select_related("organization").order_by("-id")


def provider_get(*, provider_id: UUID) -> IdentityProvider | None:
    return provider_list().filter(id=provider_id).first()


def client_secret(provider: IdentityProvider) -> str:
    return unseal(provider.secret_sealed, purpose=SECRET) if provider.secret_sealed else ""


def person_at_provider(*, user: User) -> ProviderPerson | None:
    """How this person signs in by a provider, if they do. The organization is not known yet."""
    with every_tenant():
        return ProviderPerson.objects.select_related("provider__organization").filter(user=user).first()


def provider_required_for(*, user: User) -> IdentityProvider | None:
    """The provider by which alone the person may sign in. People whom a provider made have no other way in. Others must
    use it where their organization requires it, and it is their only one: another organization must not be able to shut
    them out by a role that it gave them. Administrators of the installation are the way in when it is away."""
    if user.is_superuser:
        return None
    at_provider = person_at_provider(user=user)
    if at_provider and at_provider.origin != Origin.LINKED:
        return at_provider.provider
    with every_tenant():
        places = RoleGroup.objects.filter(group__user=user).values("organization_id")
        rows = IdentityProvider.objects.select_related("organization").filter(active=True, required=True)
        found = rows.filter(organization_id__in=places).order_by("id").first()
    return None if found and roles_elsewhere(user=user, organization_id=found.organization_id) else found


def roles_elsewhere(*, user: User, organization_id: UUID) -> bool:
    """Whether the person has a role in another organization."""
    with every_tenant():
        return RoleGroup.objects.filter(group__user=user).exclude(organization_id=organization_id).exists()


def people_of(*, provider: IdentityProvider, where: dict[str, str]) -> QuerySet[ProviderPerson]:
    """`where` is a filter of SCIM. Names at the provider are compared without regard to case, as RFC 7643 says."""
    rows = ProviderPerson.objects.select_related("user").filter(provider=provider).order_by("id")
    return rows.filter(**{f"{key}__iexact" if key == "user_name" else key: value for key, value in where.items()})


def person_of(*, provider: IdentityProvider, person_id: UUID) -> ProviderPerson | None:
    return people_of(provider=provider, where={}).filter(id=person_id).first()


def groups_of(*, provider: IdentityProvider, where: dict[str, str]) -> QuerySet[ProviderGroup]:
    rows = ProviderGroup.objects.filter(provider=provider).order_by("id").prefetch_related("members")
    return rows.filter(**{f"{key}__iexact" if key == "name" else key: value for key, value in where.items()})


def group_of(*, provider: IdentityProvider, group_id: UUID) -> ProviderGroup | None:
    return groups_of(provider=provider, where={}).filter(id=group_id).first()
