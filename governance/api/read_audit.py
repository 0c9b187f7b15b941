"""`/read-audit`: who opened which attempt, review, bundle or export. And how a view records that it was opened."""

from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.models import ReadAccess
from governance.roles import ApiScope
from governance.selectors.read_audit import read_access_list
from governance.services.read_audit import read_recorded
from reasoncodes.api.conventions import ApiView, StrictSerializer

HEADER = "X-Purpose"
PURPOSE = OpenApiParameter(
    name=HEADER,
    location=OpenApiParameter.HEADER,
    required=False,
    type=str,
    description="What it is opened for: a code of your own, kept in the read audit.",
)


class ReadAccessOut(serializers.ModelSerializer[ReadAccess]):
    organization_id = serializers.UUIDField()

    class Meta:
        model = ReadAccess
        fields = [
            "id",
            "organization_id",
            "actor_kind",
            "actor_ref",
            "subject_kind",
            "subject_id",
            "door",
            "purpose",
            "request_id",
            "at",
        ]


class ReadAccessFilter(StrictSerializer):
    subject_kind = serializers.CharField(max_length=32, required=False)
    subject_id = serializers.UUIDField(required=False)
    actor_ref = serializers.CharField(max_length=64, required=False)


class ReadAuditApi(ApiView):
    """For auditors: people with that role, and keys with `ledger:read`."""

    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="read_audit_list", parameters=[ReadAccessFilter], responses=ReadAccessOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, read_access_list(**self.query(request, ReadAccessFilter)), ReadAccessOut)


def opened(view: ApiView, request: Request, *, subject_kind: str, subject_id: UUID, organization_id: UUID) -> None:
    """To be called when the thing is found and before it is rendered."""
    read_recorded(
        actor=view.actor(request),
        organization_id=organization_id,
        subject_kind=subject_kind,
        subject_id=subject_id,
        purpose=request.headers.get(HEADER, ""),
        at=timezone.now(),
    )
