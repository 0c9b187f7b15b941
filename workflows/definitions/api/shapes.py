"""What goes in and out of `/workflow-definitions` and `/workflow-templates`."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from governance.contracts.states import RiskTier
from reasoncodes.base.api import StrictSerializer
from workflows.definitions.models import WorkflowDefinition, WorkflowDefinitionRevision
from workflows.definitions.rules.document import MAX_WORKFLOW_SECONDS
from workflows.definitions.rules.starters.starters import definition_starter
from workflows.definitions.selectors import ContractStanding, areas_named, contract_standing
from workflows.definitions.states import DefinitionStatus, Mode

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


class ContractRefOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.CharField()


class ContractStandingOut(serializers.Serializer[ContractStanding]):
    id = serializers.UUIDField(source="contract.id")
    slug = serializers.CharField(source="contract.slug")
    version = serializers.IntegerField(source="contract.version")
    state = serializers.CharField(source="contract.state")
    missing_areas = serializers.SerializerMethodField(help_text="Areas whose owners have not approved it as it is.")

    def get_missing_areas(self, standing: ContractStanding) -> list[str]:
        return areas_named(standing.missing)


class DefinitionOut(serializers.ModelSerializer[WorkflowDefinition]):
    org_id = serializers.UUIDField(source="organization_id", allow_null=True)
    product_id = serializers.UUIDField(allow_null=True)
    status = serializers.ChoiceField(source="state", choices=list(DefinitionStatus))
    created_by = serializers.CharField(source="created_by_ref")
    cloned_from = serializers.UUIDField(source="cloned_from_id", allow_null=True)
    contract = ContractRefOut(allow_null=True)

    class Meta:
        model = WorkflowDefinition
        fields = [
            "id",
            "org_id",
            "product_id",
            "slug",
            "name",
            "version",
            "is_template",
            "status",
            "default_mode",
            "workflow_timeout_seconds",
            "contract",
            "snapshot_sha256",
            "cloned_from",
            "created_by",
            "created_at",
            "updated_at",
            "published_at",
        ]


class DefinitionDetailOut(DefinitionOut):
    definition = serializers.JSONField()
    contract = serializers.SerializerMethodField()  # type: ignore[assignment]

    class Meta(DefinitionOut.Meta):
        fields = [*DefinitionOut.Meta.fields, "definition"]

    @extend_schema_field(ContractStandingOut(allow_null=True))
    def get_contract(self, definition: WorkflowDefinition) -> Any:
        standing = contract_standing(definition=definition)
        return ContractStandingOut(standing).data if standing else None


class RevisionOut(serializers.ModelSerializer[WorkflowDefinitionRevision]):
    workflow_definition_id = serializers.UUIDField()
    changed_by = serializers.CharField(source="changed_by_name", help_text="The person or service account.")
    diff = serializers.JSONField(help_text="The document's changes; slug and status when they changed.")

    class Meta:
        model = WorkflowDefinitionRevision
        fields = [
            "id",
            "workflow_definition_id",
            "number",
            "changed_by",
            "changed_by_kind",
            "diff",
            "sha256",
            "reason",
            "created_at",
        ]


class FindingOut(serializers.Serializer[Any]):
    rule = serializers.CharField()
    pointer = serializers.CharField(help_text="JSON pointer into the definition.")
    message = serializers.CharField()
    suggestion = serializers.CharField(help_text="The nearest valid name; empty when there is none.")


class ValidationOut(serializers.Serializer[Any]):
    valid = serializers.BooleanField()
    findings = FindingOut(many=True)


class DefinitionFilter(StrictSerializer):
    product_id = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(choices=list(DefinitionStatus), required=False)
    slug = serializers.CharField(max_length=63, required=False)


class ReasonIn(StrictSerializer):
    reason = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class SettingsIn(ReasonIn):
    """Given beside the document, they are written into it."""

    name = serializers.CharField(max_length=120, required=False)
    slug = serializers.RegexField(SLUG, required=False)
    default_mode = serializers.ChoiceField(choices=list(Mode), required=False)
    workflow_timeout_seconds = serializers.IntegerField(min_value=1, max_value=MAX_WORKFLOW_SECONDS, required=False)


class DefinitionPatchIn(SettingsIn):
    definition = serializers.DictField(required=False)


class DefinitionCreateIn(DefinitionPatchIn):
    schema_rules = {"oneOf": [{"required": ["definition"]}, {"required": ["template_id"]}]}
    product_id = serializers.UUIDField(required=False, allow_null=True, help_text="Without: the whole organization's.")
    template_id = serializers.UUIDField(required=False, help_text="Copies this template or definition instead.")
    org_id = serializers.UUIDField(required=False, help_text="Only when you act in several organizations.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("definition" in attrs) == ("template_id" in attrs):
            raise serializers.ValidationError({"definition": [serializers.ErrorDetail("", code="required")]})
        return attrs


class CloneIn(SettingsIn):
    product_id = serializers.UUIDField(required=False, allow_null=True)
    org_id = serializers.UUIDField(required=False, help_text="Only when you act in several organizations.")


class PublishIn(ReasonIn):
    policy_slug = serializers.RegexField(SLUG, required=False, help_text="Whose active version decides on its steps.")
    risk_tier = serializers.ChoiceField(choices=list(RiskTier), required=False)
    review_owner = serializers.CharField(max_length=64, required=False)


class ValidateIn(StrictSerializer):
    definition = serializers.JSONField(required=False, help_text="Judged instead of the stored one; nothing is stored.")


CREATE_EXAMPLE = OpenApiExample(
    "A workflow of your own",
    value={"slug": "ai-only", "definition": definition_starter("ai_only"), "reason": "First draft"},
    request_only=True,
)
TEMPLATE_EXAMPLE = OpenApiExample(
    "From a template",
    value={"template_id": "0199a1c2-0000-7000-8000-000000000000", "name": "Clinic A: AI with escalation"},
    request_only=True,
)
PATCH_EXAMPLE = OpenApiExample(
    "Another mode, and why", value={"default_mode": "client_driven", "reason": "The portal drives"}, request_only=True
)
CLONE_EXAMPLE = OpenApiExample(
    "For one product",
    value={"name": "Clinic A: AI with escalation", "product_id": "0199a1c2-0000-7000-8000-000000000000"},
    request_only=True,
)
PUBLISH_EXAMPLE = OpenApiExample(
    "With a policy", value={"policy_slug": "standard", "risk_tier": "medium"}, request_only=True
)
REASON_EXAMPLE = OpenApiExample("With a reason", value={"reason": "Replaced by the new intake"}, request_only=True)
VALIDATE_EXAMPLE = OpenApiExample(
    "A document that is being written", value={"definition": definition_starter("ai_only")}, request_only=True
)
