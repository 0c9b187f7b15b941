"""Identity providers: connect, change, disconnect; open and close their SCIM connection.

Connecting, changing and opening widen authority: a second person confirms them before they come here. Disconnecting and
closing need one person and work at once.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

import rfc8785
from django.db import IntegrityError, transaction

from governance.identity.errors import MappingRefused
from governance.identity.models import IdentityProvider, ProviderPerson
from governance.identity.rules.mapping import mapping_problems, roles_given
from governance.identity.rules.terms import TERMS, terms_problems
from governance.identity.services.roles import roles_recompute
from governance.ledger.services import ledger_append
from governance.people.services.leaving import sessions_end
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require


def identity_provider_create(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    slug: str,
    kind: str,
    terms: Mapping[str, Any],
    secret_sealed: str = "",
) -> IdentityProvider:
    """Connects a provider. `terms` are the fields of TERMS; `secret_sealed` is the client secret, already encrypted."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    terms_check(kind=kind, terms=terms)
    provider = IdentityProvider(
        organization=organization,
        slug=slug,
        kind=kind,
        secret_sealed=secret_sealed,
        changed_at=at,
        **{name: terms[name] for name in TERMS if name in terms},
    )
    try:
        with transaction.atomic():
            provider.save(force_insert=True)
            _record(provider, "identity_provider.created", actor=actor, at=at)
    # The unique constraints decide: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists("The slug is taken, or the organization has an active provider.") from error
    return provider


def identity_provider_change(
    *,
    actor: Actor,
    at: datetime,
    organization: Organization,
    provider_id: UUID,
    terms: Mapping[str, Any],
    secret_sealed: str | None = None,
) -> IdentityProvider:
    """Changes what `terms` names. Roles that the new mapping no longer gives are taken at once."""
    with transaction.atomic():
        provider = _lock(actor, provider_id, organization.id)
        _require_active(provider)
        merged = {name: getattr(provider, name) for name in TERMS} | dict(terms)
        terms_check(kind=provider.kind, terms=merged)
        for name in terms:
            setattr(provider, name, terms[name])
        if secret_sealed is not None:
            provider.secret_sealed = secret_sealed
        provider.changed_at = at
        provider.save(update_fields=[*terms, "secret_sealed", "changed_at"])
        _record(provider, "identity_provider.changed", actor=actor, at=at)
        for person in ProviderPerson.objects.filter(provider=provider).exclude(roles=[]).order_by("id"):
            roles_recompute(at=at, provider=provider, person_id=person.id)
    return provider


def identity_provider_disable(
    *, actor: Actor, at: datetime, provider_id: UUID, reason_code: str, note: str = ""
) -> IdentityProvider:
    """Disconnects a provider: nobody signs in by it any more, its people are signed out, its SCIM token is refused. Its
    people keep their roles until an operator ends their access."""
    reason_code_require(organization_id=None, scope=Scope.INTERVENTION, code=reason_code, note=note)
    with transaction.atomic():
        provider = _lock(actor, provider_id)
        _require_active(provider)
        provider.active, provider.required = False, False
        provider.scim_sha256, provider.scim_prefix = None, ""
        provider.changed_at = at
        provider.save(update_fields=["active", "required", "scim_sha256", "scim_prefix", "changed_at"])
        _record(provider, "identity_provider.disabled", actor=actor, at=at, reason_code=reason_code)
        for person in ProviderPerson.objects.select_related("user").filter(provider=provider).order_by("id"):
            sessions_end(user=person.user)
    return provider


def scim_open(
    *, actor: Actor, at: datetime, organization: Organization, provider_id: UUID, prefix: str, token_sha256: str
) -> IdentityProvider:
    """Accepts a SCIM token, of which only the hash comes here: whoever proposed it has seen it once. It replaces an
    earlier one."""
    hashed = _hash(token_sha256)
    with transaction.atomic():
        provider = _lock(actor, provider_id, organization.id)
        _require_active(provider)
        provider.scim_prefix, provider.scim_sha256, provider.changed_at = prefix[:12], hashed, at
        provider.save(update_fields=["scim_prefix", "scim_sha256", "changed_at"])
        _record(provider, "identity_provider.scim_opened", actor=actor, at=at)
    return provider


def scim_close(*, actor: Actor, at: datetime, provider_id: UUID) -> IdentityProvider:
    """The token is refused from the next request on."""
    with transaction.atomic():
        provider = _lock(actor, provider_id)
        if provider.scim_sha256 is not None:
            provider.scim_prefix, provider.scim_sha256, provider.changed_at = "", None, at
            provider.save(update_fields=["scim_prefix", "scim_sha256", "changed_at"])
            _record(provider, "identity_provider.scim_closed", actor=actor, at=at)
    return provider


def terms_check(*, kind: str, terms: Mapping[str, Any]) -> None:
    """Raises what a person could not have typed wrong in a form, and what no mapping may give."""
    wrong = terms_problems(kind=kind, terms=terms)
    if wrong:
        raise InvalidInput(errors=[FieldError(*one) for one in wrong])
    refused = mapping_problems(terms.get("mapping", {}))
    if refused:
        raise MappingRefused(errors=[FieldError(*one) for one in refused])


def _hash(text: str) -> bytes:
    try:
        hashed = bytes.fromhex(text)
    except ValueError:
        hashed = b""
    if len(hashed) != 32:
        raise InvalidInput(errors=[FieldError("/token_sha256", "is not a SHA-256 in hexadecimal")])
    return hashed


def _lock(actor: Actor, provider_id: UUID, organization_id: UUID | None = None) -> IdentityProvider:
    # NO KEY, so that a sign-in that inserts a person of this provider does not wait.
    rows = IdentityProvider.objects.select_for_update(no_key=True).filter(id=provider_id)
    provider = (rows if organization_id is None else rows.filter(organization_id=organization_id)).first()
    if provider is None or not actor.may_act_in(provider.organization_id):
        raise NotFound
    return provider


def _require_active(provider: IdentityProvider) -> None:
    if not provider.active:
        raise WrongState("This provider is disconnected. Connect a new one.")


def _record(provider: IdentityProvider, action: str, *, actor: Actor, at: datetime, reason_code: str = "") -> None:
    """Settings and names of groups are an organization's text: the record gets their hash, and the roles."""
    settings = {name: getattr(provider, name) for name in TERMS}
    ledger_append(
        action=action,
        organization_id=provider.organization_id,
        subject_type="identity_provider",
        subject_id=provider.id,
        actor=actor,
        at=at,
        payload={
            "kind": provider.kind,
            "roles": roles_given(provider.mapping),
            "creates": provider.create_on_first_sign_in,
            "required": provider.required,
            "scim": provider.scim_prefix or None,
            "settings_sha256": sha256(rfc8785.dumps(settings)).hexdigest(),
        },
        reason_code=reason_code,
    )
