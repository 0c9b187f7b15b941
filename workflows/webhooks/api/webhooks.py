"""`/webhook-endpoints`: where an organization is told what happens. `/deliveries`: each telling, try by try."""

from datetime import timedelta
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import AUDIT, ApiScope
from governance.people.selectors.people import organization_of
from reasoncodes.base.api import ApiView, ReasonedIn
from workflows.webhooks.api import shapes
from workflows.webhooks.configured import webhook_private_hosts
from workflows.webhooks.selectors import attempts_of, delivery_get, delivery_list, endpoint_get, endpoint_list
from workflows.webhooks.services import endpoints
from workflows.webhooks.services.redeliver import delivery_redeliver, failed_redeliver

READ, READ_TOO = ApiScope.ORCHESTRATOR_READ, ApiScope.GOVERNANCE_READ
MANAGE, ACT, WRITE_TOO = ApiScope.ORCHESTRATOR_PUBLISH, ApiScope.ORCHESTRATOR_INTERVENE, ApiScope.GOVERNANCE_WRITE


class WebhookView(ApiView):
    """Addresses often have a secret in their path: of people, operators and auditors read them."""

    people_permissions = {"GET": AUDIT}


class EndpointListApi(WebhookView):
    required_scopes = {"GET": READ, "POST": MANAGE}
    other_scopes = {"GET": READ_TOO, "POST": WRITE_TOO}

    @extend_schema(
        operation_id="webhook_endpoints_list",
        parameters=[shapes.EndpointFilter],
        responses=shapes.EndpointOut(many=True),
    )
    def get(self, request: Request) -> Response:
        wanted = self.query(request, shapes.EndpointFilter).get("status")
        rows = endpoint_list(enabled=None if wanted is None else wanted == "enabled")
        return self.page(request, rows, shapes.EndpointOut)

    @extend_schema(
        operation_id="webhook_endpoints_create",
        request=shapes.EndpointIn,
        responses={201: shapes.IssuedEndpointOut},
        examples=[shapes.ADD],
    )
    def post(self, request: Request) -> Response:
        """The answer has the secret, this once."""
        self.query(request)
        given, actor = self.body(request, shapes.EndpointIn), self.actor(request)
        made = endpoints.endpoint_create(
            actor=actor,
            at=timezone.now(),
            organization_id=organization_of(actor=actor, org_id=None).id,
            private_hosts=webhook_private_hosts(),
            **given,
        )
        headers = {"Location": f"/api/v1/webhook-endpoints/{made.endpoint.id}", "Cache-Control": "no-store"}
        return Response(shapes.issued(made), status=status.HTTP_201_CREATED, headers=headers)


