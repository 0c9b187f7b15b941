"""`/authority-changes`: propose what widens authority, and confirm, decline or withdraw it. Also the table of acts that
need two people, and the answer of entry points that propose instead of acting."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.authority.hooks import kinds_registered
from governance.authority.models import AuthorityChange
from governance.authority.rules import ACTS
from governance.authority.selectors import authority_get, authority_list
from governance.authority.services.changes import (
    Outcome,
    authority_act,
    authority_confirm,
    authority_decline,
    authority_withdraw,
)
from governance.authority.states import AuthorityState
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from governance.people.web.accounts import authenticated_at
from reasoncodes.base.api import ApiView, EmptyQuery, StrictSerializer
from reasoncodes.base.tenancy import tenant_scope


class AuthorityChangeOut(serializers.ModelSerializer[AuthorityChange]):
    organization_id = serializers.UUIDField()
    proposed_by = serializers.CharField(source="proposed_by.username", allow_null=True)
    proposed_through = serializers.CharField(source="proposed_through.slug", default=None, allow_null=True)
    decided_by = serializers.CharField(source="decided_by.username", default=None, allow_null=True)
    note = serializers.CharField(source="note.text", default=None, allow_null=True)
    details = serializers.SerializerMethodField()

    class Meta:
        model = AuthorityChange
        fields = [
            "id",
            "organization_id",
            "kind",
            "subject",
            "details",
            "before",
            "after",
            "loosens",
            "state",
            "founding",
            "proposed_by",
            "proposed_through",
            "proposed_at",
            "expires_at",
            "decided_by",
            "decided_at",
            "note",
            "result",
        ]

    def get_details(self, change: AuthorityChange) -> dict[str, Any]:
        """Without the hashes of a key that waits."""
        return {name: value for name, value in change.details.items() if name != "key"}


class ProposedOut(AuthorityChangeOut):
    secret = serializers.SerializerMethodField(
        help_text="Shown once, to whoever proposed or confirmed: a key, or a link. Null if there is none."
    )

    class Meta(AuthorityChangeOut.Meta):
        fields = [*AuthorityChangeOut.Meta.fields, "secret"]

    def get_secret(self, change: AuthorityChange) -> str | None:
        return self.context.get("once") or None


class AuthorityFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(AuthorityState), required=False)
    kind = serializers.ChoiceField(choices=sorted(ACTS), required=False)


class ProposeIn(StrictSerializer):
    kind = serializers.ChoiceField(choices=sorted(ACTS))
    subject = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    details = serializers.DictField(required=False, default=dict)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")
    org_id = serializers.UUIDField(required=False)


class ActRuleOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    title = serializers.CharField()
    why = serializers.CharField()
    takes_away = serializers.CharField(help_text="The opposite, which one person does at once.")
    installation = serializers.BooleanField(help_text="Only in the organization that runs the installation.")


class ActTableOut(serializers.Serializer[Any]):
    acts = ActRuleOut(many=True)


class AuthorityRefOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.CharField()


class WaitingOut(serializers.Serializer[Any]):
    """What an entry point answers (202) when its act waits for a second person."""

    authority_change = AuthorityRefOut()


PROPOSE = OpenApiExample(
    "A new auditor",
    value={"kind": "person.create", "subject": "nina", "details": {"roles": ["auditor"]}},
    request_only=True,
)


def waiting(outcome: Outcome) -> Response:
    """202: nothing is in force yet."""
    change = outcome.change
    body = WaitingOut({"authority_change": {"id": change.id, "state": change.state}}).data
    return Response(body, status=status.HTTP_202_ACCEPTED)


class AuthorityListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(
        operation_id="authority_changes_list",
        parameters=[AuthorityFilter],
        responses=AuthorityChangeOut(many=True),
    )
    def get(self, request: Request) -> Response:
        return self.page(request, authority_list(**self.query(request, AuthorityFilter)), AuthorityChangeOut)

    @extend_schema(
        operation_id="authority_changes_create",
        request=ProposeIn,
        responses={201: ProposedOut},
        examples=[PROPOSE],
    )
    def post(self, request: Request) -> Response:
        given, actor = self.body(request, ProposeIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=given.pop("org_id", None))
        outcome = authority_act(actor=actor, at=timezone.now(), organization=organization, **given)
        return _answer(outcome, status.HTTP_201_CREATED)


class AuthorityApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}

    @extend_schema(operation_id="authority_changes_read", responses=AuthorityChangeOut)
    def get(self, request: Request, change_id: UUID) -> Response:
        self.query(request)
        return Response(AuthorityChangeOut(authority_get(change_id=change_id)).data)


class AuthorityConfirmApi(ApiView):
    """Only people, freshly signed in."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="authority_changes_confirm", request=None, responses=ProposedOut)
    def post(self, request: Request, change_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        outcome = authority_confirm(
            actor=self.actor(request),
            at=timezone.now(),
            change_id=change_id,
            authenticated_at=authenticated_at(request),
        )
        return _answer(outcome, status.HTTP_200_OK)


class AuthorityDeclineApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="authority_changes_decline", request=None, responses=AuthorityChangeOut)
    def post(self, request: Request, change_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        change = authority_decline(actor=self.actor(request), at=timezone.now(), change_id=change_id)
        return Response(AuthorityChangeOut(change).data)


class AuthorityWithdrawApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}

    @extend_schema(operation_id="authority_changes_withdraw", request=None, responses=AuthorityChangeOut)
    def post(self, request: Request, change_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        change = authority_withdraw(actor=self.actor(request), at=timezone.now(), change_id=change_id)
        return Response(AuthorityChangeOut(change).data)


class AuthorityActsApi(ApiView):
    """The table of acts that need two people."""

    required_scopes = {"GET": ApiScope.GOVERNANCE_READ}
    one_page = True

    @extend_schema(operation_id="authority_acts_read", responses=ActTableOut)
    def get(self, request: Request) -> Response:
        self.query(request)
        known = kinds_registered()
        return Response(ActTableOut({"acts": [rule for rule in ACTS.values() if rule.kind in known]}).data)


def _answer(outcome: Outcome, code: int) -> Response:
    with tenant_scope([outcome.change.organization_id]):
        return Response(ProposedOut(outcome.change, context={"once": outcome.once}).data, status=code)


CHANGE = "authority-changes/<uuid:change_id>"
urlpatterns = [
    path("authority-changes", AuthorityListApi.as_view(), name="authority_change_list"),
    path("authority-changes/acts", AuthorityActsApi.as_view(), name="authority_acts"),
    path(CHANGE, AuthorityApi.as_view(), name="authority_change"),
    path(f"{CHANGE}/confirm", AuthorityConfirmApi.as_view(), name="authority_change_confirm"),
    path(f"{CHANGE}/decline", AuthorityDeclineApi.as_view(), name="authority_change_decline"),
    path(f"{CHANGE}/withdraw", AuthorityWithdrawApi.as_view(), name="authority_change_withdraw"),
]
