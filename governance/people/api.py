"""Authentication and permission for the API: a bearer key, else the browser session; then scopes or permissions; then
the tenant scope of the request."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.http import http_date
from rest_framework.authentication import (
    BaseAuthentication,
)
from rest_framework.authentication import (
    SessionAuthentication as DrfSessionAuthentication,
)
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from governance.people.errors import SecondFactorNeeded
from governance.people.rules.keys import tell_now
from governance.people.rules.roles import PERMISSION_FOR_SCOPE
from governance.people.selectors.people import (
    Credential,
    credential_for_secret,
    credential_refusal,
    organization_of,
    person_actor,
)
from governance.people.selectors.sign_in import unproven
from governance.people.services.accounts import api_key_touch
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import CredentialMissing, FieldError, InvalidInput, MethodNotAllowed, ScopeMissing
from reasoncodes.base.ids import UUID_TEXT
from reasoncodes.base.tenancy import enter_scope

BEARER = "bearer "


def bearer_secret(header: str) -> str | None:
    """The key in an Authorization header; None if the header has another scheme."""
    if not header.lower().startswith(BEARER):
        return None
    return header[len(BEARER) :].strip()


class ServicePrincipal:
    """What DRF sees as `request.user` for a key: authenticated, but not a person."""

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
            # A wrong key never falls through to the session: a service with a dead key would otherwise act as the
            # person whose cookie it carries.
            raise credential_refusal(secret=secret, at=now)
        api_key_touch(key=credential.key, at=now)
        ends = credential.key.expires_at
        if ends is not None and tell_now(ends=ends, at=now) is not None:
            request.key_sunset = http_date(ends.timestamp())  # type: ignore[attr-defined]
        return ServicePrincipal(credential), credential

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="holdpoint"'


class SessionAuthentication(DrfSessionAuthentication):
    """Django's session, with CSRF enforced as DRF does. Whoever still has to set up a second factor can do nothing
    else."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        found: tuple[Any, Any] | None = super().authenticate(request)
        if found is not None and unproven(user=found[0], session=request.session):
            raise SecondFactorNeeded
        return found


class ScopeRequired(BasePermission):
    """Views say `required_scopes = {"GET": "governance:read", …}`. A person needs the permission that
    PERMISSION_FOR_SCOPE has for the scope.

    `people_permissions` of a view replaces that permission for single methods. `services_allowed = False` closes a view
    to keys, for what only a person may do, such as approving readiness. `other_scopes` names one or more further scopes
    that also open a method.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        scope = getattr(view, "required_scopes", {}).get(_method(request), "")
        principal = request.user
        if not getattr(principal, "is_authenticated", False):
            raise CredentialMissing
        # Before the scope check: a method that the view does not have is 405, whatever the caller may do.
        if request.method not in view.allowed_methods:
            raise MethodNotAllowed
        others = getattr(view, "other_scopes", {}).get(_method(request), ())
        others = {others} if isinstance(others, str) else set(others)
        actor = self._service(principal, view, scope, others) if isinstance(principal, ServicePrincipal) else None
        actor = actor or self._person(principal, request, view, scope)
        # Set before narrowing: if `org_id` is refused, the violation is recorded under this actor.
        request.actor = actor  # type: ignore[attr-defined]
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
        """`?org_id=` limits the request to one organization: one of the actor's own or, with `orchestrator:admin`, any.
        Somebody else's is answered like one that does not exist."""
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
    """HEAD and OPTIONS need what GET needs."""
    return "GET" if request.method in {"HEAD", "OPTIONS"} else str(request.method)
