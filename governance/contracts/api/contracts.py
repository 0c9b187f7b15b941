"""`/contracts`: drafts and their documents, and opening, suspending and retiring a contract."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.contracts.models import Contract
from governance.contracts.rules.documents import AREAS
from governance.contracts.rules.readiness import CORE_FIELDS
from governance.contracts.selectors import contract_documents, contract_get, contract_list
from governance.contracts.services.contracts import (
    contract_change,
    contract_create,
    contract_discard,
    contract_new_version,
    contract_open,
    contract_retire,
    contract_suspend,
)
from governance.contracts.states import AdapterName, ContractState, Effect, RiskTier
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.json_body import DOCUMENT_DEPTH_LIMIT

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
READ = ApiScope.GOVERNANCE_READ
WRITE = ApiScope.GOVERNANCE_WRITE


class ContractOut(serializers.ModelSerializer[Contract]):
    organization_id = serializers.UUIDField()

    class Meta:
        model = Contract
        fields = [
            "id",
            "organization_id",
            "slug",
            "version",
            "title",
            *CORE_FIELDS,
            "state",
            "closed_reason_code",
            "snapshot_sha256",
            "created_at",
            "opened_at",
        ]


class ContractDetailOut(ContractOut):
    documents = serializers.SerializerMethodField(help_text="The ten policy documents by area.")

    class Meta(ContractOut.Meta):
        fields = [*ContractOut.Meta.fields, "documents"]

    def get_documents(self, contract: Contract) -> dict[str, Any]:
        return contract_documents(contract=contract)


class ContractFilter(StrictSerializer):
    slug = serializers.CharField(max_length=63, required=False)
    state = serializers.ChoiceField(choices=list(ContractState), required=False)


@extend_schema_field(
    {"type": "object", "properties": {area.name: {"type": "object"} for area in AREAS}, "additionalProperties": False}
)
class DocumentsField(serializers.DictField):
    """Area to document; the areas are checked here, the documents by their schemas."""

    child = serializers.JSONField()

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        if set(value) - {area.name for area in AREAS}:
            self.fail("invalid")
        return value

    default_error_messages = {"invalid": "unknown area"}


class ContractPatchIn(StrictSerializer):
    title = serializers.CharField(max_length=120, required=False)
    effect = serializers.ChoiceField(choices=list(Effect), required=False)
    risk_tier = serializers.ChoiceField(choices=list(RiskTier), required=False)
    adapter = serializers.ChoiceField(choices=list(AdapterName), required=False)
    review_owner = serializers.CharField(max_length=64, required=False)
    policy_slug = serializers.RegexField(SLUG, required=False)
    documents = DocumentsField(required=False)


class ContractCreateIn(ContractPatchIn):
    slug = serializers.RegexField(SLUG)
    title = serializers.CharField(max_length=120)
    review_owner = serializers.CharField(max_length=64)
    policy_slug = serializers.RegexField(SLUG)
    org_id = serializers.UUIDField(required=False, help_text="Only when you act in several organizations.")


class CloseIn(StrictSerializer):
    reason_code = serializers.CharField(max_length=64)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


CREATE_EXAMPLE = OpenApiExample(
    "A contract with the safe defaults",
    value={
        "slug": "close-case",
        "title": "Close a case",
        "effect": "once",
        "risk_tier": "medium",
        "adapter": "external",
        "review_owner": "approvers",
        "policy_slug": "standard",
    },
    request_only=True,
)
CLOSE_EXAMPLE = OpenApiExample(
    "With a reason", value={"reason_code": "incident_response", "note": "See incident 17"}, request_only=True
)


class ContractListApi(ApiView):
    json_depth = DOCUMENT_DEPTH_LIMIT
    required_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(operation_id="contracts_list", parameters=[ContractFilter], responses=ContractOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, contract_list(**self.query(request, ContractFilter)), ContractOut)

    @extend_schema(
        operation_id="contracts_create",
        request=ContractCreateIn,
        responses={201: ContractDetailOut},
        examples=[CREATE_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, ContractCreateIn)
        organization = organization_of(actor=self.actor(request), org_id=fields.pop("org_id", None))
        contract = contract_create(actor=self.actor(request), at=timezone.now(), organization=organization, **fields)
        return Response(ContractDetailOut(contract).data, status=status.HTTP_201_CREATED)


class ContractApi(ApiView):
    json_depth = DOCUMENT_DEPTH_LIMIT
    required_scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(operation_id="contracts_read", responses=ContractDetailOut)
    def get(self, request: Request, contract_id: UUID) -> Response:
        self.query(request)
        return Response(ContractDetailOut(contract_get(contract_id=contract_id)).data)

    @extend_schema(
        operation_id="contracts_change",
        request=ContractPatchIn,
        responses=ContractDetailOut,
        examples=[OpenApiExample("Another title", value={"title": "Close a case for good"}, request_only=True)],
    )
    def patch(self, request: Request, contract_id: UUID) -> Response:
        core = self.body(request, ContractPatchIn)
        documents = core.pop("documents", None)
        contract = contract_change(
            actor=self.actor(request), at=timezone.now(), contract_id=contract_id, core=core, documents=documents
        )
        return Response(ContractDetailOut(contract).data)

    @extend_schema(operation_id="contracts_discard", responses={204: None})
    def delete(self, request: Request, contract_id: UUID) -> Response:
        contract_discard(actor=self.actor(request), at=timezone.now(), contract_id=contract_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ContractOpenApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="contracts_open", request=None, responses=ContractOut)
    def post(self, request: Request, contract_id: UUID) -> Response:
        return Response(
            ContractOut(contract_open(actor=self.actor(request), at=timezone.now(), contract_id=contract_id)).data
        )


class ContractSuspendApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="contracts_suspend", request=CloseIn, responses=ContractOut, examples=[CLOSE_EXAMPLE])
    def post(self, request: Request, contract_id: UUID) -> Response:
        contract = contract_suspend(
            actor=self.actor(request), at=timezone.now(), contract_id=contract_id, **self.body(request, CloseIn)
        )
        return Response(ContractOut(contract).data)


class ContractRetireApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="contracts_retire", request=CloseIn, responses=ContractOut, examples=[CLOSE_EXAMPLE])
    def post(self, request: Request, contract_id: UUID) -> Response:
        contract = contract_retire(
            actor=self.actor(request), at=timezone.now(), contract_id=contract_id, **self.body(request, CloseIn)
        )
        return Response(ContractOut(contract).data)


class ContractNewVersionApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="contracts_new_version", request=None, responses={201: ContractDetailOut})
    def post(self, request: Request, contract_id: UUID) -> Response:
        contract = contract_new_version(actor=self.actor(request), at=timezone.now(), contract_id=contract_id)
        return Response(ContractDetailOut(contract).data, status=status.HTTP_201_CREATED)
