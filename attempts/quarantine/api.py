"""`/quarantine-cases`: reads and resolves quarantine cases."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.intake.api import render
from attempts.lifecycle.api import ReceiptOut, RequestOfReceiptOut
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.selectors import (
    LATELY,
    CaseSheet,
    case_sheet,
    causes,
    quarantine_case_get,
    quarantine_case_list,
)
from attempts.quarantine.services.resolve import (
    ResolutionOrder,
    quarantine_accept,
    quarantine_authorize_retry,
    quarantine_compensate,
    quarantine_hand_over,
    quarantine_link_incident,
)
from attempts.quarantine.states import InvestigatedOutcome, QuarantineCategory
from governance.people.rules.roles import VIEW, ApiScope
from reasoncodes.base.actors import ActorKind
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.trace import trace_or_new

NOBODY = UUID(int=0)


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


class NextActOut(serializers.Serializer[Any]):
    verb = serializers.CharField(help_text="The last part of the path to post to.")
    title = serializers.CharField()
    explanation = serializers.CharField()
    finding = serializers.CharField(help_text="The finding that it needs; empty: see `asks_finding`.")
    asks_finding = serializers.BooleanField()


class CaseDetailOut(CaseOut):
    """The workbench: what was sent, what came back, how to find out, and what is possible now."""

    ask_receiver = serializers.SerializerMethodField()
    next_acts = serializers.SerializerMethodField()
    not_yet = serializers.SerializerMethodField()
    sent = serializers.SerializerMethodField()
    came_back = serializers.SerializerMethodField()
    alike = serializers.SerializerMethodField(help_text="Cases of this cause within 30 days, this one included.")

    class Meta(CaseOut.Meta):
        fields = [*CaseOut.Meta.fields, "sent", "came_back", "ask_receiver", "next_acts", "not_yet", "alike"]

    @property
    def sheet(self) -> CaseSheet:
        found: CaseSheet = self.context["sheet"]
        return found

    def get_ask_receiver(self, case: QuarantineCase) -> list[str]:
        return self.sheet.ask

    @extend_schema_field(NextActOut(many=True))
    def get_next_acts(self, case: QuarantineCase) -> list[dict[str, Any]]:
        return [dict(NextActOut(act).data) for act in self.sheet.acts]

    def get_not_yet(self, case: QuarantineCase) -> list[str]:
        return self.sheet.not_yet

    @extend_schema_field(RequestOfReceiptOut(many=True))
    def get_sent(self, case: QuarantineCase) -> list[dict[str, Any]]:
        return [dict(RequestOfReceiptOut(intent).data) for intent in self.sheet.sent]

    @extend_schema_field(ReceiptOut(many=True))
    def get_came_back(self, case: QuarantineCase) -> list[dict[str, Any]]:
        return [dict(ReceiptOut(receipt).data) for receipt in self.sheet.came_back]

    def get_alike(self, case: QuarantineCase) -> int:
        return self.sheet.alike


class CaseFilter(StrictSerializer):
    category = serializers.ChoiceField(choices=list(QuarantineCategory), required=False)
    resolved = serializers.BooleanField(required=False, allow_null=True, default=None)
    mine = serializers.BooleanField(required=False, default=False, help_text="Only cases of the person's own groups.")


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
        asked = self.query(request, CaseFilter)
        actor = self.actor(request)
        # A service is in no group: it has no cases of its own.
        mine_of = (actor.id if actor.kind is ActorKind.PERSON else NOBODY) if asked.pop("mine") else None
        return self.page(request, quarantine_case_list(**asked, mine_of=mine_of), CaseOut)


class CauseOut(serializers.Serializer[Any]):
    workflow_slug = serializers.CharField()
    operation = serializers.CharField()
    category = serializers.CharField()
    reason_code = serializers.CharField()
    count = serializers.IntegerField()
    open = serializers.IntegerField()
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()


class CaseCausesApi(ApiView):
    """Cases of the last 30 days by their cause, those that come again most often first. At most 50."""

    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": VIEW}
    plain_list = True

    @extend_schema(operation_id="quarantine_cases_causes", responses=CauseOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        found = causes(rows=QuarantineCase.objects.all(), since=timezone.now() - LATELY)
        return Response([CauseOut(row).data for row in found])


class CaseApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="quarantine_cases_read", responses=CaseDetailOut)
    def get(self, request: Request, case_id: UUID) -> Response:
        self.query(request)
        actor = self.actor(request)
        reader = actor.id if actor.kind is ActorKind.PERSON else None
        sheet = case_sheet(case=quarantine_case_get(case_id=case_id), now=timezone.now(), reader=reader)
        return Response(CaseDetailOut(sheet.case, context={"sheet": sheet}).data)


class ResolveView(ApiView):
    """Only people find out what happened."""

    required_scopes = {"POST": ApiScope.ORCHESTRATOR_INTERVENE}
    # Operators, and the case's own group: the service checks which, under the case's lock.
    people_permissions = {"POST": VIEW}
    services_allowed = False


class CaseAcceptApi(ResolveView):
    @extend_schema(operation_id="quarantine_cases_accept", request=FindingIn, responses=CaseOut, examples=[FOUND])
    def post(self, request: Request, case_id: UUID) -> Response:
        order = _resolution_from_request(request, self.body(request, FindingIn))
        case = quarantine_accept(actor=self.actor(request), at=timezone.now(), case_id=case_id, order=order)
        return Response(CaseOut(case).data)


class CaseHandOverApi(ResolveView):
    """The linked incident decides what follows. Needs no finding; 409 `incident-needed` without an incident."""

    @extend_schema(operation_id="quarantine_cases_hand_over", request=None, responses=CaseOut)
    def post(self, request: Request, case_id: UUID) -> Response:
        case = quarantine_hand_over(actor=self.actor(request), at=timezone.now(), case_id=case_id)
        return Response(CaseOut(case).data)


class CaseIncidentApi(ResolveView):
    """Also for an incident system, with the scope `orchestrator:intervene`: linking decides nothing."""

    services_allowed = True

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
    path("quarantine-cases/causes", CaseCausesApi.as_view(), name="quarantine_causes"),
    path("quarantine-cases/<uuid:case_id>", CaseApi.as_view(), name="quarantine_case"),
    path("quarantine-cases/<uuid:case_id>/accept", CaseAcceptApi.as_view(), name="quarantine_accept"),
    path("quarantine-cases/<uuid:case_id>/hand-over", CaseHandOverApi.as_view(), name="quarantine_hand_over"),
    path("quarantine-cases/<uuid:case_id>/link-incident", CaseIncidentApi.as_view(), name="quarantine_link_incident"),
    path(
        "quarantine-cases/<uuid:case_id>/authorize-retry",
        CaseAuthorizeRetryApi.as_view(),
        name="quarantine_authorize_retry",
    ),
    path("quarantine-cases/<uuid:case_id>/compensate", CaseCompensateApi.as_view(), name="quarantine_compensate"),
]
