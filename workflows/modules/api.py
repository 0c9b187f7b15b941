"""`/modules`: the services that do the work of steps. Registering and changing one is proposed to a second person;
disabling one works at once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.authority.api import WaitingOut, waiting
from governance.authority.services.changes import authority_act
from governance.people.rules.roles import AUDIT, ApiScope
from governance.people.selectors.people import organization_of
from reasoncodes.base.actors import Actor
from reasoncodes.base.api import ApiView, ReasonedIn, StrictSerializer
from workflows.modules.configured import module_private_hosts
from workflows.modules.models import Module, ModuleVersion
from workflows.modules.selectors import (
    module_accounts,
    module_get,
    module_list,
    module_terms,
    module_terms_of,
    module_versions,
)
from workflows.modules.services.registry import (
    TERMS,
    IssuedModule,
    module_account_bind,
    module_disable,
    module_secret_rotate,
    module_terms_check,
    terms_merged,
)
from workflows.modules.states import ModuleTransport

READ, READ_TOO = ApiScope.ORCHESTRATOR_READ, ApiScope.GOVERNANCE_READ
WRITE, WRITE_TOO = ApiScope.GOVERNANCE_WRITE, ApiScope.ORCHESTRATOR_PUBLISH
REGISTER, CHANGE = "module.register", "module.change"


class ModuleTermsOut(serializers.ModelSerializer[ModuleVersion]):
    transport = serializers.ChoiceField(choices=list(ModuleTransport))
    operations = serializers.DictField(child=serializers.DictField())
    publishes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ModuleVersion
        fields = ["number", "transport", "url", "operations", "publishes", "created_at"]


class ModuleOut(serializers.ModelSerializer[Module]):
    """With the terms of its newest version."""

    org_id = serializers.UUIDField(source="organization_id")
    status = serializers.SerializerMethodField(help_text="`active` or `disabled`.")
    transport = serializers.SerializerMethodField(help_text="`http` or `stream`.")
    url = serializers.SerializerMethodField()
    operations = serializers.SerializerMethodField(help_text="By name: effect, send, returns, method, path.")
    publishes = serializers.SerializerMethodField(help_text="Event types, beside the answers of its operations.")

    class Meta:
        model = Module
        fields = ["id", "org_id", "slug", "status", "version", "transport", "url", "operations", "publishes"]
        fields += ["created_at", "changed_at", "disabled_at"]

    def _terms(self, module: Module) -> ModuleVersion:
        known: dict[UUID, ModuleVersion] = self.context["terms"]
        return known[module.id]

    def get_status(self, module: Module) -> str:
        return "active" if module.active else "disabled"

    def get_transport(self, module: Module) -> str:
        return self._terms(module).transport

    def get_url(self, module: Module) -> str:
        return self._terms(module).url

    def get_operations(self, module: Module) -> dict[str, Any]:
        return dict(self._terms(module).operations)

    def get_publishes(self, module: Module) -> list[str]:
        return list(self._terms(module).publishes)


class IssuedModuleOut(ModuleOut):
    secret = serializers.SerializerMethodField(help_text="Shown in this answer and never again; null: none was made.")

    class Meta(ModuleOut.Meta):
        fields = [*ModuleOut.Meta.fields, "secret"]

    def get_secret(self, module: Module) -> str | None:
        return self.context["secret"] or None


class ModuleAccountOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    module = serializers.CharField()


class ModuleAccountsOut(serializers.Serializer[Any]):
    results = ModuleAccountOut(many=True)


class ModuleVersionsOut(serializers.Serializer[Any]):
    results = ModuleTermsOut(many=True)


class ModuleFilter(StrictSerializer):
    status = serializers.ChoiceField(choices=["active", "disabled"], required=False)
    transport = serializers.ChoiceField(choices=list(ModuleTransport), required=False)


class ModuleTermsIn(StrictSerializer):
    """The terms that change; what is left out stays."""

    transport = serializers.ChoiceField(choices=list(ModuleTransport), required=False)
    url = serializers.CharField(max_length=500, required=False, allow_blank=True, help_text="Of an http module.")
    operations = serializers.DictField(
        child=serializers.DictField(),
        required=False,
        help_text="By name: `effect` (none, idempotent, once), `send` and `returns` (JSON Schemas of closed objects), "
        "`method` and `path` over http. All of them are given: an operation that is left out is no longer offered.",
    )
    publishes = serializers.ListField(child=serializers.CharField(max_length=100), required=False)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class ModuleIn(ModuleTermsIn):
    slug = serializers.CharField(max_length=30)
    transport = serializers.ChoiceField(choices=list(ModuleTransport))
    org_id = serializers.UUIDField(required=False)


class ModuleRotateIn(StrictSerializer):
    overlap_hours = serializers.IntegerField(
        min_value=0, max_value=720, required=False, default=24, help_text="How long the old secret signs too."
    )


class ModuleAccountIn(StrictSerializer):
    service_account = serializers.CharField(max_length=64, help_text="Its id or slug.")


OPERATIONS = {
    "refund": {
        "effect": "once",
        "path": "/refunds",
        "send": {
            "type": "object",
            "additionalProperties": False,
            "required": ["order_ref", "amount_cents"],
            "properties": {
                "order_ref": {"type": "string", "maxLength": 64},
                "amount_cents": {"type": "integer", "minimum": 1},
            },
        },
        "returns": {
            "type": "object",
            "additionalProperties": False,
            "required": ["receipt_ref"],
            "properties": {"receipt_ref": {"type": "string", "maxLength": 64}},
        },
    }
}
REGISTERED = OpenApiExample(
    "A service that pays refunds",
    value={
        "slug": "payments",
        "transport": "http",
        "url": "https://payments.example/holdpoint",
        "operations": OPERATIONS,
        "publishes": [],
    },
    request_only=True,
)
MOVED = OpenApiExample(
    "It moved", value={"url": "https://payments-2.example/holdpoint", "note": "see CHG-12"}, request_only=True
)
BOUND = OpenApiExample("The account of its keys", value={"service_account": "payments-service"}, request_only=True)
ROTATED = OpenApiExample("Two days to change over", value={"overlap_hours": 48}, request_only=True)
DISABLED = OpenApiExample(
    "It was broken into", value={"reason_code": "incident_response", "note": "see INC-7"}, request_only=True
)


class ModuleView(ApiView):
    """Addresses may have a secret in their path: of people, operators and auditors read them."""

    people_permissions = {"GET": AUDIT}
    json_depth = 24


class ModuleListApi(ModuleView):
    required_scopes = {"GET": READ, "POST": WRITE}
    other_scopes = {"GET": (ApiScope.ORCHESTRATOR_WRITE, READ_TOO), "POST": WRITE_TOO}

    @extend_schema(operation_id="modules_list", parameters=[ModuleFilter], responses=ModuleOut(many=True))
    def get(self, request: Request) -> Response:
        given = self.query(request, ModuleFilter)
        wanted = given.get("status")
        rows = module_list(active=None if wanted is None else wanted == "active", transport=given.get("transport"))
        return self.page(request, rows, ModuleOut, terms=_Terms(rows))

    @extend_schema(
        operation_id="modules_register",
        request=ModuleIn,
        responses={201: IssuedModuleOut, 202: WaitingOut},
        examples=[REGISTERED],
    )
    def post(self, request: Request) -> Response:
        """202: proposed; a second person has to confirm it, and is shown the signing secret of an http module. 201: in
        force, while the organization is being founded."""
        self.query(request)
        given, actor = self.body(request, ModuleIn), self.actor(request)
        organization = organization_of(actor=actor, org_id=given.pop("org_id", None))
        slug, note = given.pop("slug"), given.pop("note")
        # Also checked when it is proposed; here with pointers into this body.
        module_terms_check(slug=slug, terms=given, private_hosts=module_private_hosts())
        return _done(actor, organization, REGISTER, slug, given, note, status.HTTP_201_CREATED)


class ModuleApi(ModuleView):
    required_scopes = {"GET": READ, "PATCH": WRITE}
    other_scopes = {"GET": READ_TOO, "PATCH": WRITE_TOO}

    @extend_schema(operation_id="modules_read", responses=ModuleOut)
    def get(self, request: Request, module_id: UUID) -> Response:
        self.query(request)
        return Response(_module_body(module_get(module_id=module_id)))

    @extend_schema(
        operation_id="modules_change",
        request=ModuleTermsIn,
        responses={200: IssuedModuleOut, 202: WaitingOut},
        examples=[MOVED],
    )
    def patch(self, request: Request, module_id: UUID) -> Response:
        """A new version, as a proposal. Published workflows keep the one that they were published with; a new address
        counts for all of them."""
        self.query(request)
        given, actor = self.body(request, ModuleTermsIn), self.actor(request)
        module, note = module_get(module_id=module_id), given.pop("note")
        merged = terms_merged(module_terms(module=module), given)
        module_terms_check(slug=module.slug, terms=merged, private_hosts=module_private_hosts())
        return _done(actor, module.organization, CHANGE, str(module.id), given, note, status.HTTP_200_OK)


class ModuleVersionListApi(ModuleView):
    required_scopes = {"GET": READ}
    other_scopes = {"GET": READ_TOO}
    one_page = True

    @extend_schema(operation_id="modules_versions", responses=ModuleVersionsOut)
    def get(self, request: Request, module_id: UUID) -> Response:
        """The newest hundred, newest first."""
        self.query(request)
        return Response(ModuleVersionsOut({"results": module_versions(module=module_get(module_id=module_id))}).data)


class ModuleDisableApi(ModuleView):
    required_scopes = {"POST": WRITE}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(operation_id="modules_disable", request=ReasonedIn, responses=ModuleOut, examples=[DISABLED])
    def post(self, request: Request, module_id: UUID) -> Response:
        """Works at once: nothing more is sent to it, and its keys are refused."""
        self.query(request)
        given = self.body(request, ReasonedIn)
        module = module_disable(actor=self.actor(request), at=timezone.now(), module_id=module_id, **given)
        return Response(_module_body(module))


class ModuleEnableApi(ModuleView):
    required_scopes = {"POST": WRITE}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(operation_id="modules_enable", request=None, responses={200: ModuleOut, 202: WaitingOut})
    def post(self, request: Request, module_id: UUID) -> Response:
        """Gives back what disabling took, so a second person confirms it."""
        self.query(request)
        module = module_get(module_id=module_id)
        actor = self.actor(request)
        return _done(actor, module.organization, CHANGE, str(module.id), {"enable": True}, "", status.HTTP_200_OK)


class ModuleRotateApi(ModuleView):
    required_scopes = {"POST": WRITE}
    other_scopes = {"POST": WRITE_TOO}

    @extend_schema(
        operation_id="modules_rotate_secret", request=ModuleRotateIn, responses=IssuedModuleOut, examples=[ROTATED]
    )
    def post(self, request: Request, module_id: UUID) -> Response:
        """The answer has the new secret, this once."""
        self.query(request)
        overlap = timedelta(hours=self.body(request, ModuleRotateIn)["overlap_hours"])
        made = module_secret_rotate(actor=self.actor(request), at=timezone.now(), module_id=module_id, overlap=overlap)
        return Response(_issued_body(made))


class ModuleAccountListApi(ModuleView):
    required_scopes = {"GET": READ, "POST": WRITE}
    other_scopes = {"GET": READ_TOO, "POST": WRITE_TOO}
    one_page = True

    @extend_schema(operation_id="modules_accounts", responses=ModuleAccountsOut)
    def get(self, request: Request, module_id: UUID) -> Response:
        """The service accounts that are bound to it."""
        self.query(request)
        return Response(ModuleAccountsOut({"results": module_accounts(module=module_get(module_id=module_id))}).data)

    @extend_schema(
        operation_id="modules_bind_account", request=ModuleAccountIn, responses=ModuleAccountOut, examples=[BOUND]
    )
    def post(self, request: Request, module_id: UUID) -> Response:
        """From now on the keys of this service account can do only what the module may."""
        self.query(request)
        account = self.body(request, ModuleAccountIn)["service_account"]
        bound = module_account_bind(actor=self.actor(request), at=timezone.now(), module_id=module_id, account=account)
        return Response(ModuleAccountOut(bound).data)


class ModuleAccountApi(ModuleView):
    required_scopes = {"DELETE": WRITE}
    other_scopes = {"DELETE": WRITE_TOO}

    @extend_schema(operation_id="modules_release_account", responses={200: ModuleOut, 202: WaitingOut})
    def delete(self, request: Request, module_id: UUID, account_id: UUID) -> Response:
        """Releases the account. That gives its keys more than they have, so a second person confirms it."""
        self.query(request)
        module, details = module_get(module_id=module_id), {"release": str(account_id)}
        actor = self.actor(request)
        return _done(actor, module.organization, CHANGE, str(module.id), details, "", status.HTTP_200_OK)


class _Terms(dict[UUID, ModuleVersion]):
    """The newest versions of a page, read when the first one is asked for."""

    def __init__(self, rows: "QuerySet[Module]") -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, module_id: UUID) -> ModuleVersion:
        self.update(module_terms_of(modules=list(self._rows)))
        return self[module_id]


def _module_body(module: Module) -> dict[str, Any]:
    return dict(ModuleOut(module, context={"terms": {module.id: module_terms(module=module)}}).data)


def _issued_body(made: IssuedModule) -> dict[str, Any]:
    terms = {made.module.id: module_terms(module=made.module)}
    return dict(IssuedModuleOut(made.module, context={"terms": terms, "secret": made.secret}).data)


def _done(
    actor: Actor, organization: Any, kind: str, subject: str, details: dict[str, Any], note: str, code: int
) -> Response:
    outcome = authority_act(
        actor=actor,
        at=timezone.now(),
        organization=organization,
        kind=kind,
        subject=subject,
        details={name: details[name] for name in (*TERMS, "enable", "release") if name in details},
        note=note,
    )
    if outcome.applied is None:
        return waiting(outcome)
    made = outcome.applied.made
    return Response(_issued_body(made) if isinstance(made, IssuedModule) else _module_body(made), status=code)


ONE = "modules/<uuid:module_id>"
urlpatterns = [
    path("modules", ModuleListApi.as_view(), name="module_list"),
    path(ONE, ModuleApi.as_view(), name="module"),
    path(f"{ONE}/versions", ModuleVersionListApi.as_view(), name="module_versions"),
    path(f"{ONE}/disable", ModuleDisableApi.as_view(), name="module_disable"),
    path(f"{ONE}/enable", ModuleEnableApi.as_view(), name="module_enable"),
    path(f"{ONE}/rotate-secret", ModuleRotateApi.as_view(), name="module_rotate"),
    path(f"{ONE}/accounts", ModuleAccountListApi.as_view(), name="module_accounts"),
    path(f"{ONE}/accounts/<uuid:account_id>", ModuleAccountApi.as_view(), name="module_account"),
]
