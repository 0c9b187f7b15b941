"""Who is calling: a bearer key first (so that anonymous is 401), then the browser session."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework.authentication import (
    BaseAuthentication,
)
from rest_framework.authentication import (
    SessionAuthentication as DrfSessionAuthentication,
)
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from governance.people.rules.roles import PERMISSION_FOR_SCOPE
from governance.people.selectors import Credential, credential_for_secret, organization_of, person_actor
from governance.people.services.accounts import api_key_touch
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import CredentialMissing, FieldError, InvalidInput, MethodNotAllowed, ScopeMissing
from reasoncodes.base.ids import UUID_TEXT
from reasoncodes.base.tenancy import enter_scope

BEARER = "bearer "


def bearer_secret(header: str) -> str | None:
    """The key from an Authorization header; None when the header is no bearer header at all."""
    if not header.lower().startswith(BEARER):
        return None
    return header[len(BEARER) :].strip()


class ServicePrincipal:
    """What DRF calls the user of a key: authenticated, and no person."""

    is_authenticated = True
    is_active = True
    is_anonymous = False
    pk = None

    def __init__(self, credential: Credential) -> None:
        self.credential = credential


class ApiKeyAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        secret = bearer_secret(request.headers.get("Authorization", ""))
        if secret is None:
            return None
        now = timezone.now()
        credential = credential_for_secret(secret=secret, at=now)
        if credential is None:
            raise CredentialMissing
        api_key_touch(key=credential.key, at=now)
        return ServicePrincipal(credential), credential

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="holdpoint"'


class SessionAuthentication(DrfSessionAuthentication):
    """Django's session, with CSRF enforced as DRF does."""


class ScopeRequired(BasePermission):
    """Views say `required_scopes = {"GET": "governance:read", …}`; people need the permission that stands for it.

    `people_permissions` of the view replaces that permission for single methods; `services_allowed = False` closes the
    view to keys (what only a person may do, such as approving readiness); `other_scopes` names one more scope, or
    several, that open a method.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        scope = getattr(view, "required_scopes", {}).get(_method(request), "")
        principal = request.user
        if not getattr(principal, "is_authenticated", False):
            raise CredentialMissing
        if request.method not in view.allowed_methods:
            raise MethodNotAllowed
        others = getattr(view, "other_scopes", {}).get(_method(request), ())
        others = {others} if isinstance(others, str) else set(others)
        actor = self._service(principal, view, scope, others) if isinstance(principal, ServicePrincipal) else None
        actor = actor or self._person(principal, request, view, scope)
        request.actor = actor  # type: ignore[attr-defined]  # before narrowing: a refusal is filed under who tried
        actor = self._narrowed(actor, request)
        request.actor = actor  # type: ignore[attr-defined]
        enter_scope(actor.organization_ids)
        return True

    @staticmethod
    def _service(principal: ServicePrincipal, view: Any, scope: str, others: set[str]) -> Actor:
        actor = principal.credential.actor
        if not getattr(view, "services_allowed", True) or not {scope, *others} & actor.scopes:
            raise ScopeMissing(extensions={"required_scope": scope})
        return actor

    @staticmethod
    def _narrowed(actor: Actor, request: Request) -> Actor:
        """`?org_id=`: the request then means that organization alone: one of the actor's own, or, with
        `orchestrator:admin`, any. Somebody else's does not exist."""
        named = request.query_params.get("org_id")
        if named is None:
            return actor
        if not UUID_TEXT.fullmatch(named):
            raise InvalidInput(errors=[FieldError("/org_id", "is not an id")])
        organization = organization_of(actor=actor, org_id=UUID(named))
        return replace(actor, organization_ids=frozenset({organization.id}))

    @staticmethod
    def _person(user: Any, request: Request, view: Any, scope: str) -> Actor:
        overrides = getattr(view, "people_permissions", {})
        permission = overrides.get(_method(request)) or PERMISSION_FOR_SCOPE.get(scope)
        if permission is None:
            raise ScopeMissing(extensions={"required_scope": scope})
        actor = person_actor(user=user, permission=permission)
        if not actor.organization_ids:
            raise ScopeMissing(extensions={"required_scope": scope})
        return actor


def _method(request: Request) -> str:
    return "GET" if request.method in {"HEAD", "OPTIONS"} else str(request.method)
