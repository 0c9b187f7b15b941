"""`/contracts/{id}/readiness`: the ten areas, and their owners' decisions. Only people decide."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.contracts.rules.documents import AREAS
from governance.contracts.rules.readiness import AreaStatus
from governance.contracts.selectors import contract_get, readiness_board
from governance.contracts.services.approvers import readiness_approvers
from governance.contracts.services.readiness import readiness_decide
from governance.contracts.states import ReadinessVerdict
from governance.people.rules.roles import VIEW, ApiScope
from governance.people.selectors.people import people_behind
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.errors import NotFound


class AreaOut(serializers.Serializer[AreaStatus]):
    area = serializers.CharField()
    title = serializers.CharField()
    owner_group = serializers.CharField()
    status = serializers.ChoiceField(choices=["pending", "approved", "rejected", "revoked", "stale"])
    document = serializers.JSONField()
    document_sha256 = serializers.CharField()
    decided_by = serializers.SerializerMethodField()
    decided_at = serializers.DateTimeField(source="decision.at", default=None, allow_null=True)
    rationale = serializers.CharField(source="decision.rationale", default=None, allow_null=True)
    evidence_ref = serializers.CharField(source="decision.evidence_ref", default=None, allow_null=True)
    carried_over = serializers.SerializerMethodField()

    def get_decided_by(self, row: AreaStatus) -> str | None:
        names: dict[str, str] = self.context["people"]
        return names.get(row.decision.decided_by_ref, "erased") if row.decision else None

    def get_carried_over(self, row: AreaStatus) -> bool:
        return row.decision is not None and row.decision.carried_from_id is not None


class ApproversOut(serializers.Serializer[Any]):
    """By how many different people the areas are approved, and how many are needed to open the contract."""

    count = serializers.IntegerField()
    needed = serializers.IntegerField()
    enough = serializers.BooleanField()
    founding = serializers.BooleanField(help_text="The organization is being founded: one person is enough.")


class BoardOut(serializers.Serializer[Any]):
    areas = AreaOut(many=True)
    approvers = ApproversOut()


class DecideIn(StrictSerializer):
    rationale = serializers.CharField(max_length=280)
    evidence_ref = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")


EXAMPLE = OpenApiExample(
    "A decision", value={"rationale": "Reviewed in the weekly board", "evidence_ref": "doc-4711"}, request_only=True
)


def _board_json(contract_id: UUID) -> dict[str, Any]:
    contract = contract_get(contract_id=contract_id)
    rows = readiness_board(contract=contract)
    people = people_behind(commitments={row.decision.decided_by_ref for row in rows if row.decision})
    found = readiness_approvers(contract=contract, rows=rows)
    return {
        "areas": [AreaOut(row, context={"people": people}).data for row in rows],
        "approvers": {
            "count": found.count,
            "needed": found.needed,
            "enough": found.enough,
            "founding": found.founding,
        },
    }


class ReadinessApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="readiness_read", responses=BoardOut)
    def get(self, request: Request, contract_id: UUID) -> Response:
        self.query(request)
        return Response(_board_json(contract_id))


class ReadinessDecideApi(ApiView):
    """One class for the three verdicts: they differ in one word of the address."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    # The permission to view is enough here. The service checks the owner's role inside its transaction and records a
    # refusal as a violation; a refusal here would not be recorded.
    people_permissions = {"POST": VIEW}
    services_allowed = False

    @extend_schema(operation_id="readiness_decide", request=DecideIn, responses=BoardOut, examples=[EXAMPLE])
    def post(self, request: Request, contract_id: UUID, area: str, verdict: str) -> Response:
        if area not in {known.name for known in AREAS} or verdict not in set(ReadinessVerdict):
            raise NotFound
        readiness_decide(
            actor=self.actor(request),
            at=timezone.now(),
            contract_id=contract_id,
            area=area,
            verdict=ReadinessVerdict(verdict),
            **self.body(request, DecideIn),
        )
        return Response(_board_json(contract_id))
