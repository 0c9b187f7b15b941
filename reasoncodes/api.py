"""`/reason-codes`: the system's codes and an organization's own."""

from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from reasoncodes.base.api import ApiView, EmptyQuery, StrictSerializer, home_organization
from reasoncodes.base.errors import FieldError, InvalidInput
from reasoncodes.codes import Scope
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_get, reason_code_list, reason_code_usage
from reasoncodes.services import reason_code_create, reason_code_deactivate, reason_code_take_back, reason_code_update

READ = "orchestrator:read"
WRITE = "orchestrator:write"
SCOPES = [scope.value for scope in Scope]


class ReasonCodeOut(serializers.ModelSerializer[ReasonCode]):
    org_id = serializers.UUIDField(source="organization_id", allow_null=True, help_text="null for a system code.")

    class Meta:
        model = ReasonCode
        fields = [
            "id",
            "org_id",
            "scope",
            "code",
            "label",
            "description",
            "requires_note",
            "applicable_step_kinds",
            "emitted",
            "active",
            "created_at",
            "updated_at",
        ]


class ReasonCodeDetailOut(ReasonCodeOut):
    usage_count = serializers.SerializerMethodField(help_text="How often the record names it; counted up to 1000.")

    class Meta(ReasonCodeOut.Meta):
        fields = [*ReasonCodeOut.Meta.fields, "usage_count"]

    def get_usage_count(self, row: ReasonCode) -> int:
        return reason_code_usage(organization_id=row.organization_id, codes=[row.code])[row.code]


class ReasonCodeFilter(StrictSerializer):
    scope = serializers.ChoiceField(choices=SCOPES, required=False)
    active = serializers.BooleanField(required=False, allow_null=True, default=None)


class ReasonCodeWords(StrictSerializer):
    label = serializers.CharField(max_length=80)  # type: ignore[assignment]  # DRF has an attribute of that name
    description = serializers.CharField(max_length=280, allow_blank=True, required=False)
    requires_note = serializers.BooleanField(required=False)
    applicable_step_kinds = serializers.ListField(
        child=serializers.RegexField(r"^[a-z][a-z0-9_]{1,63}$"),
        allow_null=True,
        required=False,
        max_length=50,
    )


class ReasonCodeCreateIn(ReasonCodeWords):
    scope = serializers.ChoiceField(choices=SCOPES)
    code = serializers.RegexField(r"^[a-z][a-z0-9_]{1,63}$")
    org_id = serializers.UUIDField(required=False, help_text="Needed when you act in several organizations.")


class ReasonCodePatchIn(ReasonCodeWords):
    label = serializers.CharField(max_length=80, required=False)
    active = serializers.BooleanField(required=False)


EXAMPLE = OpenApiExample(
    "An organization's own code",
    value={
        "scope": "human_decline",
        "code": "needs_dermoscopy",
        "label": "Needs dermoscopy",
        "requires_note": False,
    },
    request_only=True,
)


CHANGE = OpenApiExample("Another wording", value={"label": "Needs a dermoscopic image"}, request_only=True)


class ReasonCodeListApi(ApiView):
    required_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(operation_id="reason_codes_list", parameters=[ReasonCodeFilter], responses=ReasonCodeOut(many=True))
    def get(self, request: Request) -> Response:
        filters = self.query(request, ReasonCodeFilter)
        rows = reason_code_list(organization_ids=self.actor(request).organization_ids, **filters)
        return self.page(request, rows, ReasonCodeOut)

    @extend_schema(
        operation_id="reason_codes_create",
        request=ReasonCodeCreateIn,
        responses={201: ReasonCodeOut},
        examples=[EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, ReasonCodeCreateIn)
        actor = self.actor(request)
        organization_id = fields.pop("org_id", None) or home_organization(actor)
        if organization_id is None:
            raise InvalidInput(errors=[FieldError("/org_id", "is required: you act in several organizations")])
        row = reason_code_create(actor=actor, at=timezone.now(), organization_id=organization_id, **fields)
        return Response(ReasonCodeOut(row).data, status=status.HTTP_201_CREATED)


class ReasonCodeApi(ApiView):
    required_scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(operation_id="reason_codes_read", responses=ReasonCodeDetailOut)
    def get(self, request: Request, reason_code_id: UUID) -> Response:
        self.query(request)
        return Response(ReasonCodeDetailOut(reason_code_get(reason_code_id=reason_code_id)).data)

    @extend_schema(
        operation_id="reason_codes_change", request=ReasonCodePatchIn, responses=ReasonCodeOut, examples=[CHANGE]
    )
    def patch(self, request: Request, reason_code_id: UUID) -> Response:
        changes = self.body(request, ReasonCodePatchIn)
        row = reason_code_update(
            actor=self.actor(request), at=timezone.now(), reason_code_id=reason_code_id, changes=changes
        )
        return Response(ReasonCodeOut(row).data)

    @extend_schema(operation_id="reason_codes_deactivate", responses={204: None})
    def delete(self, request: Request, reason_code_id: UUID) -> Response:
        reason_code_deactivate(actor=self.actor(request), at=timezone.now(), reason_code_id=reason_code_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReasonCodeTakeBackApi(ApiView):
    """The system's wording of the code counts again for the organization."""

    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="reason_codes_take_back", request=None, responses={204: None})
    def post(self, request: Request, reason_code_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        reason_code_take_back(actor=self.actor(request), at=timezone.now(), reason_code_id=reason_code_id)
        return Response(status=status.HTTP_204_NO_CONTENT)
