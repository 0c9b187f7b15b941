"""`/violations`: the recorded violations, read-only."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from governance.violations.models import GovernanceViolation
from governance.violations.selectors import violation_list
from governance.violations.states import ViolationKind
from reasoncodes.base.api import ApiView, StrictSerializer


class ViolationOut(serializers.ModelSerializer[GovernanceViolation]):
    class Meta:
        model = GovernanceViolation
        fields = ["id", "kind", "actor_kind", "actor_ref", "subject_type", "subject_id", "detail", "at"]


class ViolationFilter(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(ViolationKind), required=False)


class ViolationListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="violations_list", parameters=[ViolationFilter], responses=ViolationOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, violation_list(**self.query(request, ViolationFilter)), ViolationOut)
