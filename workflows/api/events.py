"""`/events`: the other door for modules, beside the streams; and the events that found no run."""

from uuid import UUID

from django.conf import settings
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.roles import ApiScope
from reasoncodes.api.conventions import ApiView
from workflows.api import event_shapes as shapes
from workflows.selectors.event import event_list
from workflows.services.event_receive import event_receive
from workflows.services.event_redrive import event_redrive


class EventListApi(ApiView):
    required_scopes = {"GET": ApiScope.ORCHESTRATOR_READ_INSTANCES, "POST": ApiScope.ORCHESTRATOR_WRITE}
    other_scopes = {"GET": ApiScope.ORCHESTRATOR_READ}

    @extend_schema(
        operation_id="events_list", parameters=[shapes.EventFilter], responses=shapes.KeptEventOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """Kept because nothing matched, unless drift is asked for. Everything else is in the log of its run."""
        return self.page(request, event_list(**self.query(request, shapes.EventFilter)), shapes.KeptEventOut)

    @extend_schema(
        operation_id="events_receive",
        request={"application/json": shapes.ENVELOPE},
        responses={202: shapes.ReceivedOut, 200: shapes.ReceivedOut},
        examples=[shapes.CREATED, shapes.COMPLETED],
    )
    def post(self, request: Request) -> Response:
        """202 the first time; 200 with the first answer when the same event_id comes again."""
        self.query(request)
        received = event_receive(
            envelope=request.data, actor=self.actor(request), at=timezone.now(), region=settings.DEPLOYMENT_REGION
        )
        code = status.HTTP_200_OK if received.duplicate else status.HTTP_202_ACCEPTED
        return Response(shapes.ReceivedOut(received.event).data, status=code)


class EventRedriveApi(ApiView):
    required_scopes = {"POST": ApiScope.ORCHESTRATOR_INTERVENE}

    @extend_schema(operation_id="events_redrive", request=None, responses=shapes.ReceivedOut)
    def post(self, request: Request, event_id: UUID) -> Response:
        """Once, by a person or a key that may intervene. What becomes of it is another event, with its own outcome."""
        self.query(request)
        made = event_redrive(
            event_id=event_id, actor=self.actor(request), at=timezone.now(), region=settings.DEPLOYMENT_REGION
        )
        return Response(shapes.ReceivedOut(made).data)


urlpatterns = [
    path("events", EventListApi.as_view(), name="event_list"),
    path("events/<uuid:event_id>/redrive", EventRedriveApi.as_view(), name="event_redrive"),
]
