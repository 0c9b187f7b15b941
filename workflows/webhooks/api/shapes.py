"""What goes in and out of `/webhook-endpoints` and `/deliveries`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from reasoncodes.base.api import StrictSerializer
from workflows.webhooks.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from workflows.webhooks.rules.delivery import MOST_PATTERNS
from workflows.webhooks.services.endpoints import IssuedEndpoint
from workflows.webhooks.states import DisabledWhy, WebhookDeliveryState

ENDPOINT_FIELDS = [
    "id",
    "org_id",
    "url",
    "description",
    "events",
    "status",
    "disabled_why",
    "disabled_at",
    "failures",
    "failing_since",
    "created_at",
    "updated_at",
]


class EndpointOut(serializers.ModelSerializer[WebhookEndpoint]):
    org_id = serializers.UUIDField(source="organization_id")
    events = serializers.ListField(child=serializers.CharField())
    status = serializers.ChoiceField(choices=["enabled", "disabled"])
    disabled_why = serializers.ChoiceField(choices=[why.value for why in DisabledWhy], allow_blank=True)

    class Meta:
        model = WebhookEndpoint
        fields = ENDPOINT_FIELDS


class IssuedEndpointOut(EndpointOut):
    secret = serializers.SerializerMethodField(help_text="Shown in this answer and never again.")

    class Meta(EndpointOut.Meta):
        fields = [*ENDPOINT_FIELDS, "secret"]

    def get_secret(self, endpoint: WebhookEndpoint) -> str:
        return str(self.context["secret"])


def issued(made: IssuedEndpoint) -> dict[str, Any]:
    return dict(IssuedEndpointOut(made.endpoint, context={"secret": made.secret}).data)


class EndpointFilter(StrictSerializer):
    status = serializers.ChoiceField(choices=["enabled", "disabled"], required=False)


class EndpointIn(StrictSerializer):
    url = serializers.CharField(max_length=500, help_text="https, of a public host; no credentials in it.")
    events = serializers.ListField(
        child=serializers.CharField(max_length=100),
        max_length=MOST_PATTERNS,
        help_text="Names of event types, their beginnings as `attempt.*`, or `*`.",
    )
    description = serializers.CharField(max_length=120, required=False, allow_blank=True, default="")


class EndpointChangeIn(StrictSerializer):
    url = serializers.CharField(max_length=500, required=False)
    events = serializers.ListField(
        child=serializers.CharField(max_length=100), max_length=MOST_PATTERNS, required=False
    )
    description = serializers.CharField(max_length=120, required=False, allow_blank=True)


class RotateIn(StrictSerializer):
    overlap_hours = serializers.IntegerField(
        min_value=0, max_value=720, required=False, default=24, help_text="How long the old secret signs too."
    )


class AttemptOut(serializers.ModelSerializer[WebhookAttempt]):
    headers = serializers.DictField(child=serializers.CharField())

    class Meta:
        model = WebhookAttempt
        fields = [
            "number",
            "started_at",
            "url",
            "headers",
            "outcome",
            "status",
            "duration_ms",
            "response_bytes",
            "response_sha256",
            "truncated",
        ]


DELIVERY_FIELDS = [
    "id",
    "org_id",
    "endpoint_id",
    "event_id",
    "event_type",
    "subject_id",
    "state",
    "tries",
    "failures",
    "next_try_at",
    "why",
    "created_at",
    "ended_at",
]


class DeliveryOut(serializers.ModelSerializer[WebhookDelivery]):
    org_id = serializers.UUIDField(source="organization_id")
    endpoint_id = serializers.UUIDField()
    event_id = serializers.UUIDField(help_text="The `webhook-id` of every try.")
    state = serializers.ChoiceField(choices=[state.value for state in WebhookDeliveryState])

    class Meta:
        model = WebhookDelivery
        fields = DELIVERY_FIELDS


class DeliveryDetailOut(DeliveryOut):
    body = serializers.SerializerMethodField(help_text="The exact body; with an attempt's headers, what was sent.")
    attempts = serializers.SerializerMethodField(help_text="The newest hundred, in their order.")

    class Meta(DeliveryOut.Meta):
        fields = [*DELIVERY_FIELDS, "body", "body_sha256", "attempts"]

    def get_body(self, delivery: WebhookDelivery) -> str:
        return bytes(delivery.body).decode()

    def get_attempts(self, delivery: WebhookDelivery) -> list[dict[str, Any]]:
        return [dict(AttemptOut(row).data) for row in self.context["attempts"]]


class DeliveryFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=[state.value for state in WebhookDeliveryState], required=False)


class RedeliveredOut(serializers.Serializer[Any]):
    redelivered = serializers.IntegerField()


ADD = OpenApiExample(
    "All attempts and one workflow event",
    value={
        "url": "https://hooks.example.com/holdpoint",
        "events": ["attempt.*", "workflow.completed"],
        "description": "Case system",
    },
    request_only=True,
)
CHANGE = OpenApiExample("Everything", value={"events": ["*"]}, request_only=True)
ROTATE = OpenApiExample("Two days", value={"overlap_hours": 48}, request_only=True)
REASON = OpenApiExample("A rehearsal", value={"reason_code": "rehearsal"}, request_only=True)
