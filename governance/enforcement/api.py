"""`/decisions`: the decisions with every evaluator's verdict in words, read-only."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.enforcement.models import EnforcementDecision
from governance.enforcement.rules import results_from_document
from governance.enforcement.selectors import decision_get, decision_list
from governance.ledger.api import RecordApi, record_scopes
from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer


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
            "act",
            "subject_id",
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
