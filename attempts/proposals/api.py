"""`/shutdown-proposals`: contracts that failed so often that their rules ask operators to stop them."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.proposals.models import ShutdownProposal
from attempts.proposals.selectors import proposal_get, proposal_list
from attempts.proposals.services import proposal_dismiss, proposal_engage
from governance.people.rules.roles import ApiScope
from governance.shutdown.api import ShutdownOut
from reasoncodes.base.api import ApiView, StrictSerializer

OPEN = "open"


class ProposalOut(serializers.ModelSerializer[ShutdownProposal]):
    contract_id = serializers.UUIDField()
    contract = serializers.CharField()
    state = serializers.SerializerMethodField()
    shutdown_id = serializers.SerializerMethodField()

    class Meta:
        model = ShutdownProposal
        fields = ["id", "state", "contract_id", "contract", "after", "window_seconds", "evidence", "at", "shutdown_id"]

    def get_state(self, row: ShutdownProposal) -> str:
        return row.answer.verdict if hasattr(row, "answer") else OPEN

    def get_shutdown_id(self, row: ShutdownProposal) -> str | None:
        found = row.answer.shutdown_id if hasattr(row, "answer") else None
        return str(found) if found else None


class ProposalFilter(StrictSerializer):
    open = serializers.BooleanField(required=False)


class DismissIn(StrictSerializer):
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class ProposalListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(
        operation_id="shutdown_proposals_list", parameters=[ProposalFilter], responses=ProposalOut(many=True)
    )
    def get(self, request: Request) -> Response:
        asked = self.query(request, ProposalFilter)
        return self.page(request, proposal_list(is_open=asked.get("open")), ProposalOut)


class ProposalApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="shutdown_proposals_read", responses=ProposalOut)
    def get(self, request: Request, proposal_id: UUID) -> Response:
        self.query(request)
        return Response(ProposalOut(proposal_get(proposal_id=proposal_id)).data)


class ProposalEngageApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(operation_id="shutdown_proposals_engage", request=None, responses={201: ShutdownOut})
    def post(self, request: Request, proposal_id: UUID) -> Response:
        """Engages the shutdown that is proposed."""
        shutdown = proposal_engage(actor=self.actor(request), at=timezone.now(), proposal_id=proposal_id)
        return Response(ShutdownOut(shutdown).data, status=status.HTTP_201_CREATED)


class ProposalDismissApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(
        operation_id="shutdown_proposals_dismiss",
        request=DismissIn,
        responses=ProposalOut,
        examples=[OpenApiExample("It is known", value={"note": "The receiver is back"}, request_only=True)],
    )
    def post(self, request: Request, proposal_id: UUID) -> Response:
        fields: dict[str, Any] = self.body(request, DismissIn)
        proposal_dismiss(actor=self.actor(request), at=timezone.now(), proposal_id=proposal_id, **fields)
        return Response(ProposalOut(proposal_get(proposal_id=proposal_id)).data)


urlpatterns = [
    path("shutdown-proposals", ProposalListApi.as_view(), name="shutdown_proposal_list"),
    path("shutdown-proposals/<uuid:proposal_id>", ProposalApi.as_view(), name="shutdown_proposal"),
    path("shutdown-proposals/<uuid:proposal_id>/engage", ProposalEngageApi.as_view(), name="shutdown_proposal_engage"),
    path(
        "shutdown-proposals/<uuid:proposal_id>/dismiss", ProposalDismissApi.as_view(), name="shutdown_proposal_dismiss"
    ),
]
