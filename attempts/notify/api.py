"""`/notification-routes`: where reviews are announced. Workspaces and their secrets are managed in the console only."""

from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.notify.configured import public_url
from attempts.notify.models import NotificationRoute
from attempts.notify.selectors import route_get, route_list
from attempts.notify.services.routes import LONGEST_DIGEST, route_create, route_disable, route_enable
from attempts.notify.states import NotifyChannel, RouteState
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from reasoncodes.base.api import ApiView, EmptyQuery, ReasonedIn, StrictSerializer


class NotificationRouteOut(serializers.ModelSerializer[NotificationRoute]):
    org_id = serializers.UUIDField(source="organization_id")
    workspace_id = serializers.UUIDField(allow_null=True)

    class Meta:
        model = NotificationRoute
        fields = [
            "id",
            "org_id",
            "channel",
            "contract_slug",
            "tier",
            "workspace_id",
            "chat_channel",
            "digest_minutes",
            "state",
            "disabled_reason",
            "disabled_at",
            "created_at",
        ]


class NotificationRouteFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(RouteState), required=False)
    channel = serializers.ChoiceField(choices=list(NotifyChannel), required=False)


class NotificationRouteIn(StrictSerializer):
    org_id = serializers.UUIDField(required=False)
    channel = serializers.ChoiceField(choices=list(NotifyChannel))
    contract_slug = serializers.SlugField(max_length=63, required=False, allow_blank=True, default="")
    tier = serializers.CharField(max_length=63, required=False, allow_blank=True, default="")
    workspace_id = serializers.UUIDField(required=False, allow_null=True, default=None)
    chat_channel = serializers.RegexField("^([CGD][A-Z0-9]{2,30})?$", required=False, allow_blank=True, default="")
    digest_minutes = serializers.IntegerField(min_value=0, max_value=LONGEST_DIGEST, required=False, default=0)


MAIL = OpenApiExample(
    "One mail an hour to the clinicians",
    value={"channel": "email", "tier": "finance", "digest_minutes": 60},
    request_only=True,
)
REASON = OpenApiExample("Not now", value={"reason_code": "incident_response", "note": "Incident 17"}, request_only=True)


class NotificationRouteListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(
        operation_id="notification_routes_list",
        parameters=[NotificationRouteFilter],
        responses=NotificationRouteOut(many=True),
    )
    def get(self, request: Request) -> Response:
        return self.page(request, route_list(**self.query(request, NotificationRouteFilter)), NotificationRouteOut)

    @extend_schema(
        operation_id="notification_routes_create",
        request=NotificationRouteIn,
        responses={201: NotificationRouteOut},
        examples=[MAIL],
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, NotificationRouteIn)
        organization = organization_of(actor=self.actor(request), org_id=fields.pop("org_id", None))
        fields["channel"] = NotifyChannel(fields["channel"])
        route = route_create(
            actor=self.actor(request), at=timezone.now(), organization=organization, base_url=public_url(), **fields
        )
        return Response(NotificationRouteOut(route).data, status=status.HTTP_201_CREATED)


class NotificationRouteApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="notification_routes_read", responses=NotificationRouteOut)
    def get(self, request: Request, route_id: UUID) -> Response:
        self.query(request)
        return Response(NotificationRouteOut(route_get(route_id=route_id)).data)


class NotificationRouteDisableApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(
        operation_id="notification_routes_disable",
        request=ReasonedIn,
        responses=NotificationRouteOut,
        examples=[REASON],
    )
    def post(self, request: Request, route_id: UUID) -> Response:
        said = self.body(request, ReasonedIn)
        route = route_disable(actor=self.actor(request), at=timezone.now(), route_id=route_id, **said)
        return Response(NotificationRouteOut(route).data)


class NotificationRouteEnableApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(operation_id="notification_routes_enable", request=None, responses=NotificationRouteOut)
    def post(self, request: Request, route_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        route = route_enable(actor=self.actor(request), at=timezone.now(), route_id=route_id)
        return Response(NotificationRouteOut(route).data)


urlpatterns = [
    path("notification-routes", NotificationRouteListApi.as_view(), name="notification_route_list"),
    path("notification-routes/<uuid:route_id>", NotificationRouteApi.as_view(), name="notification_route"),
    path(
        "notification-routes/<uuid:route_id>/disable",
        NotificationRouteDisableApi.as_view(),
        name="notification_route_disable",
    ),
    path(
        "notification-routes/<uuid:route_id>/enable",
        NotificationRouteEnableApi.as_view(),
        name="notification_route_enable",
    ),
]
