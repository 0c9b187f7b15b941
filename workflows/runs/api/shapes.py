"""What goes in and out of `/workflow-instances`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from attempts.lifecycle.models import Attempt
from reasoncodes.base.api import ReasonedIn, StrictSerializer
from workflows.definitions.states import Mode
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance, WorkflowIntervention, WorkflowStep
from workflows.runs.selectors.run import instance_drift, instance_steps, steps_attempts
from workflows.runs.states import STEP_OPEN, InstanceStatus

CODE = r"^[a-z][a-z0-9_]{0,63}$"


class InstanceOut(serializers.ModelSerializer[WorkflowInstance]):
    org_id = serializers.UUIDField(source="organization_id")
    product_id = serializers.UUIDField(allow_null=True, help_text="null: under the whole organization's definition.")
    definition_id = serializers.UUIDField()
    definition_slug = serializers.CharField(source="definition.slug")
    definition_version = serializers.IntegerField(source="definition.version")
    mode = serializers.ChoiceField(choices=list(Mode))
    status = serializers.ChoiceField(source="state", choices=list(InstanceStatus))
    superseded_by = serializers.UUIDField(source="superseded_by_id", allow_null=True)

    class Meta:
        model = WorkflowInstance
        fields = [
            "id",
            "case_id",
            "business_key",
            "org_id",
            "product_id",
            "definition_id",
            "definition_slug",
            "definition_version",
            "mode",
            "status",
            "halt_reason",
            "halt_step_id",
            "cancelled_reason",
            "superseded_by",
            "created_at",
            "started_at",
            "deadline_at",
            "completed_at",
        ]


class SnapshotRef(serializers.Serializer[Any]):
    """The frozen copy of the definition that the run follows, whatever happens to the definition later."""

    definition_id = serializers.UUIDField()
    slug = serializers.CharField()
    version = serializers.IntegerField()
    sha256 = serializers.CharField()


class ContractRef(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.CharField()


class CurrentStep(serializers.ModelSerializer[WorkflowStep]):
    status = serializers.CharField(source="state", max_length=16)

    class Meta:
        model = WorkflowStep
        fields = [
            "step_id",
            "step_kind",
            "status",
            "attempt",
            "correlation_id",
            "started_at",
            "timeout_at",
            "next_eligible_at",
        ]


class DriftOut(serializers.ModelSerializer[WorkflowEvent]):
    class Meta:
        model = WorkflowEvent
        fields = ["id", "number", "event_id", "event_type", "drift", "outcome", "received_at"]


class GovernedAttempt(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    step_id = serializers.CharField()
    state = serializers.CharField()
    reason_code = serializers.CharField()


class InstanceDetailOut(InstanceOut):
    context = serializers.JSONField(  # type: ignore[assignment]  # DRF has an attribute of that name
        help_text="Outputs of the steps so far, by step id, beside the case's ids."
    )
    input = serializers.JSONField(allow_null=True, help_text="What the run was started with; null: format 1.")
    output = serializers.JSONField(allow_null=True, help_text="What its definition gives at the end; null until then.")
    definition_snapshot = serializers.SerializerMethodField()
    contract = ContractRef(allow_null=True)
    current_steps = serializers.SerializerMethodField()
    drift = serializers.SerializerMethodField(help_text="Where the run left its definition's order; the newest fifty.")
    governed_attempts = serializers.SerializerMethodField(help_text="The attempts its side effects passed through.")

    class Meta(InstanceOut.Meta):
        fields = [
            *InstanceOut.Meta.fields,
            "definition_snapshot",
            "contract",
            "current_steps",
            "input",
            "output",
            "context",
            "drift",
            "governed_attempts",
        ]

    def to_representation(self, instance: WorkflowInstance) -> dict[str, Any]:
        self.steps: list[WorkflowStep] = instance_steps(instance_id=instance.id)
        return super().to_representation(instance)

    @extend_schema_field(SnapshotRef)
    def get_definition_snapshot(self, instance: WorkflowInstance) -> dict[str, Any]:
        definition = instance.definition
        return {
            "definition_id": str(definition.id),
            "slug": definition.slug,
            "version": definition.version,
            "sha256": instance.definition_sha256,
        }

    @extend_schema_field(CurrentStep(many=True))
    def get_current_steps(self, instance: WorkflowInstance) -> Any:
        return CurrentStep([step for step in self.steps if step.state in STEP_OPEN], many=True).data

    @extend_schema_field(DriftOut(many=True))
    def get_drift(self, instance: WorkflowInstance) -> Any:
        return DriftOut(instance_drift(instance_id=instance.id), many=True).data

    @extend_schema_field(GovernedAttempt(many=True))
    def get_governed_attempts(self, instance: WorkflowInstance) -> list[dict[str, Any]]:
        attempts: dict[Any, Attempt] = steps_attempts(steps=self.steps)
        behind = {step.governed_attempt: step.step_id for step in self.steps if step.governed_attempt in attempts}
        return [
            {"id": str(id_), "step_id": step_id, "state": attempts[id_].state, "reason_code": attempts[id_].reason_code}
            for id_, step_id in behind.items()
        ]


class StepInput(serializers.Serializer[Any]):
    params = serializers.DictField()
    request = serializers.DictField(allow_null=True, help_text="What a module was asked with; null: no module was.")


class StepOut(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="row.id", allow_null=True, default=None)
    step_id = serializers.CharField()
    step_kind = serializers.CharField()
    status = serializers.CharField(source="state", help_text="`skipped`: the run was completed without this step.")
    attempt = serializers.IntegerField(source="row.attempt", default=0, help_text="1 is the first; 0: never entered.")
    outcome = serializers.CharField(source="row.outcome", default="")
    started_at = serializers.DateTimeField(source="row.started_at", allow_null=True, default=None)
    completed_at = serializers.DateTimeField(source="row.completed_at", allow_null=True, default=None)
    timeout_at = serializers.DateTimeField(source="row.timeout_at", allow_null=True, default=None)
    next_eligible_at = serializers.DateTimeField(source="row.next_eligible_at", allow_null=True, default=None)
    input = StepInput(allow_null=True)
    output = serializers.JSONField(source="row.output", allow_null=True, default=None)
    error = serializers.JSONField(source="row.error", allow_null=True, default=None)
    correlation_id = serializers.UUIDField(source="row.id", allow_null=True, default=None)
    governed_attempt = serializers.UUIDField(source="row.governed_attempt", allow_null=True, default=None)


class InterventionOut(serializers.ModelSerializer[WorkflowIntervention]):
    instance_id = serializers.UUIDField()
    performed_by = serializers.CharField(source="actor_name", help_text="The person or service account.")
    performed_by_kind = serializers.CharField(source="actor_kind")
    note = serializers.CharField(source="note.text", default="")
    bulk_id = serializers.UUIDField(allow_null=True, help_text="The order for many that it was part of.")

    class Meta:
        model = WorkflowIntervention
        fields = [
            "id",
            "instance_id",
            "action",
            "performed_by",
            "performed_by_kind",
            "reason_code",
            "note",
            "bulk_id",
            "before_state",
            "after_state",
            "created_at",
        ]


class IntervenedOut(InterventionOut):
    instance = InstanceDetailOut()  # type: ignore[assignment]  # DRF has an attribute of that name

    class Meta(InterventionOut.Meta):
        fields = [*InterventionOut.Meta.fields, "instance"]


class RetryIn(ReasonedIn):
    step = serializers.UUIDField(
        required=False, help_text="Correlation id. Needed if several steps wait for their retry (format 2)."
    )


class SummaryOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    remaining_steps = serializers.ListField(child=serializers.CharField())


class NextCurrentOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.CharField()
    params = serializers.DictField()
    input_context = serializers.DictField()
    expected_outputs = serializers.ListField(child=serializers.CharField())


class NextActionOut(serializers.Serializer[Any]):
    type = serializers.ChoiceField(
        choices=[
            "call_module",
            "await_module",
            "await_review",
            "await_release",
            "await_retry",
            "await_time",
            "await_start",
            "intervene",
        ],
        help_text="`call_module`: the client's turn. The others say what is waited for; `intervene`: a person's turn.",
    )
    module = serializers.CharField(allow_null=True)
    endpoint = serializers.CharField(allow_null=True)
    payload_hint = serializers.DictField(allow_null=True)
    completion_event = serializers.CharField(allow_null=True)


class NextOpenOut(NextCurrentOut):
    scope = serializers.CharField(help_text="The way to it through blocks; empty at the root.")
    correlation_id = serializers.UUIDField()
    action = serializers.CharField(help_text="As in `next_action`.")


class NextStepOut(serializers.Serializer[Any]):
    """S4 5.8."""

    instance_id = serializers.UUIDField()
    case_id = serializers.UUIDField()
    status = serializers.CharField()
    current_step = NextCurrentOut(allow_null=True)
    current_steps = NextOpenOut(many=True, required=False, help_text="Format 2: all that are open.")
    next_action = NextActionOut(allow_null=True)
    definition_summary = SummaryOut()


class InstanceFilter(StrictSerializer):
    case_id = serializers.UUIDField(required=False)
    business_key = serializers.CharField(required=False, max_length=128)
    product_id = serializers.UUIDField(required=False)
    definition_id = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(choices=list(InstanceStatus), required=False)
    mode = serializers.ChoiceField(choices=list(Mode), required=False)
    halt_reason = serializers.RegexField(CODE, required=False)
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)


REASON_EXAMPLE = OpenApiExample("With a reason", value={"reason_code": "planned_maintenance"}, request_only=True)
