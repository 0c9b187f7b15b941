"""What every API view shares: strict serializers, strict query parameters, one way to page."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, UnknownParameter
from reasoncodes.base.ids import UUID_TEXT
from reasoncodes.base.json_body import JSON_DEPTH_LIMIT

COMMON_PARAMETERS = frozenset({"cursor", "page_size", "org_id"})  # governance.people.api handles org_id
TEXTS = (serializers.CharField, serializers.UUIDField, serializers.DateTimeField, serializers.ChoiceField)


class StrictSerializer(serializers.Serializer[Any]):
    """Checks shape only, and refuses what the document does not promise to take: fields that it does not know (a
    mistyped one must not be dropped quietly), and, in a JSON body, values of another type that DRF would convert."""

    refuses_unknown = True
    schema_rules: ClassVar[Mapping[str, Any]] = {}
    """What `validate` asks beyond the single fields, in the words of JSON Schema."""

    def to_internal_value(self, data: Any) -> Any:
        wrong = self._misfits(data) if isinstance(data, Mapping) else {}
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**error.detail, **wrong}) from error  # type: ignore[dict-item]
        unknown = set(data) - set(self.fields)
        if unknown:
            # The name of an unknown field is the caller's text, which an answer must not repeat.
            wrong[""] = [serializers.ErrorDetail("", code="unknown_field")] * len(unknown)
        if wrong:
            raise serializers.ValidationError(wrong)
        return value

    def _misfits(self, data: Mapping[str, Any]) -> dict[str, Any]:
        json = bool(self.context.get("json"))
        given = ((name, field) for name, field in self.fields.items() if data.get(name) is not None)
        wrong = serializers.ErrorDetail("", code="invalid")
        return {name: [wrong] for name, field in given if not fits(field, data[name], json=json)}


def fits(field: Any, value: Any, *, json: bool) -> bool:
    """Whether a value has the field's type. In a query everything is text, so there only ids are checked."""
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        return all(fits(field.child, one, json=json) for one in value)
    if isinstance(field, serializers.UUIDField):
        return isinstance(value, str) and bool(UUID_TEXT.fullmatch(value))
    # DRF would also accept "yes", 1 and "true"; the OpenAPI document promises a boolean.
    if json and isinstance(field, serializers.BooleanField):
        return isinstance(value, bool)
    if json and isinstance(field, serializers.IntegerField):
        # In Python True is an integer.
        return not isinstance(value, bool | str)
    return isinstance(value, str) or not (json and isinstance(field, TEXTS))


class ReasonedIn(StrictSerializer):
    """What people say with an act."""

    reason_code = serializers.CharField(max_length=64)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class EmptyQuery(StrictSerializer):
    """No parameters beyond the common ones."""


class ApiView(APIView):
    """Closed unless `required_scopes` names one for the method. Subclasses parse, call one service, render."""

    required_scopes: dict[str, str] = {}
    people_permissions: dict[str, str] = {}
    services_allowed = True
    json_depth: ClassVar[int] = JSON_DEPTH_LIMIT
    """How deep a body may be nested."""
    one_page: ClassVar[bool] = False
    """A list that is answered whole, so that it takes neither `cursor` nor `page_size`."""
    plain_list: ClassVar[bool] = False
    """One that is not even called a page."""

    def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """What may be asked is in `Allow`; what for, in the OpenAPI document. (DRF's own answer is a third description,
        and cannot be given where files are.)"""
        return HttpResponse(status=204)

    def finalize_response(self, request: Request, response: HttpResponse, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """A key that ends soon is told so in every answer (RFC 8594), by what its authentication noted."""
        sunset = getattr(request, "key_sunset", None)
        if sunset:
            response["Sunset"] = sunset
        return super().finalize_response(request, response, *args, **kwargs)  # type: ignore[arg-type]

    @staticmethod
    def actor(request: Request) -> Actor:
        return request.actor  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def body(request: Request, serializer_class: type[StrictSerializer]) -> dict[str, Any]:
        serializer = serializer_class(data=request.data, context={"json": True})
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    @staticmethod
    def query(request: Request, serializer_class: type[StrictSerializer] = EmptyQuery) -> dict[str, Any]:
        """The filters. An unknown one is refused: if it were ignored, the caller would get more than they asked for."""
        params = request.query_params
        given = {key: value for key, value in params.items() if key not in COMMON_PARAMETERS}
        known = set(serializer_class().fields)
        if set(given) - known:
            names = ", ".join(sorted(known | COMMON_PARAMETERS))
            raise UnknownParameter(errors=[FieldError("", f"the known parameters are: {names}")])
        # Django would take the last value, a proxy or a log perhaps the first.
        twice = [FieldError(f"/{key}", "is given more than once") for key in known if len(params.getlist(key)) > 1]
        if twice:
            raise InvalidInput(errors=twice)
        serializer = serializer_class(data=given)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def page(
        self,
        request: Request,
        rows: QuerySet[Any],
        serializer_class: type[serializers.BaseSerializer[Any]],
        **context: Any,
    ) -> Response:
        paginator: Any = api_settings.DEFAULT_PAGINATION_CLASS()  # type: ignore[operator, misc]
        chosen: list[Model] = paginator.paginate_queryset(rows, request, view=self)
        return paginator.get_paginated_response(serializer_class(chosen, many=True, context=context).data)


def home_organization(actor: Actor) -> UUID | None:
    """The organization of a request that names none: the only one that the credential has, else None."""
    return next(iter(actor.organization_ids)) if len(actor.organization_ids) == 1 else None
