"""A clinic with an identity provider, as two people made it."""

import json
from typing import Any

from django.test import Client
from django.utils import timezone

from governance.authority.services.changes import authority_act, authority_confirm
from governance.identity.models import IdentityProvider, ProviderPerson
from governance.identity.selectors import provider_actor
from governance.identity.services.sign_in import provider_sign_in
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.people.selectors.people import roles_held
from governance.tenancy.models import Organization
from reasoncodes.base.tenancy import every_tenant
from tests.cast import Cast

TIER = "reviewer:customer_clinician"
QA = "reviewer:sa_qa"
TERMS = {
    "issuer": "https://login.clinic.example",
    "client_id": "holdpoint",
    "mapping": {"reviewers": [TIER], "qa": ["reviewer:sa_qa"], "auditors": ["auditor"]},
    "create_on_first_sign_in": True,
}


def decide(cast: Cast, organization: Organization, subject: str, details: dict[str, Any]) -> tuple[Any, str]:
    """One operator proposes, another one confirms. Returns what came into force, and what was shown once."""
    mine = organization == cast.organization
    one = cast.operator if mine else cast.other_operator
    two = cast.second_operator if mine else cast.person("otto", "operator", organization=organization)
    with every_tenant():
        proposed = authority_act(
            actor=cast.actor(one, [organization]),
            at=timezone.now(),
            organization=organization,
            kind="identity_provider.change",
            subject=subject,
            details=details,
        )
        if proposed.applied:
            return proposed.applied.made, proposed.once
        now = timezone.now()
        done = authority_confirm(
            actor=cast.actor(two, [organization]), at=now, change_id=proposed.change.id, authenticated_at=now
        )
    assert done.applied
    return done.applied.made, proposed.once


def connect(
    cast: Cast, slug: str = "clinic-login", organization: Organization | None = None, kind: str = "oidc", **terms: Any
) -> IdentityProvider:
    details = {"act": "create", "kind": kind, "terms": TERMS | terms}
    made: IdentityProvider = decide(cast, organization or cast.organization, slug, details)[0]
    return made


def change(cast: Cast, provider: IdentityProvider, **terms: Any) -> IdentityProvider:
    details = {"act": "change", "terms": terms}
    made: IdentityProvider = decide(cast, provider.organization, str(provider.id), details)[0]
    return made


def sign_in(provider: IdentityProvider, subject: str, *groups: str, **claims: Any) -> User:
    """As if the provider had just confirmed this subject."""
    with every_tenant():
        provider = IdentityProvider.objects.select_related("organization").get(id=provider.id)
    return provider_sign_in(
        actor=provider_actor(provider),
        at=timezone.now(),
        provider=provider,
        subject=subject,
        claims={"groups": list(groups)} | claims,
        name=str(claims.get("preferred_username", subject)),
    )


def roles(user: User, provider: IdentityProvider) -> list[str]:
    with every_tenant():
        return list(roles_held(user_id=user.id, organization_id=provider.organization_id))


def actions(provider: IdentityProvider) -> list[str]:
    """What the record says that this provider did."""
    with every_tenant():
        rows = LedgerEntry.objects.filter(actor_kind="service", actor_ref=str(provider.id))
        return list(rows.order_by("id").values_list("action", flat=True))


class Scim:
    """A provider's SCIM client."""

    def __init__(self, slug: str, token: str) -> None:
        self.base = f"/scim/v2/{slug}"
        self.client = Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {token}"}

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return self.client.generic(
            method,
            f"{self.base}/{path}",
            data="" if body is None else json.dumps(body),
            content_type="application/scim+json",
            headers=self.headers,
        )

    def user(self, name: str, **more: Any) -> Any:
        return self("POST", "Users", {"userName": name, "externalId": f"id-{name}", "active": True} | more)

    def group(self, name: str, *members: str) -> Any:
        return self("POST", "Groups", {"displayName": name, "members": [{"value": one} for one in members]})

    def patch(self, path: str, *operations: dict[str, Any]) -> Any:
        return self("PATCH", path, {"Operations": list(operations)})


def scim(cast: Cast, provider: IdentityProvider) -> Scim:
    _, token = decide(cast, provider.organization, str(provider.id), {"act": "open_scim"})
    return Scim(provider.slug, token)


def person(scim_id: str) -> ProviderPerson:
    with every_tenant():
        return ProviderPerson.objects.select_related("user").get(id=scim_id)
