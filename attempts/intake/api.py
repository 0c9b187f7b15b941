"""Intake over HTTP, `POST /execution/{slug}/{version}/attempts`, and the API that reads idempotency keys."""

from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.intake.models import IdempotencyRecord
from attempts.intake.selectors import idempotency_record_get, idempotency_record_list, key_uses
from attempts.intake.services.door import Intake, intake_knock, intake_pass
from attempts.intake.services.intake import attempt_create
from attempts.intake.services.rows import IntakeAnswer
from attempts.intake.services.unreadable import attempt_refuse_unreadable
from attempts.lifecycle.selectors.limits import limits_used
from attempts.metrics import ATTEMPTS, REFUSED_AT_THE_DOOR
from governance.enforcement.selectors import Arrival, IntakeFacts
from governance.people.api import bearer_secret
from governance.people.rules.roles import VIEW, ApiScope
from governance.people.selectors.people import Credential, organization_of
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.errors import AttemptCreationDisabled, BodyTooDeep, InvalidInput, UnsupportedMediaType
from reasoncodes.base.json_body import BODY_LIMIT_BYTES, check_length, parse_json
from reasoncodes.base.trace import bind_ids, trace_or_new

log = structlog.get_logger("holdpoint.security")


# A plain view: DRF's dispatch would cost more than the answer. No CSRF check is needed, because only an API key gives
# access here, never a cookie.
@method_decorator(csrf_exempt, name="dispatch")
class AttemptCreateApi(View):
    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, workflow_slug: str, contract_version: str) -> HttpResponse:
        arrival = intake_knock(
            secret=bearer_secret(request.headers.get("Authorization", "")),
            workflow_slug=workflow_slug,
            contract_version=contract_version,
            key=request.headers.get("Idempotency-Key"),
            at=timezone.now(),
        )
        try:
            facts = intake_pass(credential=arrival.credential, facts=arrival.facts)
        except AttemptCreationDisabled as refusal:
            _note_refusal(arrival.credential, refusal)
            raise
        answer = attempt_create(intake=_read_intake(request, arrival, facts))
        bind_ids(attempt_id=answer.attempt_id)
        return render(answer)


def _read_intake(request: HttpRequest, arrival: Arrival, facts: IntakeFacts) -> Intake:
    """Reads the body. Not called before the contract is known to be open: a closed one must not cost us a body."""
    intake = Intake(
        credential=arrival.credential,
        facts=facts,
        route=f"{request.method} {facts.contract.slug}/{facts.contract.version}",
        key=request.headers.get("Idempotency-Key"),
        body=None,
        trace=trace_or_new(),
        at=timezone.now(),
        deployment_region=settings.DEPLOYMENT_REGION,
        base_url=request.build_absolute_uri("/").rstrip("/"),
        headers=frozenset(name.lower() for name in request.headers),
        known=arrival.also,
    )
    try:
        return intake.with_body(_read_body(request))
    except (InvalidInput, BodyTooDeep) as unreadable:
        attempt_refuse_unreadable(intake=intake, refusal=unreadable)
        raise


def _read_body(request: HttpRequest) -> object:
    if request.content_type != "application/json":
        raise UnsupportedMediaType
    check_length(request.META)
    # One byte more than allowed, so that a body without a length that is too long is noticed.
    return parse_json(request.read(BODY_LIMIT_BYTES + 1))


def render(answer: IntakeAnswer) -> HttpResponse:
    ATTEMPTS.labels(status=answer.status).inc()
    media_type = "application/problem+json" if answer.is_problem else "application/json"
    return HttpResponse(answer.body, status=answer.status, content_type=media_type, headers=answer.headers)


def _note_refusal(credential: Credential, refusal: AttemptCreationDisabled) -> None:
    """Counts and logs the refusal. No row is written: a closed contract must not fill the database."""
    REFUSED_AT_THE_DOOR.labels(reason_code=refusal.reason_code).inc()
    log.warning(
        "attempt_refused_unread",
        reason_code=refusal.reason_code,
        organization_id=str(credential.organization.id),
        service_account_id=str(credential.actor.id),
    )


class AskedBeforeOut(serializers.Serializer[Any]):
    """An earlier attempt for the same effect, under another key."""

    attempt_id = serializers.UUIDField()
    state = serializers.CharField(source="attempt.state")
    idempotency_key = serializers.CharField(source="attempt.idempotency_key")
    at = serializers.DateTimeField()


class KeyOut(serializers.ModelSerializer[IdempotencyRecord]):
    attempt_id = serializers.UUIDField()

    class Meta:
        model = IdempotencyRecord
        fields = [
            "id",
            "scope",
            "key",
            "fingerprint",
            "attempt_id",
            "status",
            "generation",
            "first_used_at",
            "expires_at",
        ]


class KeyUsesOut(serializers.Serializer[Any]):
    replays = serializers.IntegerField()
    conflicts = serializers.IntegerField()
    after_expiry = serializers.IntegerField()


class KeyDetailOut(KeyOut):
    uses = serializers.SerializerMethodField(help_text="Counted up to 1000 each.")

    class Meta(KeyOut.Meta):
        fields = [*KeyOut.Meta.fields, "uses"]

    @extend_schema_field(KeyUsesOut)
    def get_uses(self, record: IdempotencyRecord) -> dict[str, int]:
        return key_uses(record=record)


class KeyFilter(StrictSerializer):
    key = serializers.CharField(max_length=200, required=False)


class KeyListApi(ApiView):
    required_scopes = {"GET": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="idempotency_keys_list", parameters=[KeyFilter], responses=KeyOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, idempotency_record_list(**self.query(request, KeyFilter)), KeyOut)


class KeyApi(ApiView):
    required_scopes = {"GET": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="idempotency_keys_read", responses=KeyDetailOut)
    def get(self, request: Request, record_id: UUID) -> Response:
        self.query(request)
        return Response(KeyDetailOut(idempotency_record_get(record_id=record_id)).data)


class LimitByOut(serializers.Serializer[Any]):
    running = serializers.IntegerField(help_text="Attempts that may be executed now.")
    holds = serializers.IntegerField(help_text="Attempts that wait for people. They take no place of running work.")
    queued = serializers.IntegerField(help_text="Attempts that wait for a free place. They take none either.")


class LimitOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    contract = serializers.CharField(help_text="Slug and version, for a cap that a contract sets; else empty.")
    cap = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Counted over all contracts of the organization.")
    by = LimitByOut()
    oldest = serializers.DateTimeField(allow_null=True, help_text="Since when the oldest hold waits.")


class LimitsOut(serializers.Serializer[Any]):
    limits = LimitOut(many=True)


class LimitsApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    other_scopes = {"GET": ApiScope.ATTEMPTS_CREATE}
    people_permissions = {"GET": VIEW}

    @extend_schema(operation_id="organization_limits", responses=LimitsOut)
    def get(self, request: Request) -> Response:
        """How full the caps are. With several organizations, `org_id` says whose."""
        self.query(request)
        organization = organization_of(actor=self.actor(request), org_id=None)
        return Response(LimitsOut({"limits": limits_used(organization=organization)}).data)


urlpatterns = [
    path("idempotency-keys", KeyListApi.as_view(), name="idempotency_key_list"),
    path("idempotency-keys/<uuid:record_id>", KeyApi.as_view(), name="idempotency_key"),
]
