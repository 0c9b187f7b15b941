"""`/quarantine-cases`: reads and resolves quarantine cases."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.intake.api import render
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.selectors import quarantine_case_get, quarantine_case_list
from attempts.quarantine.services.resolve import (
    ResolutionOrder,
    quarantine_accept,
    quarantine_authorize_retry,
    quarantine_compensate,
    quarantine_link_incident,
)
from attempts.quarantine.states import InvestigatedOutcome, QuarantineCategory
from governance.people.rules.roles import OPERATE, VIEW, ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.trace import trace_or_new


class CaseOut(serializers.ModelSerializer[QuarantineCase]):
    attempt_id = serializers.UUIDField()
    follow_up_id = serializers.UUIDField(allow_null=True)
    blocked_action = serializers.SerializerMethodField(help_text="What stays blocked until the case is resolved.")

    class Meta:
        model = QuarantineCase
        fields = [
            "id",
            "attempt_id",
            "category",
            "reason_code",
            "blocked_action",
            "escalation_owner",
            "escalate_at",
            "escalated_at",
            "incident_ref",
            "finding",
            "evidence_ref",
            "resolution",
            "resolved_at",
            "follow_up_id",
            "opened_at",
        ]

    def get_blocked_action(self, case: QuarantineCase) -> dict[str, str] | None:
        if case.resolution:
            return None
        attempt = case.attempt
        return {"connector": attempt.connector, "operation": attempt.operation, "target_ref": attempt.target_ref}


class CaseFilter(StrictSerializer):
    category = serializers.ChoiceField(choices=list(QuarantineCategory), required=False)
    resolved = serializers.BooleanField(required=False, allow_null=True, default=None)


class FindingIn(StrictSerializer):
    finding = serializers.ChoiceField(choices=list(InvestigatedOutcome), required=False)
    evidence_ref = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class IncidentIn(StrictSerializer):
    incident_ref = serializers.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._:/#-]{0,199}$")


FOUND = OpenApiExample(
    "With a finding", value={"finding": "did_not_happen", "evidence_ref": "log-4711"}, request_only=True
)


def _resolution_from_request(request: Request, fields: dict[str, Any]) -> ResolutionOrder:
    return ResolutionOrder(
        **fields,
        trace=trace_or_new(),
        deployment_region=settings.DEPLOYMENT_REGION,
        base_url=request.build_absolute_uri("/").rstrip("/"),
    )


class CaseListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="quarantine_cases_list", parameters=[CaseFilter], responses=CaseOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, quarantine_case_list(**self.query(request, CaseFilter)), CaseOut)


class CaseApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="quarantine_cases_read", responses=CaseOut)
    def get(self, request: Request, case_id: UUID) -> Response:
        self.query(request)
        return Response(CaseOut(quarantine_case_get(case_id=case_id)).data)


class ResolveView(ApiView):
    """Only people find out what happened."""

    required_scopes = {"POST": ApiScope.ORCHESTRATOR_INTERVENE}
    people_permissions = {"POST": OPERATE}
    services_allowed = False


class CaseAcceptApi(ResolveView):
    @extend_schema(operation_id="quarantine_cases_accept", request=FindingIn, responses=CaseOut, examples=[FOUND])
    def post(self, request: Request, case_id: UUID) -> Response:
        order = _resolution_from_request(request, self.body(request, FindingIn))
        case = quarantine_accept(actor=self.actor(request), at=timezone.now(), case_id=case_id, order=order)
        return Response(CaseOut(case).data)


class CaseIncidentApi(ResolveView):
    @extend_schema(
        operation_id="quarantine_cases_link_incident",
        request=IncidentIn,
        responses=CaseOut,
        examples=[OpenApiExample("An incident", value={"incident_ref": "INC-17"}, request_only=True)],
    )
    def post(self, request: Request, case_id: UUID) -> Response:
        fields = self.body(request, IncidentIn)
        case = quarantine_link_incident(actor=self.actor(request), at=timezone.now(), case_id=case_id, **fields)
        return Response(CaseOut(case).data)


class CaseAuthorizeRetryApi(ResolveView):
    @extend_schema(operation_id="quarantine_cases_authorize_retry", request=FindingIn, responses=None, examples=[FOUND])
    def post(self, request: Request, case_id: UUID) -> HttpResponse:
        order = _resolution_from_request(request, self.body(request, FindingIn))
        return render(
            quarantine_authorize_retry(actor=self.actor(request), at=timezone.now(), case_id=case_id, order=order)
        )


class CaseCompensateApi(ResolveView):
    @extend_schema(operation_id="quarantine_cases_compensate", request=FindingIn, responses=None, examples=[FOUND])
    def post(self, request: Request, case_id: UUID) -> HttpResponse:
        order = _resolution_from_request(request, self.body(request, FindingIn))
        return render(quarantine_compensate(actor=self.actor(request), at=timezone.now(), case_id=case_id, order=order))


urlpatterns = [
    path("quarantine-cases", CaseListApi.as_view(), name="quarantine_case_list"),
    path("quarantine-cases/<uuid:case_id>", CaseApi.as_view(), name="quarantine_case"),
    path("quarantine-cases/<uuid:case_id>/accept", CaseAcceptApi.as_view(), name="quarantine_accept"),
    path("quarantine-cases/<uuid:case_id>/link-incident", CaseIncidentApi.as_view(), name="quarantine_link_incident"),
    path(
        "quarantine-cases/<uuid:case_id>/authorize-retry",
        CaseAuthorizeRetryApi.as_view(),
        name="quarantine_authorize_retry",
    ),
    path("quarantine-cases/<uuid:case_id>/compensate", CaseCompensateApi.as_view(), name="quarantine_compensate"),
]
