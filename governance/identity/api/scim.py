"""SCIM 2.0 at `/scim/v2/<provider>/`: people and groups as the provider sends them. Only with the provider's token,
never with a session or an API key; only the provider's own people; errors in SCIM's form, without a submitted value."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from governance.identity.models import IdentityProvider, ProviderGroup, ProviderPerson
from governance.identity.rules import scim
from governance.identity.selectors import (
    group_of,
    groups_of,
    people_of,
    person_of,
    provider_actor,
    provider_for_scim,
)
from governance.identity.services.people import person_deprovision
from governance.identity.services.scim import (
    scim_group_change,
    scim_group_create,
    scim_group_delete,
    scim_user_change,
    scim_user_create,
)
from governance.people.api import bearer_secret
from governance.violations.errors import RuleBroken
from governance.violations.services import violation_record
from reasoncodes.base.errors import AlreadyExists, DomainError, FieldError, InvalidInput, NotFound
from reasoncodes.base.json_body import BODY_LIMIT_BYTES, check_length, parse_json
from reasoncodes.base.tenancy import enter_scope

log = structlog.get_logger("holdpoint.security")
CONTENT_TYPE = "application/scim+json"
PAGE = 100
USERS = {"username": "user_name", "externalid": "external_id"}
GROUPS = {"displayname": "name", "externalid": "external_id"}


@method_decorator(csrf_exempt, name="dispatch")  # no cookie counts here, only the token
class ScimView(View):
    provider: IdentityProvider

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        token = bearer_secret(request.headers.get("Authorization", "")) or ""
        provider = provider_for_scim(slug=kwargs.pop("slug"), token=token)
        if provider is None:
            log.warning("scim_refused")
            answer = _answer(scim.error_document(status=401, detail="The token is not valid here."), 401)
            answer["WWW-Authenticate"] = 'Bearer realm="holdpoint"'
            return answer
        self.provider = provider
        enter_scope({provider.organization_id})
        try:
            answer = super().dispatch(request, *args, **kwargs)  # type: ignore[assignment]
        except scim.ScimInvalid as error:
            return _answer(scim.error_document(status=400, detail=error.detail, kind=error.kind), 400)
        except DomainError as error:
            return self._refusal(error)
        return answer

    def _refusal(self, error: DomainError) -> HttpResponse:
        if isinstance(error, RuleBroken):
            violation_record(actor=provider_actor(self.provider), at=timezone.now(), broken=error)
        kind = "uniqueness" if isinstance(error, AlreadyExists) else ""
        return _answer(scim.error_document(status=error.status, detail=error.detail, kind=kind), error.status)

    def document(self) -> Any:
        check_length(self.request.META)
        return parse_json(self.request.read(BODY_LIMIT_BYTES + 1))

    def listing(
        self,
        found: Callable[..., "QuerySet[Any]"],
        allowed: dict[str, str],
        shown: Callable[[Any], dict[str, Any]],
    ) -> HttpResponse:
        text = self.request.GET.get("filter", "")
        where = scim.filter_parse(text, allowed=allowed) if text else {}
        rows = found(provider=self.provider, where=where)
        start, count = self._number("startIndex", 1), self._number("count", PAGE)
        chosen = rows[start - 1 : start - 1 + min(count, PAGE)]
        page = [shown(row) for row in chosen] if count else []
        return _answer(scim.list_document(page, total=rows.count(), start=start))

    def _number(self, name: str, default: int) -> int:
        """RFC 7644: less than the least counts as the least."""
        text = self.request.GET.get(name, str(default))
        try:
            number = int(text[:9])
        except ValueError as error:
            raise InvalidInput(errors=[FieldError(f"/{name}", "is not a number")]) from error
        return max(number, 1 if name == "startIndex" else 0)

    def person(self, person_id: UUID) -> ProviderPerson:
        found = person_of(provider=self.provider, person_id=person_id)
        if found is None:
            raise NotFound
        return found

    def group(self, group_id: UUID) -> ProviderGroup:
        found = group_of(provider=self.provider, group_id=group_id)
        if found is None:
            raise NotFound
        return found

    def shown_person(self, person: ProviderPerson) -> dict[str, Any]:
        return {
            "schemas": [scim.USER],
            "id": str(person.id),
            "externalId": person.external_id or None,
            "userName": person.user_name,
            "active": person.active and person.user.is_active,
            "meta": self._meta("User", "scim_user", person),
        }

    def shown_group(self, group: ProviderGroup) -> dict[str, Any]:
        return {
            "schemas": [scim.GROUP],
            "id": str(group.id),
            "externalId": group.external_id or None,
            "displayName": group.name,
            "members": [{"value": str(one.id), "display": one.user_name} for one in group.members.all()],
            "meta": self._meta("Group", "scim_group", group),
        }

    def _meta(self, kind: str, route: str, row: Any) -> dict[str, str]:
        address = reverse(route, args=[self.provider.slug, row.id])
        return {
            "resourceType": kind,
            "created": row.created_at.isoformat(),
            "lastModified": row.changed_at.isoformat(),
            "location": self.request.build_absolute_uri(address),
        }


class UserListView(ScimView):
    def get(self, request: HttpRequest) -> HttpResponse:
        return self.listing(people_of, USERS, self.shown_person)

    def post(self, request: HttpRequest) -> HttpResponse:
        change = scim.user_document(self.document())
        person = scim_user_create(at=timezone.now(), provider=self.provider, change=change)
        return _created(self.shown_person(self.person(person.id)))


class UserView(ScimView):
    def get(self, request: HttpRequest, person_id: UUID) -> HttpResponse:
        return _answer(self.shown_person(self.person(person_id)))

    def put(self, request: HttpRequest, person_id: UUID) -> HttpResponse:
        return self._change(person_id, scim.user_document(self.document()))

    def patch(self, request: HttpRequest, person_id: UUID) -> HttpResponse:
        return self._change(person_id, scim.user_patch(self.document()))

    def delete(self, request: HttpRequest, person_id: UUID) -> HttpResponse:
        """The person loses access; what they did stays on the record, so the row stays too."""
        person_deprovision(at=timezone.now(), provider=self.provider, person_id=person_id)
        return HttpResponse(status=204)

    def _change(self, person_id: UUID, change: scim.UserChange) -> HttpResponse:
        scim_user_change(at=timezone.now(), provider=self.provider, person_id=person_id, change=change)
        return _answer(self.shown_person(self.person(person_id)))


class GroupListView(ScimView):
    def get(self, request: HttpRequest) -> HttpResponse:
        return self.listing(groups_of, GROUPS, self.shown_group)

    def post(self, request: HttpRequest) -> HttpResponse:
        change = scim.group_document(self.document())
        group = scim_group_create(at=timezone.now(), provider=self.provider, change=change)
        return _created(self.shown_group(self.group(group.id)))


class GroupView(ScimView):
    def get(self, request: HttpRequest, group_id: UUID) -> HttpResponse:
        return _answer(self.shown_group(self.group(group_id)))

    def put(self, request: HttpRequest, group_id: UUID) -> HttpResponse:
        return self._change(group_id, scim.group_document(self.document()))

    def patch(self, request: HttpRequest, group_id: UUID) -> HttpResponse:
        return self._change(group_id, scim.group_patch(self.document()))

    def delete(self, request: HttpRequest, group_id: UUID) -> HttpResponse:
        scim_group_delete(at=timezone.now(), provider=self.provider, group_id=group_id)
        return HttpResponse(status=204)

    def _change(self, group_id: UUID, change: scim.GroupChange) -> HttpResponse:
        scim_group_change(at=timezone.now(), provider=self.provider, group_id=group_id, change=change)
        return _answer(self.shown_group(self.group(group_id)))


class ConfigView(ScimView):
    def get(self, request: HttpRequest) -> HttpResponse:
        return _answer(scim.config_document())


class ResourceTypesView(ScimView):
    def get(self, request: HttpRequest) -> HttpResponse:
        found = scim.resource_types()
        return _answer(scim.list_document(found, total=len(found), start=1))


class SchemasView(ScimView):
    def get(self, request: HttpRequest) -> HttpResponse:
        found = scim.schema_documents()
        return _answer(scim.list_document(found, total=len(found), start=1))


def _answer(body: dict[str, Any], status: int = 200) -> HttpResponse:
    answer = JsonResponse(body, status=status, content_type=CONTENT_TYPE)
    answer["Cache-Control"] = "no-store"
    return answer


def _created(body: dict[str, Any]) -> HttpResponse:
    answer = _answer(body, 201)
    answer["Location"] = body["meta"]["location"]
    return answer
