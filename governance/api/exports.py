"""`/exports`: everything about one context reference, or of the organization, as an archive."""

from typing import Any
from uuid import UUID

from django.core.files.storage import storages
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.legal_holds import BecauseIn
from governance.archive_response import archive_response
from governance.models import ExportRequest
from governance.roles import ApiScope
from governance.selectors import organization_of
from governance.selectors.retention import export_get, export_list
from governance.services.export import export_open, export_request
from governance.states import ExportState
from reasoncodes.api.conventions import ApiView, StrictSerializer


class ExportOut(serializers.ModelSerializer[ExportRequest]):
    org_id = serializers.UUIDField(source="organization_id")
    context_ref = serializers.CharField(
        source="reference", default=None, allow_null=True, help_text="null: the whole organization, or destroyed."
    )

    note = serializers.CharField(source="note.text", default=None, allow_null=True)

    class Meta:
        model = ExportRequest
        fields = [
            "id",
            "org_id",
            "context_ref",
            "commitment",
            "state",
            "reason_code",
            "note",
            "requested_by_kind",
            "requested_by_ref",
            "requested_at",
            "due_at",
            "done",
            "total",
            "size",
            "sha256",
            "ready_at",
            "expires_at",
        ]


class ExportFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(ExportState), required=False)


class ExportIn(BecauseIn):
    context_ref = serializers.CharField(
        max_length=200, required=False, allow_blank=True, default="", help_text="Empty: the whole organization."
    )


EXAMPLE = OpenApiExample(
    "One context", value={"context_ref": "ctx-0001", "reason_code": "data_subject_request"}, request_only=True
)


class ExportListApi(ApiView):
    """Reading them is reading the record, so it asks for the same scope."""

    required_scopes = {"GET": ApiScope.LEDGER_READ, "POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(operation_id="exports_list", parameters=[ExportFilter], responses=ExportOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, export_list(**self.query(request, ExportFilter)), ExportOut)

    @extend_schema(operation_id="exports_request", request=ExportIn, responses={202: ExportOut}, examples=[EXAMPLE])
    def post(self, request: Request) -> Response:
        self.query(request)
        given, actor = self.body(request, ExportIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=None)
        row = export_request(actor=actor, at=timezone.now(), organization=organization, **given)
        response = Response(ExportOut(export_get(export_id=row.id)).data, status=status.HTTP_202_ACCEPTED)
        response["Location"] = f"{request.path}/{row.id}"
        return response


class ExportApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="exports_read", responses=ExportOut)
    def get(self, request: Request, export_id: UUID) -> Response:
        self.query(request)
        return Response(ExportOut(export_get(export_id=export_id)).data)


class ExportDownloadApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="exports_download", responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, export_id: UUID) -> Any:
        """That it was taken, and by whom, is on the ledger."""
        self.query(request)
        row, stream = export_open(
            actor=self.actor(request), at=timezone.now(), export_id=export_id, storage=storages["exports"]
        )
        return archive_response(row=row, stream=stream)
