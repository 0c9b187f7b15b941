"""API of deletion requests, exports and legal holds."""

from base64 import b64encode
from typing import IO, Any
from uuid import UUID

from django.core.files.storage import storages
from django.http import FileResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import AUDIT, ApiScope
from governance.people.selectors.people import organization_of
from governance.retention.models import DeletionRequest, ExportRequest, LegalHold
from governance.retention.selectors.retention import (
    deletion_get,
    deletion_list,
    export_get,
    export_list,
    legal_hold_get,
    legal_hold_list,
)
from governance.retention.services.deletion import deletion_accept, deletion_refuse, deletion_request
from governance.retention.services.export import export_open, export_request
from governance.retention.services.legal_hold import legal_hold_place, legal_hold_release
from governance.retention.states import DeletionState, ExportState, HoldScope, HoldState
from governance.sealing.api import opened
from reasoncodes.base.api import ApiView, ReasonedIn, StrictSerializer


class DeletionOut(serializers.ModelSerializer[DeletionRequest]):
    org_id = serializers.UUIDField(source="organization_id")
    context_ref = serializers.CharField(
        source="reference", default=None, allow_null=True, help_text="null for a person, and once it was destroyed."
    )
    note = serializers.CharField(source="note.text", default=None, allow_null=True)
    order_id = serializers.UUIDField(allow_null=True)

    class Meta:
        model = DeletionRequest
        fields = [
            "id",
            "org_id",
            "about",
            "context_ref",
            "commitment",
            "state",
            "requested_by_kind",
            "requested_by_ref",
            "requested_at",
            "due_at",
            "decided_by_ref",
            "decided_at",
            "reason_code",
            "note",
            "order_id",
            "finished_at",
        ]


class DeletionFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(DeletionState), required=False)
    overdue = serializers.BooleanField(required=False, allow_null=True, default=None)


class DeletionIn(StrictSerializer):
    context_ref = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    person_id = serializers.UUIDField(required=False, allow_null=True, default=None)


ASK = OpenApiExample("A context", value={"context_ref": "ctx-0001"}, request_only=True)
ACCEPT = OpenApiExample("Accept", value={"reason_code": "data_subject_request"}, request_only=True)
REFUSE = OpenApiExample("Refuse", value={"reason_code": "retention_not_over"}, request_only=True)


def _deletion_response(deletion_id: UUID, code: int = status.HTTP_200_OK) -> Response:
    return Response(DeletionOut(deletion_get(deletion_id=deletion_id)).data, status=code)


class DeletionListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "POST": ApiScope.GOVERNANCE_WRITE}
    people_permissions = {"GET": AUDIT}

    @extend_schema(operation_id="deletions_list", parameters=[DeletionFilter], responses=DeletionOut(many=True))
    def get(self, request: Request) -> Response:
        rows = deletion_list(at=timezone.now(), **self.query(request, DeletionFilter))
        return self.page(request, rows, DeletionOut)

    @extend_schema(operation_id="deletions_request", request=DeletionIn, responses={201: DeletionOut}, examples=[ASK])
    def post(self, request: Request) -> Response:
        self.query(request)
        given, actor = self.body(request, DeletionIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=None)
        row = deletion_request(actor=actor, at=timezone.now(), organization=organization, **given)
        return _deletion_response(row.id, status.HTTP_201_CREATED)


class DeletionApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": AUDIT}

    @extend_schema(operation_id="deletions_read", responses=DeletionOut)
    def get(self, request: Request, deletion_id: UUID) -> Response:
        self.query(request)
        return _deletion_response(deletion_id)


class DeletionAcceptApi(ApiView):
    """Only people decide, and not whoever asked."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="deletions_accept", request=ReasonedIn, responses=DeletionOut, examples=[ACCEPT])
    def post(self, request: Request, deletion_id: UUID) -> Response:
        self.query(request)
        given = self.body(request, ReasonedIn)
        row = deletion_accept(actor=self.actor(request), at=timezone.now(), deletion_id=deletion_id, **given)
        return _deletion_response(row.id)


class DeletionRefuseApi(ApiView):
    """Only people decide, and not whoever asked; the reason must be a lawful one."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="deletions_refuse", request=ReasonedIn, responses=DeletionOut, examples=[REFUSE])
    def post(self, request: Request, deletion_id: UUID) -> Response:
        self.query(request)
        given = self.body(request, ReasonedIn)
        row = deletion_refuse(actor=self.actor(request), at=timezone.now(), deletion_id=deletion_id, **given)
        return _deletion_response(row.id)


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


class LegalHoldIn(ReasonedIn):
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


def _legal_hold_response(hold_id: UUID, code: int = status.HTTP_200_OK) -> Response:
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
        return _legal_hold_response(hold.id, status.HTTP_201_CREATED)


class LegalHoldApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": AUDIT}

    @extend_schema(operation_id="legal_holds_read", responses=LegalHoldOut)
    def get(self, request: Request, hold_id: UUID) -> Response:
        self.query(request)
        return _legal_hold_response(hold_id)


class LegalHoldReleaseApi(ApiView):
    """Only people: two programs would be no second look."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="legal_holds_release", request=ReasonedIn, responses=LegalHoldOut, examples=[RELEASE])
    def post(self, request: Request, hold_id: UUID) -> Response:
        self.query(request)
        given = self.body(request, ReasonedIn)
        hold = legal_hold_release(actor=self.actor(request), at=timezone.now(), hold_id=hold_id, **given)
        return _legal_hold_response(hold.id)


def archive_response(*, row: ExportRequest, stream: IO[Any]) -> FileResponse:
    response = FileResponse(stream, as_attachment=True, filename=f"holdpoint-export-{row.id}.zip")
    response["Content-Type"] = "application/zip"
    response["Cache-Control"] = "no-store"
    response["Repr-Digest"] = f"sha-256=:{b64encode(bytes.fromhex(row.sha256)).decode()}:"
    return response


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


class ExportIn(ReasonedIn):
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
        """That it was taken, and by whom, is on the ledger and in the read audit."""
        self.query(request)
        found = export_get(export_id=export_id)
        opened(self, request, subject_kind="export", subject_id=found.id, organization_id=found.organization_id)
        row, stream = export_open(
            actor=self.actor(request), at=timezone.now(), export_id=export_id, storage=storages["exports"]
        )
        return archive_response(row=row, stream=stream)
