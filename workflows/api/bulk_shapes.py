"""What goes in and out of `/workflow-instances/bulk-interventions`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from reasoncodes.api.conventions import ReasonedIn, StrictSerializer
from workflows.api.instance_shapes import InstanceFilter
from workflows.states import InterventionAction


class BulkIn(ReasonedIn):
    action = serializers.ChoiceField(choices=list(InterventionAction))
    filter = InstanceFilter(required=False, help_text="As in the list; at least one criterion.")
    instance_ids = serializers.ListField(
        child=serializers.UUIDField(), required=False, min_length=1, max_length=1000, help_text="Instead of a filter."
    )
    dry_run = serializers.BooleanField(required=False, default=False)


class BulkOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    org_id = serializers.UUIDField(source="organization_id")
    action = serializers.CharField()
    reason_code = serializers.CharField()
    note = serializers.CharField(source="note.text", default="")
    ordered_by = serializers.CharField(source="orderer_name", default="")
    ordered_by_kind = serializers.CharField(source="actor_kind")
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class BulkDetailOut(BulkOut):
    total = serializers.IntegerField(source="progress.total")
    done = serializers.IntegerField(source="progress.done")
    refused = serializers.IntegerField(source="progress.refused")
    waiting = serializers.IntegerField(source="progress.waiting")


class RefusedOut(serializers.Serializer[Any]):
    why = serializers.CharField()
    count = serializers.IntegerField()


class SampleOut(serializers.Serializer[Any]):
    instance_id = serializers.UUIDField(source="id")
    case_id = serializers.UUIDField()
    status = serializers.CharField()
    halt_reason = serializers.CharField()
    refusal = serializers.CharField(help_text="Why it would be refused; empty: it would be done.")


class BulkPreviewOut(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(default=True)
    total = serializers.IntegerField(help_text="Counted up to 10,000.")
    more = serializers.BooleanField(help_text="There are more than that: such an order is refused.")
    legal = serializers.IntegerField()
    refused = RefusedOut(many=True)
    sample = SampleOut(many=True)


class BulkItemOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    instance_id = serializers.UUIDField()
    case_id = serializers.UUIDField(source="instance.case_id")
    status = serializers.ChoiceField(choices=["waiting", "done", "refused"])
    problem = serializers.CharField(help_text="The problem type of a refusal.")
    finished_at = serializers.DateTimeField(allow_null=True)


class BulkItemFilter(StrictSerializer):
    status = serializers.ChoiceField(choices=["waiting", "done", "refused"], required=False)


DRY_RUN_EXAMPLE = OpenApiExample(
    "What would it touch?",
    value={
        "action": "resume",
        "reason_code": "data_correction",
        "filter": {"status": "halted", "halt_reason": "ai_review_failed"},
        "dry_run": True,
    },
    request_only=True,
)
BULK_EXAMPLE = OpenApiExample(
    "All that halted for one reason",
    value={
        "action": "resume",
        "reason_code": "data_correction",
        "filter": {"status": "halted", "halt_reason": "ai_review_failed"},
    },
    request_only=True,
)