class EndpointApi(WebhookView):
    required_scopes = {"GET": READ, "PATCH": MANAGE, "DELETE": MANAGE}
    other_scopes = {"GET": READ_TOO, "PATCH": WRITE_TOO, "DELETE": WRITE_TOO}

    @extend_schema(operation_id="webhook_endpoints_read", responses=shapes.EndpointOut)
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        self.query(request)
        return Response(shapes.EndpointOut(endpoint_get(endpoint_id=endpoint_id)).data)

    @extend_schema(
        operation_id="webhook_endpoints_change",
        request=shapes.EndpointChangeIn,
        responses=shapes.EndpointOut,
        examples=[shapes.CHANGE],
    )
    def patch(self, request: Request, endpoint_id: UUID) -> Response:
        """What waits goes to the new address."""
        self.query(request)
        changed = endpoints.endpoint_change(
            actor=self.actor(request),
            at=timezone.now(),
            endpoint_id=endpoint_id,
            private_hosts=webhook_private_hosts(),
            **self.body(request, shapes.EndpointChangeIn),
        )
        return Response(shapes.EndpointOut(changed).data)

    @extend_schema(operation_id="webhook_endpoints_remove", responses={204: None})
    def delete(self, request: Request, endpoint_id: UUID) -> Response:
        self.query(request)
        endpoints.endpoint_remove(actor=self.actor(request), at=timezone.now(), endpoint_id=endpoint_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class EndpointRotateApi(WebhookView):
    required_scopes = {"POST": MANAGE}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(
        operation_id="webhook_endpoints_rotate_secret",
        request=shapes.RotateIn,
        responses=shapes.IssuedEndpointOut,
        examples=[shapes.ROTATE],
    )
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """A new secret, shown this once. Until the overlap is over the old one signs too."""
        self.query(request)
        overlap = timedelta(hours=self.body(request, shapes.RotateIn)["overlap_hours"])
        made = endpoints.endpoint_secret_rotate(
            actor=self.actor(request), at=timezone.now(), endpoint_id=endpoint_id, overlap=overlap
        )
        return Response(shapes.issued(made), headers={"Cache-Control": "no-store"})


class EndpointEnableApi(WebhookView):
    required_scopes = {"POST": MANAGE}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(operation_id="webhook_endpoints_enable", request=None, responses=shapes.EndpointOut)
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        self.query(request)
        made = endpoints.endpoint_enable(actor=self.actor(request), at=timezone.now(), endpoint_id=endpoint_id)
        return Response(shapes.EndpointOut(made).data)


class EndpointDisableApi(WebhookView):
    required_scopes = {"POST": MANAGE}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(
        operation_id="webhook_endpoints_disable",
        request=ReasonedIn,
        responses=shapes.EndpointOut,
        examples=[shapes.REASON],
    )
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """What waits for it fails; it can be sent again once the endpoint is enabled."""
        self.query(request)
        given = self.body(request, ReasonedIn)
        made = endpoints.endpoint_disable(
            actor=self.actor(request), at=timezone.now(), endpoint_id=endpoint_id, **given
        )
        return Response(shapes.EndpointOut(made).data)


class EndpointTestApi(WebhookView):
    required_scopes = {"POST": ACT}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(
        operation_id="webhook_endpoints_test",
        request=ReasonedIn,
        responses={202: shapes.DeliveryOut},
        examples=[shapes.REASON],
    )
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """Sends a `webhook.test`; the answer is its delivery, which tells what came of it."""
        self.query(request)
        given = self.body(request, ReasonedIn)
        made = endpoints.endpoint_test(actor=self.actor(request), at=timezone.now(), endpoint_id=endpoint_id, **given)
        return Response(shapes.DeliveryOut(made).data, status=status.HTTP_202_ACCEPTED)


class EndpointRedeliverApi(WebhookView):
    required_scopes = {"POST": ACT}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(
        operation_id="webhook_endpoints_redeliver",
        request=ReasonedIn,
        responses={202: shapes.RedeliveredOut},
        examples=[shapes.REASON],
    )
    def post(self, request: Request, endpoint_id: UUID) -> Response:
        """All that failed here, the oldest ten thousand at most."""
        self.query(request)
        given = self.body(request, ReasonedIn)
        count = failed_redeliver(actor=self.actor(request), at=timezone.now(), endpoint_id=endpoint_id, **given)
        return Response({"redelivered": count}, status=status.HTTP_202_ACCEPTED)


class EndpointDeliveryListApi(WebhookView):
    required_scopes = {"GET": READ}
    other_scopes = {"GET": READ_TOO}

    @extend_schema(
        operation_id="webhook_endpoints_deliveries",
        parameters=[shapes.DeliveryFilter],
        responses=shapes.DeliveryOut(many=True),
    )
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """Newest first."""
        given = self.query(request, shapes.DeliveryFilter)
        endpoint = endpoint_get(endpoint_id=endpoint_id)
        return self.page(request, delivery_list(endpoint_id=endpoint.id, **given), shapes.DeliveryOut)


class DeliveryListApi(WebhookView):
    required_scopes = {"GET": READ}
    other_scopes = {"GET": READ_TOO}

    @extend_schema(operation_id="deliveries_list", responses=shapes.DeliveryOut(many=True))
    def get(self, request: Request) -> Response:
        """Of all endpoints, newest first."""
        self.query(request)
        return self.page(request, delivery_list(), shapes.DeliveryOut)


class DeliveryApi(WebhookView):
    required_scopes = {"GET": READ}
    other_scopes = {"GET": READ_TOO}

    @extend_schema(operation_id="deliveries_read", responses=shapes.DeliveryDetailOut)
    def get(self, request: Request, delivery_id: UUID) -> Response:
        """With the exact bytes, and every try."""
        self.query(request)
        found = delivery_get(delivery_id=delivery_id)
        context = {"attempts": attempts_of(delivery_id=found.id)}
        return Response(shapes.DeliveryDetailOut(found, context=context).data)


class DeliveryRedeliverApi(WebhookView):
    required_scopes = {"POST": ACT}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(
        operation_id="deliveries_redeliver",
        request=ReasonedIn,
        responses={202: shapes.DeliveryOut},
        examples=[shapes.REASON],
    )
    def post(self, request: Request, delivery_id: UUID) -> Response:
        """Once more, under the same `webhook-id` and in the same bytes. Also what was delivered."""
        self.query(request)
        given = self.body(request, ReasonedIn)
        made = delivery_redeliver(actor=self.actor(request), at=timezone.now(), delivery_id=delivery_id, **given)
        return Response(shapes.DeliveryOut(made).data, status=status.HTTP_202_ACCEPTED)


ONE = "webhook-endpoints/<uuid:endpoint_id>"
urlpatterns = [
    path("webhook-endpoints", EndpointListApi.as_view(), name="webhook_endpoint_list"),
    path(ONE, EndpointApi.as_view(), name="webhook_endpoint"),
    path(f"{ONE}/rotate-secret", EndpointRotateApi.as_view(), name="webhook_endpoint_rotate"),
    path(f"{ONE}/enable", EndpointEnableApi.as_view(), name="webhook_endpoint_enable"),
    path(f"{ONE}/disable", EndpointDisableApi.as_view(), name="webhook_endpoint_disable"),
    path(f"{ONE}/test", EndpointTestApi.as_view(), name="webhook_endpoint_test"),
    path(f"{ONE}/redeliver", EndpointRedeliverApi.as_view(), name="webhook_endpoint_redeliver"),
    path(f"{ONE}/deliveries", EndpointDeliveryListApi.as_view(), name="webhook_endpoint_deliveries"),
    path("deliveries", DeliveryListApi.as_view(), name="delivery_list"),
    path("deliveries/<uuid:delivery_id>", DeliveryApi.as_view(), name="delivery"),
    path("deliveries/<uuid:delivery_id>/redeliver", DeliveryRedeliverApi.as_view(), name="delivery_redeliver"),
]
