"""Read-only records: decisions in words, violations, regional profiles."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.append_only import RecordApi, record_scopes
from governance.enforcement import results_from_document
from governance.models import EnforcementDecision, GovernanceViolation, RegionProfile
from governance.roles import ApiScope
from governance.selectors import decision_get, decision_list, region_profile_list, violation_list
from governance.states import ViolationKind
from reasoncodes.api.conventions import ApiView, StrictSerializer


class EvaluatorOut(serializers.Serializer[Any]):
    evaluator = serializers.CharField()
    verdict = serializers.CharField()
    reason_code = serializers.CharField(allow_null=True)
    explanation = serializers.CharField(help_text="In words.")


class DecisionOut(serializers.ModelSerializer[EnforcementDecision]):
    contract_id = serializers.UUIDField()
    evaluators = serializers.SerializerMethodField(help_text="Every evaluator's verdict, in the fixed order.")

    class Meta:
        model = EnforcementDecision
        fields = [
            "id",
            "contract_id",
            "verdict",
            "reason_code",
            "rule_id",
            "policy_version",
            "approval",
            "evaluators",
            "request_sha256",
            "environment_sha256",
            "at",
        ]

    @extend_schema_field(EvaluatorOut(many=True))
    def get_evaluators(self, row: EnforcementDecision) -> list[dict[str, Any]]:
        return [
            {
                "evaluator": result.evaluator,
                "verdict": result.verdict,
                "reason_code": result.reason_code,
                "explanation": result.explanation,
            }
            for result in results_from_document(row.results)
        ]


class DecisionFilter(StrictSerializer):
    verdict = serializers.ChoiceField(choices=["allow", "needs_approval", "deny"], required=False)
    contract_id = serializers.UUIDField(required=False)


class DecisionListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="decisions_list", parameters=[DecisionFilter], responses=DecisionOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, decision_list(**self.query(request, DecisionFilter)), DecisionOut)


class DecisionApi(RecordApi):
    required_scopes = record_scopes(ApiScope.GOVERNANCE_READ)

    def find(self, **address: UUID) -> EnforcementDecision:
        return decision_get(**address)

    @extend_schema(operation_id="decisions_read", responses=DecisionOut)
    def get(self, request: Request, decision_id: UUID) -> Response:
        self.query(request)
        return Response(DecisionOut(decision_get(decision_id=decision_id)).data)


class ViolationOut(serializers.ModelSerializer[GovernanceViolation]):
    class Meta:
        model = GovernanceViolation
        fields = ["id", "kind", "actor_kind", "actor_ref", "subject_type", "subject_id", "detail", "at"]


class ViolationFilter(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(ViolationKind), required=False)


class ViolationListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="violations_list", parameters=[ViolationFilter], responses=ViolationOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, violation_list(**self.query(request, ViolationFilter)), ViolationOut)


class RegionOut(serializers.ModelSerializer[RegionProfile]):
    class Meta:
        model = RegionProfile
        fields = ["id", "code", "name", "version", "sha256", "document", "disclaimer", "at"]


class RegionListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="regions_list", responses=RegionOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, region_profile_list(), RegionOut)
