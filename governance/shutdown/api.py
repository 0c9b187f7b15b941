"""`/shutdowns`: preview, engage with a reason, and release by a second person."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import DECIDE_READINESS, ApiScope
from governance.people.selectors.people import organization_of
from governance.shutdown.models import Shutdown
from governance.shutdown.selectors import shutdown_get, shutdown_list
from governance.shutdown.services import (
    INSTALLATION_WIDE,
    shutdown_break_glass,
    shutdown_engage,
    shutdown_rehearse,
    shutdown_release,
)
from governance.shutdown.states import ShutdownScope, ShutdownState
from reasoncodes.base.api import ApiView, StrictSerializer


class ShutdownOut(serializers.ModelSerializer[Shutdown]):
    organization_id = serializers.UUIDField(allow_null=True)
    note = serializers.CharField(source="note.text", default=None, allow_null=True)

    class Meta:
        model = Shutdown
        fields = [
            "id",
            "scope",
            "organization_id",
            "target",
            "drill",
            "state",
            "reason_code",
            "note",
            "preview",
            "engaged_by_kind",
            "engaged_by_ref",
            "engaged_at",
            "released_by_ref",
            "released_at",
        ]


class ShutdownFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(ShutdownState), required=False)


class TargetIn(StrictSerializer):
    scope = serializers.ChoiceField(choices=list(ShutdownScope))
    target = serializers.CharField(max_length=140, required=False, allow_blank=True, default="")
    org_id = serializers.UUIDField(required=False)


class EngageIn(TargetIn):
    reason_code = serializers.CharField(max_length=64)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")
    drill = serializers.BooleanField(required=False, default=False)


class ReleaseIn(StrictSerializer):
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class PreviewOut(serializers.Serializer[Any]):
    contracts = serializers.IntegerField()
    organizations = serializers.IntegerField()
    named = serializers.ListField(child=serializers.CharField())


EXAMPLE = OpenApiExample(
    "Stop one contract",
    value={"scope": "contract", "target": "close-case", "reason_code": "operator_shutdown", "note": "Incident 17"},
    request_only=True,
)


def administers(request: Request) -> bool:
    """Wide scopes are for the installation's administrators, who are people."""
    return bool(getattr(request.user, "is_superuser", False))


def organization_id(view: ApiView, request: Request, fields: dict[str, Any]) -> UUID | None:
    chosen = fields.pop("org_id", None)
    if fields["scope"] in INSTALLATION_WIDE:
        return None
    return organization_of(actor=view.actor(request), org_id=chosen).id


class ShutdownListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(operation_id="shutdowns_list", parameters=[ShutdownFilter], responses=ShutdownOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, shutdown_list(**self.query(request, ShutdownFilter)), ShutdownOut)

    @extend_schema(operation_id="shutdowns_engage", request=EngageIn, responses={201: ShutdownOut}, examples=[EXAMPLE])
    def post(self, request: Request) -> Response:
        fields = self.body(request, EngageIn)
        where = organization_id(self, request, fields)
        fields["scope"] = ShutdownScope(fields["scope"])
        shutdown = shutdown_engage(
            actor=self.actor(request),
            at=timezone.now(),
            organization_id=where,
            installation=administers(request),
            **fields,
        )
        return Response(ShutdownOut(shutdown).data, status=status.HTTP_201_CREATED)


class ShutdownPreviewApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_READ}

    @extend_schema(
        operation_id="shutdowns_preview",
        request=TargetIn,
        responses=PreviewOut,
        examples=[
            OpenApiExample("One contract", value={"scope": "contract", "target": "close-case"}, request_only=True)
        ],
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, TargetIn)
        where = organization_id(self, request, fields)
        preview = shutdown_rehearse(
            actor=self.actor(request),
            scope=ShutdownScope(fields["scope"]),
            organization_id=where,
            target=fields["target"],
            installation=administers(request),
        )
        return Response(preview)


class ShutdownApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="shutdowns_read", responses=ShutdownOut)
    def get(self, request: Request, shutdown_id: UUID) -> Response:
        self.query(request)
        return Response(ShutdownOut(shutdown_get(shutdown_id=shutdown_id)).data)


class ShutdownReleaseApi(ApiView):
    """Only people: two programs would be no second look."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(
        operation_id="shutdowns_release",
        request=ReleaseIn,
        responses=ShutdownOut,
        examples=[OpenApiExample("Over", value={"note": "Incident 17 is over"}, request_only=True)],
    )
    def post(self, request: Request, shutdown_id: UUID) -> Response:
        shutdown = shutdown_release(
            actor=self.actor(request),
            at=timezone.now(),
            shutdown_id=shutdown_id,
            installation=administers(request),
            **self.body(request, ReleaseIn),
        )
        return Response(ShutdownOut(shutdown).data)


class ShutdownBreakGlassApi(ApiView):
    """For owners: two of different groups end a shutdown that nobody else can release."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    people_permissions = {"POST": DECIDE_READINESS}
    services_allowed = False

    @extend_schema(
        operation_id="shutdowns_break_glass",
        request=ReleaseIn,
        responses=ShutdownOut,
        examples=[OpenApiExample("Nobody is left", value={"note": "Incident 17 is over"}, request_only=True)],
    )
    def post(self, request: Request, shutdown_id: UUID) -> Response:
        """`state` is still `engaged` after the first owner, and `released` after the second."""
        shutdown = shutdown_break_glass(
            actor=self.actor(request), at=timezone.now(), shutdown_id=shutdown_id, **self.body(request, ReleaseIn)
        )
        return Response(ShutdownOut(shutdown).data)
