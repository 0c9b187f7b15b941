"""`/delegations`: who stands in for whom. Reviewers see their own, operators and auditors those of the organization."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.reviews.models import Delegation
from attempts.reviews.selectors.delegations import GIVEN, RECEIVED, delegation_list, tiers_to_delegate
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.services.delegate import AWAY, Cover, delegation_create, delegation_end
from attempts.reviews.states import DelegationEnd, DelegationState
from governance.people.rules.roles import VIEW, ApiScope
from governance.people.selectors.people import organization_of
from reasoncodes.base.api import ApiView, EmptyQuery, StrictSerializer


class DelegationOut(serializers.ModelSerializer[Delegation]):
    org_id = serializers.UUIDField(source="organization_id")
    from_username = serializers.CharField(source="from_user.username")
    to_username = serializers.CharField(source="to_user.username")
    state = serializers.SerializerMethodField()
    ended_by = serializers.CharField(source="ended_by.username", default=None, allow_null=True)
    end_cause = serializers.ChoiceField(choices=["", *DelegationEnd], help_text="Empty until it has ended.")

    class Meta:
        model = Delegation
        fields = [
            "id",
            "org_id",
            "tier",
            "from_username",
            "to_username",
            "reason_code",
            "state",
            "starts_at",
            "ends_at",
            "ended_at",
            "ended_by",
            "end_cause",
            "created_at",
        ]

    def get_state(self, row: Delegation) -> DelegationState:
        return row.state_at(self.context["now"])


class DelegationFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(DelegationState), required=False)
    direction = serializers.ChoiceField(
        choices=[GIVEN, RECEIVED], required=False, help_text="Given by you, or received by you."
    )
    tier = serializers.CharField(max_length=63, required=False)


class DelegationIn(StrictSerializer):
    org_id = serializers.UUIDField(required=False)
    tier = serializers.CharField(max_length=63)
    to_username = serializers.CharField(max_length=150, help_text="One of the candidates of this tier.")
    reason_code = serializers.CharField(max_length=64, help_text="A reason code of the scope `delegation`.")
    starts_at = serializers.DateTimeField(required=False, help_text="At once, if left out.")
    ends_at = serializers.DateTimeField(help_text="At most 14 days after the beginning.")


class CandidatesOut(serializers.Serializer[Any]):
    org_id = serializers.UUIDField(source="organization.id")
    tier = serializers.CharField()
    usernames = serializers.ListField(
        child=serializers.CharField(), source="people", help_text="Who has the tier too and is not away."
    )
    delegated = serializers.BooleanField(source="taken", help_text="You have delegated it already.")


A_WEEK = OpenApiExample(
    "A week off",
    value={
        "tier": "finance",
        "to_username": "sam",
        "reason_code": AWAY,
        "starts_at": "2027-03-01T08:00:00Z",
        "ends_at": "2027-03-08T08:00:00Z",
    },
    request_only=True,
)


class DelegationView(ApiView):
    """Only people: a service neither stands in for somebody nor sends anybody."""

    required_scopes = {"GET": ApiScope.REVIEWS_DECIDE, "POST": ApiScope.REVIEWS_DECIDE}
    # The permission to view is enough here. The services check roles inside their transactions and record a refusal.
    people_permissions = {"GET": VIEW, "POST": VIEW}
    services_allowed = False

    @staticmethod
    def shown(delegation: Delegation) -> dict[str, Any]:
        return dict(DelegationOut(delegation, context={"now": database_now()}).data)


class DelegationListApi(DelegationView):
    @extend_schema(operation_id="delegations_list", parameters=[DelegationFilter], responses=DelegationOut(many=True))
    def get(self, request: Request) -> Response:
        now = database_now()
        rows = delegation_list(actor=self.actor(request), now=now, **self.query(request, DelegationFilter))
        return self.page(request, rows, DelegationOut, now=now)

    @extend_schema(
        operation_id="delegations_create", request=DelegationIn, responses={201: DelegationOut}, examples=[A_WEEK]
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, DelegationIn)
        actor = self.actor(request)
        organization = organization_of(actor=actor, org_id=fields.pop("org_id", None))
        made = delegation_create(actor=actor, at=timezone.now(), organization=organization, cover=Cover(**fields))
        return Response(self.shown(made), status=status.HTTP_201_CREATED)


class DelegationCandidatesApi(DelegationView):
    one_page = True
    required_scopes = {"GET": ApiScope.REVIEWS_DECIDE}

    @extend_schema(operation_id="delegations_candidates", responses=CandidatesOut(many=True))
    def get(self, request: Request) -> Response:
        """Your tiers, each with the people to whom you can delegate it."""
        self.query(request)
        actor = self.actor(request)
        found = tiers_to_delegate(person=actor.id, organization_ids=actor.organization_ids) if actor.id else []
        return Response({"next": None, "previous": None, "results": CandidatesOut(found, many=True).data})


class DelegationEndApi(DelegationView):
    required_scopes = {"POST": ApiScope.REVIEWS_DECIDE}

    @extend_schema(operation_id="delegations_end", request=None, responses=DelegationOut)
    def post(self, request: Request, delegation_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        ended = delegation_end(actor=self.actor(request), at=timezone.now(), delegation_id=delegation_id)
        return Response(self.shown(ended))


urlpatterns = [
    path("delegations", DelegationListApi.as_view(), name="delegation_list"),
    path("delegations/candidates", DelegationCandidatesApi.as_view(), name="delegation_candidates"),
    path("delegations/<uuid:delegation_id>/end", DelegationEndApi.as_view(), name="delegation_end"),
]
