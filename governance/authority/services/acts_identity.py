"""The authority act about identity providers: connect one, change one, open its SCIM connection."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.authority.errors import ProposalOutdated
from governance.authority.hooks import Applied, Prepared
from governance.authority.models import AuthorityChange
from governance.authority.services.shapes import choice_of, only, text_of
from governance.identity.models import IdentityProvider
from governance.identity.rules.mapping import roles_given
from governance.identity.rules.terms import TERMS
from governance.identity.rules.tokens import scim_token_generate
from governance.identity.selectors import SECRET, provider_get
from governance.identity.services.providers import (
    identity_provider_change,
    identity_provider_create,
    scim_open,
    terms_check,
)
from governance.outside.secret_box import SecretUnreadable, seal, unseal
from governance.people.rules.keys import key_hash
from governance.tenancy.models import SLUG, Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState

CREATE, CHANGE, OPEN_SCIM = "create", "change", "open_scim"


@dataclass(frozen=True, slots=True)
class IdentityProviderChange:
    """`subject`: the slug of a new provider, or the id of one. `details`: `act` (create, change, open_scim), `kind`,
    `terms` and `client_secret`. The secret is stored encrypted, a SCIM token as its hash; both are under `key`, which
    no answer shows."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        only(details, "act", "kind", "terms", "client_secret")
        act = text_of(details, "act", longest=20)
        if act == CREATE:
            return _prepare_create(organization, subject, details)
        if act == CHANGE:
            return _prepare_change(_provider(organization, subject), details)
        if act == OPEN_SCIM:
            return _prepare_scim(_provider(organization, subject))
        raise InvalidInput(errors=[FieldError("/details/act", "one of: create, change, open_scim")])

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        return {}

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        asked, key = change.details, change.details.get("key", {})
        who: dict[str, Any] = {"actor": actor, "at": at, "organization": change.organization}
        if asked["act"] == CREATE:
            made = identity_provider_create(
                **who,
                slug=change.subject,
                kind=asked["kind"],
                terms=asked["terms"],
                secret_sealed=_sealed_now(key) or "",
            )
            return _applied(made)
        provider = _provider(change.organization, change.subject)
        # What the second person read as "before" must be what is replaced.
        if _shown(provider) != change.before:
            raise ProposalOutdated
        if asked["act"] == CHANGE:
            sealed = _sealed_now(key)
            return _applied(
                identity_provider_change(**who, provider_id=provider.id, terms=asked["terms"], secret_sealed=sealed)
            )
        return _applied(
            scim_open(**who, provider_id=provider.id, prefix=key["prefix"], token_sha256=key["token_sha256"])
        )


def _prepare_create(organization: Organization, subject: str, details: Mapping[str, Any]) -> Prepared:
    slug = choice_of(subject, "/subject", pattern=SLUG)
    kind, terms = text_of(details, "kind", longest=8), _terms(details)
    terms_check(kind=kind, terms=terms)
    if IdentityProvider.objects.filter(organization=organization, active=True).exists():
        raise AlreadyExists("This organization has an active provider. Disconnect it first.")
    after = _shown(IdentityProvider(slug=slug, kind=kind, **terms))
    complete = {"act": CREATE, "kind": kind, "terms": terms, **_sealed(details)}
    return Prepared(slug, complete, after=after, loosens=True)


def _prepare_change(provider: IdentityProvider, details: Mapping[str, Any]) -> Prepared:
    terms = _terms(details)
    merged = {name: getattr(provider, name) for name in TERMS} | terms
    terms_check(kind=provider.kind, terms=merged)
    after = _shown(IdentityProvider(slug=provider.slug, kind=provider.kind, scim_prefix=provider.scim_prefix, **merged))
    sealed = _sealed(details)
    if sealed:
        after["client_secret"] = "replaced"  # noqa: S105  # a word for the page, not a secret
    complete = {"act": CHANGE, "terms": terms, **sealed}
    return Prepared(str(provider.id), complete, before=_shown(provider), after=after, loosens=True)


def _prepare_scim(provider: IdentityProvider) -> Prepared:
    """Whoever proposes sees the token now, once; it works from the confirmation on."""
    prefix, token = scim_token_generate()
    key = {"prefix": prefix, "token_sha256": key_hash(token).hex()}
    before = _shown(provider)
    after = before | {"scim": prefix}
    return Prepared(
        str(provider.id), {"act": OPEN_SCIM, "key": key}, before=before, after=after, loosens=True, once=token
    )


def _terms(details: Mapping[str, Any]) -> dict[str, Any]:
    terms = details.get("terms", {})
    if not isinstance(terms, dict):
        raise InvalidInput(errors=[FieldError("/details/terms", "is an object")])
    return dict(terms)


def _sealed(details: Mapping[str, Any]) -> dict[str, Any]:
    secret = text_of(details, "client_secret", longest=500, required=False)
    return {"key": {"secret_sealed": seal(secret, purpose=SECRET)}} if secret else {}


def _sealed_now(key: Mapping[str, Any]) -> str | None:
    """The proposed secret under the current SECRET_KEY. `rotate_secrets` cannot seal it again while it waits, because
    the details of a proposal never change."""
    if "secret_sealed" not in key:
        return None
    try:
        return seal(unseal(key["secret_sealed"], purpose=SECRET), purpose=SECRET)
    except SecretUnreadable as error:
        raise ProposalOutdated("The secret of this proposal cannot be read any more. Propose it again.") from error


def _provider(organization: Organization, subject: str) -> IdentityProvider:
    try:
        provider = provider_get(provider_id=UUID(subject))
    except ValueError as error:
        raise InvalidInput(errors=[FieldError("/subject", "is the id of a provider")]) from error
    if provider is None or provider.organization_id != organization.id:
        raise NotFound
    if not provider.active:
        raise WrongState("This provider is disconnected. Connect a new one.")
    return provider


def _shown(provider: IdentityProvider) -> dict[str, Any]:
    """What the two people compare."""
    terms = {name: getattr(provider, name) for name in TERMS}
    return {
        "slug": provider.slug,
        "kind": provider.kind,
        "scim": provider.scim_prefix,
        "roles": roles_given(provider.mapping),
        **terms,
    }


def _applied(provider: IdentityProvider) -> Applied:
    return Applied({"identity_provider": str(provider.id)}, made=provider)
