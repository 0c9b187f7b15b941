"""`/events`: the other door for modules, beside the streams; and the events that found no run."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer
from workflows.events.models import WorkflowEvent
from workflows.events.rules import envelope_schema
from workflows.events.selectors import event_list
from workflows.events.services.receive import event_receive
from workflows.events.services.redrive import event_redrive
from workflows.events.states import EventOutcome
from workflows.runs.states import Drift


class EventOut(serializers.ModelSerializer[WorkflowEvent]):
    """One line of the inbound log."""

    instance_id = serializers.UUIDField(allow_null=True)
    outcome = serializers.ChoiceField(choices=list(EventOutcome))
    processed = serializers.BooleanField(help_text="It took the run further.")
    redrives = serializers.UUIDField(
        source="redrives_id", allow_null=True, help_text="The kept event it was made of by a person."
    )

    class Meta:
        model = WorkflowEvent
        fields = [
            "id",
            "number",
            "event_id",
            "event_type",
            "source",
            "instance_id",
            "case_id",
            "correlation_id",
            "outcome",
            "processed",
            "drift",
            "redrives",
            "at",
            "received_at",
            "envelope",
        ]


class KeptEventOut(EventOut):
    redriven_by = serializers.UUIDField(allow_null=True, help_text="The event that was made of it.")

    class Meta(EventOut.Meta):
        fields = [*EventOut.Meta.fields, "redriven_by"]


class ReceivedOut(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Holdpoint's id of it, for re-driving.")
    event_id = serializers.UUIDField(allow_null=True)
    event_type = serializers.CharField()
    outcome = serializers.ChoiceField(choices=list(EventOutcome))
    drift = serializers.CharField()
    instance_id = serializers.UUIDField(allow_null=True)
    received_at = serializers.DateTimeField()


class EventFilter(StrictSerializer):
    outcome = serializers.ChoiceField(choices=[EventOutcome.UNMATCHED, EventOutcome.DRIFT], required=False)
    drift = serializers.ChoiceField(choices=list(Drift), required=False)
    case_id = serializers.UUIDField(required=False)
    redriven = serializers.BooleanField(required=False, allow_null=True, default=None)


ID = "0199a1c2-0000-7000-8000-00000000000"
REQUESTED = OpenApiExample(
    "A run is asked for",
    value={
        "event_id": f"{ID}8",
        "event_type": "run.requested",
        "schema_version": "v1",
        "occurred_at": "2026-11-16T09:30:00Z",
        "correlation_id": f"{ID}9",
        "org_id": f"{ID}4",
        "product_id": f"{ID}5",
        "payload": {
            "definition_slug": "refund",
            "business_key": "order-4711",
            "input": {"amount_cents": 4200, "currency": "EUR", "order_ref": "order-4711"},
        },
    },
    request_only=True,
)
ENVELOPE = envelope_schema(caseless=True) | {
    "description": "`GET /event-types` has the exact schema of every type and version."
}
CREATED = OpenApiExample(
    "A case begins",
    value={
        "event_id": f"{ID}1",
        "event_type": "case.created",
        "schema_version": "v1",
        "occurred_at": "2026-11-16T09:30:00Z",
        "correlation_id": f"{ID}2",
        "case_id": f"{ID}3",
        "org_id": f"{ID}4",
        "product_id": f"{ID}5",
        "payload": {"patient_id": "pat-4711"},
    },
    request_only=True,
)
COMPLETED = OpenApiExample(
    "A module answers",
    value={
        "event_id": f"{ID}6",
        "event_type": "consent.check.completed",
        "schema_version": "v1",
        "occurred_at": "2026-11-16T09:30:01Z",
        "correlation_id": f"{ID}7",
        "case_id": f"{ID}3",
        "org_id": f"{ID}4",
        "product_id": f"{ID}5",
        "payload": {"granted": True, "missing_types": []},
    },
    request_only=True,
)


class EventListApi(ApiView):
    required_scopes = {"GET": ApiScope.ORCHESTRATOR_READ_INSTANCES, "POST": ApiScope.ORCHESTRATOR_WRITE}
    other_scopes = {"GET": ApiScope.ORCHESTRATOR_READ}

    @extend_schema(operation_id="events_list", parameters=[EventFilter], responses=KeptEventOut(many=True))
    def get(self, request: Request) -> Response:
        """Kept because nothing matched, unless drift is asked for. Everything else is in the log of its run."""
        return self.page(request, event_list(**self.query(request, EventFilter)), KeptEventOut)

    @extend_schema(
        operation_id="events_receive",
        request={"application/json": ENVELOPE},
        responses={202: ReceivedOut, 200: ReceivedOut},
        examples=[CREATED, REQUESTED, COMPLETED],
    )
    def post(self, request: Request) -> Response:
        """202 the first time; 200 with the first answer when the same event_id comes again.

        `case_id` is required but for `run.requested`, whose case is otherwise made of organization, definition and
        business key. While a run goes on under the business key, the same request under another event_id is 200 with
        the outcome `ignored` and the run's `instance_id`, and one with another input 409 `run-exists`."""
        self.query(request)
        received = event_receive(
            envelope=request.data, actor=self.actor(request), at=timezone.now(), region=settings.DEPLOYMENT_REGION
        )
        code = status.HTTP_200_OK if received.duplicate else status.HTTP_202_ACCEPTED
        return Response(ReceivedOut(received.event).data, status=code)


class EventRedriveApi(ApiView):
    required_scopes = {"POST": ApiScope.ORCHESTRATOR_INTERVENE}

    @extend_schema(operation_id="events_redrive", request=None, responses=ReceivedOut)
    def post(self, request: Request, event_id: UUID) -> Response:
        """Once, by a person or a key that may intervene. What becomes of it is another event, with its own outcome."""
        self.query(request)
        made = event_redrive(
            event_id=event_id, actor=self.actor(request), at=timezone.now(), region=settings.DEPLOYMENT_REGION
        )
        return Response(ReceivedOut(made).data)


urlpatterns = [
    path("events", EventListApi.as_view(), name="event_list"),
    path("events/<uuid:event_id>/redrive", EventRedriveApi.as_view(), name="event_redrive"),
]
