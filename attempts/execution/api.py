"""The executor API: lease, heartbeat, complete, fail. Each report carries the token of its lease."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.execution.services.executor import (
    Presented,
    executor_complete,
    executor_fail,
    executor_heartbeat,
    executor_lease,
    executor_lease_many,
)
from attempts.execution.services.lease import LARGEST_BATCH, Granted
from attempts.execution.services.outcome import SuccessReport, lease_token_make
from attempts.lifecycle.models import Attempt
from attempts.quarantine.states import QuarantineCategory
from governance.contracts.states import AdapterName
from governance.people.rules.roles import ApiScope
from governance.sealing.selectors.witnesses import epoch_mark
from reasoncodes.base.api import ApiView, StrictSerializer

CODE = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"


class LeaseManyIn(StrictSerializer):
    connector = serializers.ChoiceField(choices=list(AdapterName), required=False)
    limit = serializers.IntegerField(min_value=1, max_value=LARGEST_BATCH, required=False, default=1)


class NothingIn(StrictSerializer):
    """An empty object, or no body at all."""


class HeartbeatIn(StrictSerializer):
    lease_token = serializers.CharField(max_length=200)


class CostIn(StrictSerializer):
    provider = serializers.RegexField(CODE, max_length=64)
    model = serializers.RegexField(CODE, max_length=64, required=False)
    units = serializers.IntegerField(min_value=0, max_value=2**53 - 1, required=False)
    amount = serializers.DecimalField(max_digits=18, decimal_places=6, min_value=0, required=False)
    currency = serializers.RegexField(r"^[A-Z]{3}$", required=False)


class CompleteIn(HeartbeatIn):
    response_metadata = serializers.DictField(required=False, default=dict)
    cost = CostIn(required=False, allow_null=True)
    reversible = serializers.BooleanField(required=False, default=False)
    reversal_hint = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


class FailIn(HeartbeatIn):
    category = serializers.ChoiceField(choices=list(QuarantineCategory))
    retryable = serializers.BooleanField(required=False, default=False)
    reason_code = serializers.CharField(max_length=64, required=False, default="adapter_failed")


class LeasedAttemptOut(serializers.ModelSerializer[Attempt]):
    class Meta:
        model = Attempt
        fields = [
            "id",
            "state",
            "workflow_slug",
            "contract_version",
            "runtime_mode",
            "patient_context_ref",
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
            "tries",
            "created_at",
        ]


class LeaseOut(serializers.Serializer[Any]):
    lease_token = serializers.CharField()
    lease_expires_at = serializers.DateTimeField()
    effect_key = serializers.CharField(help_text="Send it on as the idempotency key of the side effect.")
    attempt = LeasedAttemptOut()


class LeaseManyOut(serializers.Serializer[Any]):
    results = LeaseOut(many=True)


class HeartbeatOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    lease_expires_at = serializers.DateTimeField()


class ReportedOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.CharField()
    reason_code = serializers.CharField(allow_null=True)
    tries = serializers.IntegerField()
    next_eligible_at = serializers.DateTimeField(allow_null=True, help_text="When it is tried again, if it is.")


def _lease_json(granted: Granted, epoch: str) -> dict[str, Any]:
    attempt = granted.attempt
    token = lease_token_make(attempt_id=attempt.id, fence=attempt.lease_token, epoch=epoch)
    return {
        "lease_token": token,
        "lease_expires_at": attempt.lease_expires_at,
        "effect_key": granted.intent.effect_key,
        "attempt": attempt,
    }


def _reported_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": attempt.id,
        "state": attempt.state,
        "reason_code": attempt.reason_code or None,
        "tries": attempt.tries,
        "next_eligible_at": attempt.next_eligible_at,
    }


def example(name: str, **value: Any) -> OpenApiExample:
    return OpenApiExample(name, value=value, request_only=True)


TOKEN = "0199a1c2-0000-7000-8000-000000000000:1:1:signature"  # noqa: S105  an example


class ExecutorView(ApiView):
    required_scopes = {"POST": ApiScope.ATTEMPTS_EXECUTE}


class AttemptLeaseManyApi(ExecutorView):
    @extend_schema(
        operation_id="attempts_lease_many",
        request=LeaseManyIn,
        responses=LeaseManyOut,
        examples=[example("Up to ten of one connector", connector="external", limit=10)],
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, LeaseManyIn)
        granted = executor_lease_many(
            actor=self.actor(request), at=timezone.now(), connector=fields.get("connector"), limit=fields["limit"]
        )
        epoch = epoch_mark() if granted else ""
        return Response(LeaseManyOut({"results": [_lease_json(one, epoch) for one in granted]}).data)


class AttemptLeaseApi(ExecutorView):
    @extend_schema(operation_id="attempts_lease", request=None, responses=LeaseOut)
    def post(self, request: Request, attempt_id: UUID) -> Response:
        self.body(request, NothingIn)
        granted = executor_lease(actor=self.actor(request), at=timezone.now(), attempt_id=attempt_id)
        return Response(LeaseOut(_lease_json(granted, epoch_mark())).data)


class AttemptHeartbeatApi(ExecutorView):
    @extend_schema(
        operation_id="attempts_heartbeat",
        request=HeartbeatIn,
        responses=HeartbeatOut,
        examples=[example("Still at it", lease_token=TOKEN)],
    )
    def post(self, request: Request, attempt_id: UUID) -> Response:
        fields = self.body(request, HeartbeatIn)
        attempt = executor_heartbeat(
            actor=self.actor(request), at=timezone.now(), presented=Presented(attempt_id, fields["lease_token"])
        )
        return Response(HeartbeatOut({"id": attempt.id, "lease_expires_at": attempt.lease_expires_at}).data)


class AttemptCompleteApi(ExecutorView):
    @extend_schema(
        operation_id="attempts_complete",
        request=CompleteIn,
        responses=ReportedOut,
        examples=[
            example(
                "Done",
                lease_token=TOKEN,
                response_metadata={"status": 200, "reference": "case-0001"},
                cost={"provider": "acme", "model": "m-1", "units": 812, "amount": "0.004060", "currency": "USD"},
                reversible=True,
                reversal_hint="case.reopen",
            )
        ],
    )
    def post(self, request: Request, attempt_id: UUID) -> Response:
        fields = self.body(request, CompleteIn)
        presented = Presented(attempt_id, fields.pop("lease_token"))
        attempt = executor_complete(
            actor=self.actor(request),
            at=timezone.now(),
            presented=presented,
            result=SuccessReport(**fields | {"cost": _cost_document(fields.get("cost"))}),
        )
        return Response(ReportedOut(_reported_json(attempt)).data)


class AttemptFailApi(ExecutorView):
    @extend_schema(
        operation_id="attempts_fail",
        request=FailIn,
        responses=ReportedOut,
        examples=[
            example(
                "The receiver was busy",
                lease_token=TOKEN,
                category="adapter_failure",
                retryable=True,
                reason_code="adapter_failed",
            )
        ],
    )
    def post(self, request: Request, attempt_id: UUID) -> Response:
        fields = self.body(request, FailIn)
        presented = Presented(attempt_id, fields.pop("lease_token"))
        attempt = executor_fail(actor=self.actor(request), at=timezone.now(), presented=presented, **fields)
        return Response(ReportedOut(_reported_json(attempt)).data)


def _cost_document(cost: dict[str, Any] | None) -> dict[str, Any] | None:
    """The amount as text: money is not a binary fraction."""
    if cost is None:
        return None
    return dict(cost) | ({"amount": str(cost["amount"])} if "amount" in cost else {})


urlpatterns = [
    path("attempts/lease", AttemptLeaseManyApi.as_view(), name="attempt_lease_many"),
    path("attempts/<uuid:attempt_id>/lease", AttemptLeaseApi.as_view(), name="attempt_lease"),
    path("attempts/<uuid:attempt_id>/heartbeat", AttemptHeartbeatApi.as_view(), name="attempt_heartbeat"),
    path("attempts/<uuid:attempt_id>/complete", AttemptCompleteApi.as_view(), name="attempt_complete"),
    path("attempts/<uuid:attempt_id>/fail", AttemptFailApi.as_view(), name="attempt_fail"),
]
