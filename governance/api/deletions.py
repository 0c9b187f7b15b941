"""`/deletions`: somebody asks that a context reference or a person is forgotten; somebody else decides."""

from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.legal_holds import BecauseIn
from governance.models import DeletionRequest
from governance.roles import AUDIT, ApiScope
from governance.selectors import organization_of
from governance.selectors.retention import deletion_get, deletion_list
from governance.services.deletion import deletion_accept, deletion_refuse, deletion_request
from governance.states import DeletionState
from reasoncodes.api.conventions import ApiView, StrictSerializer


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


def shown(deletion_id: UUID, code: int = status.HTTP_200_OK) -> Response:
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
        return shown(row.id, status.HTTP_201_CREATED)


class DeletionApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    people_permissions = {"GET": AUDIT}

    @extend_schema(operation_id="deletions_read", responses=DeletionOut)
    def get(self, request: Request, deletion_id: UUID) -> Response:
        self.query(request)
        return shown(deletion_id)


class DeletionAcceptApi(ApiView):
    """Only people decide, and not whoever asked."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="deletions_accept", request=BecauseIn, responses=DeletionOut, examples=[ACCEPT])
    def post(self, request: Request, deletion_id: UUID) -> Response:
        self.query(request)
        given = self.body(request, BecauseIn)
        row = deletion_accept(actor=self.actor(request), at=timezone.now(), deletion_id=deletion_id, **given)
        return shown(row.id)


class DeletionRefuseApi(ApiView):
    """Only people decide, and not whoever asked; the reason must be a lawful one."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="deletions_refuse", request=BecauseIn, responses=DeletionOut, examples=[REFUSE])
    def post(self, request: Request, deletion_id: UUID) -> Response:
        self.query(request)
        given = self.body(request, BecauseIn)
        row = deletion_refuse(actor=self.actor(request), at=timezone.now(), deletion_id=deletion_id, **given)
        return shown(row.id)
