"""What goes in and out of `/events`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from reasoncodes.api.conventions import StrictSerializer
from workflows.events.catalogue import envelope_schema
from workflows.models import WorkflowEvent
from workflows.states import Drift, EventOutcome


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


ENVELOPE = envelope_schema() | {"description": "`GET /event-types` has the exact schema of every type and version."}
ID = "0199a1c2-0000-7000-8000-00000000000"
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
