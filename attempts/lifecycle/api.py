"""`/attempts`: reads, cancels and replays attempts, and their evidence bundles."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.execution.models import Receipt
from attempts.execution.selectors import attempt_obstacles
from attempts.intake.api import AskedBeforeOut, render
from attempts.intake.selectors import asked_before
from attempts.intake.services.door import Intake, intake_door
from attempts.intake.services.follow_up import ReplayOrder, attempt_cancel, attempt_replay, attempt_replay_by_person
from attempts.intake.services.rows import IntakeAnswer
from attempts.lifecycle.hooks import Sleeper, wait_seconds
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import (
    attempt_decision,
    attempt_get,
    attempt_identity,
    attempt_list,
    attempt_receipts,
    attempt_review,
    attempt_timeline,
    patient_context_said,
    receipt_reversal,
)
from attempts.lifecycle.states import AttemptState, PatientContext
from governance.boundary.api import ShownFactOut
from governance.boundary.rules import facts_shown
from governance.enforcement.api import DecisionOut
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.selectors import decisions_at_act
from governance.evidence.api import ZIP, EvidenceOut, SubjectEvidenceView
from governance.evidence.states import EvidenceKind
from governance.ledger.rules.actions import wording
from governance.people.api import ServicePrincipal
from governance.people.rules.roles import OPERATE, VIEW, ApiScope
from governance.people.selectors.people import people_behind
from governance.sealing.api import PURPOSE
from governance.sealing.api import opened as read_opened
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.trace import trace_or_new

READ = ApiScope.ATTEMPTS_CREATE
WAITS_IN = {AttemptState.REVIEW_REQUIRED, AttemptState.APPROVED}


class ReviewBrief(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tier = serializers.CharField()
    status = serializers.CharField()
    approvals_required = serializers.IntegerField()
    expires_at = serializers.DateTimeField()


class AttemptOut(serializers.ModelSerializer[Attempt]):
    patient_context = serializers.SerializerMethodField(
        help_text="`not_applicable`: the owner of the contract's envelope document declared that there is none."
    )
    contract_id = serializers.UUIDField()
    decision_id = serializers.UUIDField()
    caller_id = serializers.UUIDField()
    retry_of_id = serializers.UUIDField(allow_null=True)
    compensates_id = serializers.UUIDField(allow_null=True)

    class Meta:
        model = Attempt
        fields = [
            "id",
            "state",
            "reason_code",
            "workflow_slug",
            "contract_version",
            "contract_id",
            "decision_id",
            "caller_id",
            "request_trace_id",
            "idempotency_key",
            "patient_context_ref",
            "patient_context",
            "review_owner",
            "runtime_mode",
            "connector",
            "operation",
            "target_ref",
            "effect",
            "risk_tier",
            "payload_ref",
            "payload_sha256",
            "fields",
            "action_digest",
            "metadata",
            "retry_of_id",
            "compensates_id",
            "tries",
            "next_eligible_at",
            "created_at",
            "ended_at",
            "retention_until",
            "erased_at",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=list(PatientContext)))
    def get_patient_context(self, attempt: Attempt) -> str:
        return patient_context_said(attempt=attempt)


class IdentityOut(serializers.Serializer[Any]):
    """The ten fields of the identity envelope, as they were decided about."""

    workflow_slug = serializers.CharField(allow_null=True)
    contract_version = serializers.IntegerField(allow_null=True)
    request_trace_id = serializers.CharField(allow_null=True)
    idempotency_key = serializers.CharField(allow_null=True)
    tenant_ref = serializers.CharField(allow_null=True)
    caller_ref = serializers.CharField(allow_null=True)
    patient_context_ref = serializers.CharField(allow_null=True)
    review_owner = serializers.CharField(allow_null=True)
    runtime_mode = serializers.CharField(allow_null=True)
    audit_event_link = serializers.CharField(allow_null=True, help_text="The ledger entry that tells of the attempt.")


class AttemptDetailOut(AttemptOut):
    identity = serializers.SerializerMethodField()
    facts = serializers.SerializerMethodField()
    review = serializers.SerializerMethodField(help_text="The newest: an attempt can be held again before an act.")
    asked_before = serializers.SerializerMethodField(help_text="Who asked for the same effect under other keys.")

    class Meta(AttemptOut.Meta):
        fields = [*AttemptOut.Meta.fields, "identity", "facts", "review", "asked_before"]

    @extend_schema_field(AskedBeforeOut(many=True))
    def get_asked_before(self, attempt: Attempt) -> list[dict[str, Any]]:
        return list(AskedBeforeOut(asked_before(attempt=attempt), many=True).data)

    @extend_schema_field(IdentityOut)
    def get_identity(self, attempt: Attempt) -> dict[str, Any]:
        return IdentityOut(attempt_identity(attempt=attempt)).data

    @extend_schema_field(ShownFactOut(many=True))
    def get_facts(self, attempt: Attempt) -> list[dict[str, Any]]:
        facts = facts_shown(attempt_decision(attempt=attempt).facts_declared, attempt.metadata)
        return [ShownFactOut(fact).data for fact in facts]

    @extend_schema_field(ReviewBrief(allow_null=True))
    def get_review(self, attempt: Attempt) -> dict[str, Any] | None:
        review = attempt_review(attempt=attempt)
        return ReviewBrief(review).data if review else None


class AttemptFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(AttemptState), required=False)
    workflow_slug = serializers.CharField(max_length=63, required=False)
    contract_version = serializers.IntegerField(min_value=1, max_value=2**31 - 1, required=False)
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)
    idempotency_key = serializers.CharField(max_length=200, required=False)


class AttemptReadView(ApiView):
    """Services that may ask may look; people who may see the organization may look."""

    required_scopes = {"GET": READ}
    people_permissions = {"GET": VIEW}

    def opened(self, request: Request, attempt_id: UUID) -> Attempt:
        """The attempt. That it was opened is recorded before the answer."""
        attempt = attempt_get(attempt_id=attempt_id)
        found = {"subject_id": attempt.id, "organization_id": attempt.organization_id}
        read_opened(self, request, subject_kind="attempt", **found)
        return attempt


class AttemptListApi(AttemptReadView):
    @extend_schema(operation_id="attempts_list", parameters=[AttemptFilter], responses=AttemptOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, attempt_list(**self.query(request, AttemptFilter)), AttemptOut)


class AttemptApi(AttemptReadView):
    """`Prefer: wait=30` answers when the attempt is decided or ends, at the latest after that time."""

    @extend_schema(operation_id="attempts_read", parameters=[PURPOSE], responses=AttemptDetailOut)
    def get(self, request: Request, attempt_id: UUID) -> Response:
        self.query(request)
        seconds = wait_seconds(request.headers.get("Prefer", ""))
        with Sleeper(attempt_id, seconds) as sleeper:
            attempt = self.opened(request, attempt_id)
            if attempt.state in WAITS_IN and sleeper.sleep():
                attempt = attempt_get(attempt_id=attempt_id)
        response = Response(AttemptDetailOut(attempt).data)
        if seconds and sleeper.placed:
            response["Preference-Applied"] = f"wait={seconds}"
        return response


class TimelineEntryOut(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    action = serializers.CharField()
    wording = serializers.CharField()
    actor_kind = serializers.CharField()
    actor = serializers.CharField()
    reason_code = serializers.CharField()
    entry_id = serializers.UUIDField()


class AttemptTimelineApi(AttemptReadView):
    plain_list = True

    @extend_schema(operation_id="attempts_timeline", parameters=[PURPOSE], responses=TimelineEntryOut(many=True))
    def get(self, request: Request, attempt_id: UUID) -> Response:
        self.query(request)
        entries = attempt_timeline(attempt=self.opened(request, attempt_id))
        people = people_behind(commitments={entry.actor_ref for entry in entries if entry.actor_kind == "person"})
        return Response(
            [
                {
                    "at": entry.at,
                    "action": move.action,
                    "wording": wording(move.action),
                    "actor_kind": entry.actor_kind,
                    "actor": people.get(entry.actor_ref, entry.actor_ref),
                    "reason_code": move.reason_code,
                    "entry_id": entry.id,
                }
                for entry in entries
                for move in entry.moves
            ]
        )


class ActOut(serializers.ModelSerializer[EnforcementDecision]):
    class Meta:
        model = EnforcementDecision
        fields = ["id", "act", "verdict", "reason_code", "policy_version", "at"]


class AttemptDecisionOut(DecisionOut):
    acts = serializers.SerializerMethodField(help_text="The decisions before its leases and retries, oldest first.")

    class Meta(DecisionOut.Meta):
        fields = [*DecisionOut.Meta.fields, "acts"]

    @extend_schema_field(ActOut(many=True))
    def get_acts(self, row: EnforcementDecision) -> list[dict[str, Any]]:
        return list(ActOut(self.context["acts"], many=True).data)


class AttemptDecisionApi(AttemptReadView):
    """The decision about the request. `acts` are those before its leases and retries; `/decisions/{id}` shows each."""

    @extend_schema(operation_id="attempts_decision", parameters=[PURPOSE], responses=AttemptDecisionOut)
    def get(self, request: Request, attempt_id: UUID) -> Response:
        self.query(request)
        attempt = self.opened(request, attempt_id)
        acts = {"acts": decisions_at_act(subject_id=attempt.id)}
        return Response(AttemptDecisionOut(attempt_decision(attempt=attempt), context=acts).data)


class ObstacleOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    detail = serializers.CharField()
    facts = serializers.DictField()


class ExplainOut(serializers.Serializer[Any]):
    state = serializers.CharField()
    obstacles = ObstacleOut(many=True)


class AttemptExplainApi(AttemptReadView):
    @extend_schema(operation_id="attempts_explain", parameters=[PURPOSE], responses=ExplainOut)
    def get(self, request: Request, attempt_id: UUID) -> Response:
        self.query(request)
        attempt = self.opened(request, attempt_id)
        obstacles = attempt_obstacles(attempt=attempt, at=timezone.now())
        return Response({"state": attempt.state, "obstacles": [ObstacleOut(row).data for row in obstacles]})


class RequestOfReceiptOut(serializers.Serializer[Any]):
    """What was sent, by reference: from the intent that was committed before the call, and the action."""

    intent_id = serializers.UUIDField(source="id")
    number = serializers.IntegerField(help_text="1 for the first call.")
    connector = serializers.CharField(source="adapter")
    effect_key = serializers.CharField(help_text="The idempotency key that the receiver got.")
    action_digest = serializers.CharField()
    operation = serializers.CharField(source="attempt.operation")
    target_ref = serializers.CharField(source="attempt.target_ref")
    payload_ref = serializers.CharField(source="attempt.payload_ref")
    payload_sha256 = serializers.CharField(source="attempt.payload_sha256")
    fields = serializers.ListField(child=serializers.CharField(), source="attempt.fields")  # type: ignore[assignment]
    metadata = serializers.DictField(source="attempt.metadata")
    sent_at = serializers.DateTimeField(source="at")


class ReceiptOut(serializers.ModelSerializer[Receipt]):
    request_metadata = RequestOfReceiptOut(source="intent", allow_null=True)
    how_to_reverse = serializers.SerializerMethodField(help_text="In words.")

    class Meta:
        model = Receipt
        fields = [
            "id",
            "outcome",
            "late",
            "category",
            "retryable",
            "reason_code",
            "request_metadata",
            "response_metadata",
            "reversible",
            "reversal_hint",
            "how_to_reverse",
            "cost",
            "at",
        ]

    def get_how_to_reverse(self, receipt: Receipt) -> str:
        return receipt_reversal(receipt=receipt)


class AttemptReceiptsApi(AttemptReadView):
    @extend_schema(operation_id="attempts_receipts", parameters=[PURPOSE], responses=ReceiptOut(many=True))
    def get(self, request: Request, attempt_id: UUID) -> Response:
        self.query(request)
        return self.page(request, attempt_receipts(attempt=self.opened(request, attempt_id)), ReceiptOut)


class AttemptCancelApi(ApiView):
    required_scopes = {"POST": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"POST": OPERATE}

    @extend_schema(operation_id="attempts_cancel", request=None, responses=AttemptOut)
    def post(self, request: Request, attempt_id: UUID) -> Response:
        attempt = attempt_cancel(actor=self.actor(request), at=timezone.now(), attempt_id=attempt_id)
        return Response(AttemptOut(attempt).data)


class AttemptReplayApi(ApiView):
    """A new attempt with the same content and a new `Idempotency-Key`, where the contract allows it. If the contract
    names a role for it, a person who has that role asks, and no service."""

    required_scopes = {"POST": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"POST": VIEW}

    @extend_schema(
        operation_id="attempts_replay", request=None, responses={201: AttemptDetailOut, 202: AttemptDetailOut}
    )
    def post(self, request: Request, attempt_id: UUID) -> HttpResponse:
        attempt = attempt_get(attempt_id=attempt_id)
        if not isinstance(request.user, ServicePrincipal):
            return render(self._by_person(request, attempt))
        credential = request.user.credential
        facts = intake_door(
            credential=credential, workflow_slug=attempt.workflow_slug, contract_version=str(attempt.contract_version)
        )
        intake = Intake(
            credential=credential,
            facts=facts,
            route=f"POST replay {attempt.id}",
            key=request.headers.get("Idempotency-Key"),
            body=None,
            trace=trace_or_new(),
            at=timezone.now(),
            deployment_region=settings.DEPLOYMENT_REGION,
            base_url=request.build_absolute_uri("/").rstrip("/"),
        )
        return render(attempt_replay(attempt=attempt, intake=intake))

    def _by_person(self, request: Request, attempt: Attempt) -> IntakeAnswer:
        order = ReplayOrder(
            key=request.headers.get("Idempotency-Key"),
            trace=trace_or_new(),
            deployment_region=settings.DEPLOYMENT_REGION,
            base_url=request.build_absolute_uri("/").rstrip("/"),
        )
        return attempt_replay_by_person(actor=self.actor(request), at=timezone.now(), attempt=attempt, order=order)


class AttemptEvidenceApi(SubjectEvidenceView):
    kind = EvidenceKind.ATTEMPT
    required_scopes = {"GET": ApiScope.ATTEMPTS_CREATE, "POST": ApiScope.ATTEMPTS_CREATE}
    other_scopes = {"GET": ApiScope.LEDGER_READ, "POST": ApiScope.LEDGER_READ}

    @extend_schema(
        operation_id="attempts_evidence_read",
        responses={(200, "application/json"): EvidenceOut, (200, ZIP): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, attempt_id: UUID) -> HttpResponseBase:
        """The newest bundle: how far it is, or with `Accept: application/zip` its file."""
        return self.show(request, attempt_get(attempt_id=attempt_id).id)

    @extend_schema(
        operation_id="attempts_evidence_request", request=None, responses={202: EvidenceOut, 200: EvidenceOut}
    )
    def post(self, request: Request, attempt_id: UUID) -> Response:
        """202 and a new bundle; 200 and the newest one while nothing was added to the record since."""
        return self.ask(request, attempt_id)


urlpatterns = [path("attempts/<uuid:attempt_id>/evidence", AttemptEvidenceApi.as_view(), name="attempt_evidence")]
