"""`/legal-holds`: what must not be erased. Placed with a reason, released by a second person with a reason."""

from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.models import LegalHold
from governance.roles import AUDIT, ApiScope
from governance.selectors import organization_of
from governance.selectors.retention import legal_hold_get, legal_hold_list
from governance.services.legal_hold import legal_hold_place, legal_hold_release
from governance.states import HoldScope, HoldState
from reasoncodes.api.conventions import ApiView, StrictSerializer


class BecauseIn(StrictSerializer):
    reason_code = serializers.CharField(max_length=64)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class LegalHoldOut(serializers.ModelSerializer[LegalHold]):
    org_id = serializers.UUIDField(source="organization_id")
    reference = serializers.CharField(
        default=None, allow_null=True, help_text="The context reference behind `target`; null once it was destroyed."
    )
    note = serializers.CharField(source="note.text", default=None, allow_null=True)

    class Meta:
        model = LegalHold
        fields = [
            "id",
            "org_id",
            "scope",
            "target",
            "reference",
            "state",
            "reason_code",
            "authority_ref",
            "note",
            "placed_by_kind",
            "placed_by_ref",
            "placed_at",
            "release_reason_code",
            "released_by_ref",
            "released_at",
        ]


class LegalHoldFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(HoldState), required=False)
    scope = serializers.ChoiceField(choices=list(HoldScope), required=False)


class LegalHoldIn(BecauseIn):
    scope = serializers.ChoiceField(choices=list(HoldScope))
    target = serializers.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        default="",
        help_text="A contract's slug, a context reference, or the id of an attempt, run or person; empty for all.",
    )
    authority_ref = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


PLACE = OpenApiExample(
    "One context",
    value={"scope": "context", "target": "ctx-0001", "reason_code": "litigation", "authority_ref": "case-2026-17"},
    request_only=True,
)
RELEASE = OpenApiExample("Over", value={"reason_code": "hold_ended"}, request_only=True)


def shown(hold_id: UUID, code: int = status.HTTP_200_OK) -> Response:
    return Response(LegalHoldOut(legal_hold_get(hold_id=hold_id)).data, status=code)


class LegalHoldListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "POST": ApiScope.GOVERNANCE_WRITE}
    people_permissions = {"GET": AUDIT}

    @extend_schema(operation_id="legal_holds_list", parameters=[LegalHoldFilter], responses=LegalHoldOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, legal_hold_list(**self.query(request, LegalHoldFilter)), LegalHoldOut)

    @extend_schema(
        operation_id="legal_holds_place", request=LegalHoldIn, responses={201: LegalHoldOut}, examples=[PLACE]
    )
    def post(self, request: Request) -> Response:
        self.query(request)
        given, actor = self.body(request, LegalHoldIn), self.actor(request)
        given["scope"] = HoldScope(given["scope"])
        organization = organization_of(actor=actor, org_id=None)
        hold = legal_hold_place(actor=actor, at=timezone.now(), organization_id=organization.id, **given)
        return shown(hold.id, status.HTTP_201_CREATED)


class LegalHoldApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": AUDIT}

    @extend_schema(operation_id="legal_holds_read", responses=LegalHoldOut)
    def get(self, request: Request, hold_id: UUID) -> Response:
        self.query(request)
        return shown(hold_id)


class LegalHoldReleaseApi(ApiView):
    """Only people: two programs would be no second look."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="legal_holds_release", request=BecauseIn, responses=LegalHoldOut, examples=[RELEASE])
    def post(self, request: Request, hold_id: UUID) -> Response:
        self.query(request)
        given = self.body(request, BecauseIn)
        hold = legal_hold_release(actor=self.actor(request), at=timezone.now(), hold_id=hold_id, **given)
        return shown(hold.id)
