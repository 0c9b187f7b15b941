"""`/identity-providers`: read them, propose a new one or a change, disconnect one, close its SCIM connection."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.authority.api import AuthorityRefOut, ProposedOut
from governance.authority.services.changes import authority_act
from governance.identity.models import IdentityProvider
from governance.identity.selectors import provider_list
from governance.identity.services.providers import identity_provider_disable, scim_close
from governance.identity.states import ProviderKind
from governance.people.rules.roles import AUDIT, OPERATE, ApiScope
from governance.people.selectors.people import organization_of
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.api import ApiView, EmptyQuery, ReasonedIn, StrictSerializer
from reasoncodes.base.tenancy import tenant_scope

KIND = "identity_provider.change"


class IdentityProviderOut(serializers.ModelSerializer[IdentityProvider]):
    organization_id = serializers.UUIDField()
    scim = serializers.SerializerMethodField(help_text="The visible part of the SCIM token; null while it is closed.")
    has_secret = serializers.SerializerMethodField(help_text="Whether a client secret is stored.")

    class Meta:
        model = IdentityProvider
        fields = [
            "id",
            "organization_id",
            "slug",
            "kind",
            "active",
            "issuer",
            "client_id",
            "sso_url",
            "certificate",
            "subject_claim",
            "roles_claim",
            "mapping",
            "create_on_first_sign_in",
            "required",
            "scim",
            "has_secret",
            "created_at",
            "changed_at",
        ]

    def get_scim(self, provider: IdentityProvider) -> str | None:
        return provider.scim_prefix or None

    def get_has_secret(self, provider: IdentityProvider) -> bool:
        return bool(provider.secret_sealed)


class ProviderProposedOut(ProposedOut):
    authority_change = AuthorityRefOut(source="*")

    class Meta(ProposedOut.Meta):
        fields = [*ProposedOut.Meta.fields, "authority_change"]


class TermsIn(StrictSerializer):
    """The terms that change; what is left out stays."""

    issuer = serializers.CharField(max_length=255, required=False)
    client_id = serializers.CharField(max_length=191, required=False, allow_blank=True)
    sso_url = serializers.CharField(max_length=255, required=False, allow_blank=True)
    certificate = serializers.CharField(max_length=8192, required=False, allow_blank=True)
    subject_claim = serializers.CharField(max_length=120, required=False, allow_blank=True)
    roles_claim = serializers.CharField(max_length=120, required=False)
    mapping = serializers.DictField(child=serializers.ListField(child=serializers.CharField()), required=False)
    create_on_first_sign_in = serializers.BooleanField(required=False)
    required = serializers.BooleanField(required=False)  # type: ignore[assignment]  # a field, not an option of this one
    client_secret = serializers.CharField(max_length=500, required=False)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class ProviderIn(TermsIn):
    slug = serializers.CharField(max_length=63)
    kind = serializers.ChoiceField(choices=list(ProviderKind))
    org_id = serializers.UUIDField(required=False)


CONNECT = OpenApiExample(
    "An OIDC provider whose group gives the reviewer's role",
    value={
        "slug": "clinic-login",
        "kind": "oidc",
        "issuer": "https://login.clinic.example",
        "client_id": "holdpoint",
        "client_secret": "from the provider",
        "mapping": {"holdpoint-reviewers": ["reviewer:finance"]},
    },
    request_only=True,
)
REMAP = OpenApiExample(
    "Another group gives the role",
    value={"mapping": {"holdpoint-night-shift": ["reviewer:finance"]}},
    request_only=True,
)
DISCONNECT = OpenApiExample(
    "The provider was broken into",
    value={"reason_code": "incident_response", "note": "see INC-7"},
    request_only=True,
)


class IdentityProviderListApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "POST": ApiScope.GOVERNANCE_WRITE}
    people_permissions = {"GET": AUDIT, "POST": OPERATE}

    @extend_schema(operation_id="identity_providers_list", responses=IdentityProviderOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, provider_list(), IdentityProviderOut)

    @extend_schema(
        operation_id="identity_providers_create",
        request=ProviderIn,
        responses={202: ProviderProposedOut},
        examples=[CONNECT],
    )
    def post(self, request: Request) -> Response:
        """Proposes it: a second person confirms before anybody can sign in by it."""
        given, actor = self.body(request, ProviderIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=given.pop("org_id", None))
        slug, note, kind = given.pop("slug"), given.pop("note"), given.pop("kind")
        details = _details("create", given) | {"kind": kind}
        return _proposed(actor, organization, slug, details, note)


class IdentityProviderApi(ApiView):
    required_scopes = {"GET": ApiScope.GOVERNANCE_READ, "PATCH": ApiScope.GOVERNANCE_WRITE}
    people_permissions = {"GET": AUDIT, "PATCH": OPERATE}

    @extend_schema(operation_id="identity_providers_read", responses=IdentityProviderOut)
    def get(self, request: Request, provider_id: UUID) -> Response:
        self.query(request)
        return Response(IdentityProviderOut(tenant_get(IdentityProvider, provider_id)).data)

    @extend_schema(
        operation_id="identity_providers_change",
        request=TermsIn,
        responses={202: ProviderProposedOut},
        examples=[REMAP],
    )
    def patch(self, request: Request, provider_id: UUID) -> Response:
        given, actor = self.body(request, TermsIn), self.actor(request)
        provider = tenant_get(IdentityProvider, provider_id)
        note = given.pop("note")
        return _proposed(actor, provider.organization, str(provider.id), _details("change", given), note)


class IdentityProviderDisableApi(ApiView):
    """Takes away, so one person is enough."""

    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(
        operation_id="identity_providers_disable",
        request=ReasonedIn,
        responses=IdentityProviderOut,
        examples=[DISCONNECT],
    )
    def post(self, request: Request, provider_id: UUID) -> Response:
        tenant_get(IdentityProvider, provider_id)
        given = self.body(request, ReasonedIn)
        provider = identity_provider_disable(
            actor=self.actor(request), at=timezone.now(), provider_id=provider_id, **given
        )
        return Response(IdentityProviderOut(provider).data)


class ScimTokenApi(ApiView):
    required_scopes = {"POST": ApiScope.GOVERNANCE_WRITE, "DELETE": ApiScope.GOVERNANCE_WRITE}
    services_allowed = False

    @extend_schema(operation_id="identity_providers_scim_open", request=None, responses={202: ProviderProposedOut})
    def post(self, request: Request, provider_id: UUID) -> Response:
        """Shows a new token once, and proposes it. It works when a second person has confirmed it."""
        self.body(request, EmptyQuery)
        provider = tenant_get(IdentityProvider, provider_id)
        details = {"act": "open_scim"}
        return _proposed(self.actor(request), provider.organization, str(provider.id), details, "")

    @extend_schema(operation_id="identity_providers_scim_close", responses={204: None})
    def delete(self, request: Request, provider_id: UUID) -> Response:
        tenant_get(IdentityProvider, provider_id)
        scim_close(actor=self.actor(request), at=timezone.now(), provider_id=provider_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _details(act: str, given: dict[str, Any]) -> dict[str, Any]:
    secret = given.pop("client_secret", "")
    return {"act": act, "terms": given} | ({"client_secret": secret} if secret else {})


def _proposed(actor: Any, organization: Any, subject: str, details: dict[str, Any], note: str) -> Response:
    outcome = authority_act(
        actor=actor,
        at=timezone.now(),
        organization=organization,
        kind=KIND,
        subject=subject,
        details=details,
        note=note,
    )
    with tenant_scope([organization.id]):
        body = ProviderProposedOut(outcome.change, context={"once": outcome.once}).data
    return Response(body, status=status.HTTP_202_ACCEPTED)


PROVIDER = "identity-providers/<uuid:provider_id>"
urlpatterns = [
    path("identity-providers", IdentityProviderListApi.as_view(), name="identity_provider_list"),
    path(PROVIDER, IdentityProviderApi.as_view(), name="identity_provider"),
    path(f"{PROVIDER}/disable", IdentityProviderDisableApi.as_view(), name="identity_provider_disable"),
    path(f"{PROVIDER}/scim-token", ScimTokenApi.as_view(), name="identity_provider_scim_token"),
]
