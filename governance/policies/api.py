"""`/policies`: drafts, validation, publishing, archiving, and simulation with stored decisions."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.authority.api import WaitingOut, waiting
from governance.authority.services.changes import authority_act
from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from governance.policies.models import Policy
from governance.policies.selectors import policy_get, policy_list
from governance.policies.services import (
    DecisionChange,
    DecisionTally,
    policy_archive,
    policy_change,
    policy_create,
    policy_problems,
    policy_simulate,
)
from governance.policies.states import PolicyState
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.tenancy import tenant_scope

SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
READ = ApiScope.GOVERNANCE_READ
WRITE = ApiScope.GOVERNANCE_WRITE
NDJSON = "application/x-ndjson"
LISTED_CHANGES = 200


class PolicyOut(serializers.ModelSerializer[Policy]):
    organization_id = serializers.UUIDField()

    class Meta:
        model = Policy
        fields = [
            "id",
            "organization_id",
            "slug",
            "version",
            "title",
            "rules",
            "state",
            "snapshot_sha256",
            "created_at",
            "published_at",
        ]


class PolicyFilter(StrictSerializer):
    slug = serializers.CharField(max_length=63, required=False)
    state = serializers.ChoiceField(choices=list(PolicyState), required=False)


class PolicyPatchIn(StrictSerializer):
    title = serializers.CharField(max_length=120, required=False)
    rules = serializers.ListField(child=serializers.DictField(), max_length=200, required=False)


class PolicyCreateIn(StrictSerializer):
    slug = serializers.RegexField(SLUG)
    title = serializers.CharField(max_length=120)
    rules = serializers.ListField(child=serializers.DictField(), max_length=200)
    org_id = serializers.UUIDField(required=False)


class SimulateIn(StrictSerializer):
    last = serializers.IntegerField(min_value=1, max_value=1_000_000, default=1000)


class ProblemsOut(serializers.Serializer[Any]):
    problems = serializers.ListField(child=serializers.DictField())


class SimulationOut(serializers.Serializer[Any]):
    decided = serializers.IntegerField()
    changed = serializers.IntegerField()
    unreadable = serializers.IntegerField(help_text="Decisions whose snapshots are gone or altered.")
    loosened = serializers.IntegerField(help_text="Decisions that would pass, or pass more easily.")
    by_move = serializers.DictField(child=serializers.IntegerField())
    by_rule = serializers.DictField(child=serializers.IntegerField())
    changes = serializers.ListField(child=serializers.DictField(), help_text="The first 200; all of them as NDJSON.")


EXAMPLE = OpenApiExample(
    "Low risk passes, the rest is held",
    value={
        "slug": "standard",
        "title": "Standard",
        "rules": [
            {"id": "low", "when": 'action.risk_tier == "low"', "verdict": "allow"},
            {"id": "rest", "when": "true", "verdict": "needs_approval", "tier": "approvers"},
        ],
    },
    request_only=True,
)


class PolicyListApi(ApiView):
    required_scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(operation_id="policies_list", parameters=[PolicyFilter], responses=PolicyOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, policy_list(**self.query(request, PolicyFilter)), PolicyOut)

    @extend_schema(
        operation_id="policies_create", request=PolicyCreateIn, responses={201: PolicyOut}, examples=[EXAMPLE]
    )
    def post(self, request: Request) -> Response:
        fields = self.body(request, PolicyCreateIn)
        organization = organization_of(actor=self.actor(request), org_id=fields.pop("org_id", None))
        policy = policy_create(actor=self.actor(request), at=timezone.now(), organization=organization, **fields)
        return Response(PolicyOut(policy).data, status=status.HTTP_201_CREATED)


class PolicyApi(ApiView):
    required_scopes = {"GET": READ, "PATCH": WRITE}

    @extend_schema(operation_id="policies_read", responses=PolicyOut)
    def get(self, request: Request, policy_id: UUID) -> Response:
        self.query(request)
        return Response(PolicyOut(policy_get(policy_id=policy_id)).data)

    @extend_schema(
        operation_id="policies_change",
        request=PolicyPatchIn,
        responses=PolicyOut,
        examples=[OpenApiExample("Another title", value={"title": "Standard, stricter"}, request_only=True)],
    )
    def patch(self, request: Request, policy_id: UUID) -> Response:
        changes = self.body(request, PolicyPatchIn)
        policy = policy_change(actor=self.actor(request), at=timezone.now(), policy_id=policy_id, changes=changes)
        return Response(PolicyOut(policy).data)


class PolicyValidateApi(ApiView):
    required_scopes = {"POST": READ}

    @extend_schema(operation_id="policies_validate", request=None, responses=ProblemsOut)
    def post(self, request: Request, policy_id: UUID) -> Response:
        policy = policy_get(policy_id=policy_id)
        problems = policy_problems(organization_id=policy.organization_id, rules=policy.rules)
        return Response({"problems": [asdict(problem) for problem in problems]})


class PolicyPublishApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="policies_publish", request=None, responses={200: PolicyOut, 202: WaitingOut})
    def post(self, request: Request, policy_id: UUID) -> Response:
        """200: published, by the founder alone. 202: proposed; a second person has to confirm it."""
        outcome = authority_act(
            actor=self.actor(request),
            at=timezone.now(),
            organization=policy_get(policy_id=policy_id).organization,
            kind="policy.publish",
            subject=str(policy_id),
        )
        return waiting(outcome) if outcome.applied is None else Response(PolicyOut(outcome.applied.made).data)


class PolicyArchiveApi(ApiView):
    required_scopes = {"POST": WRITE}

    @extend_schema(operation_id="policies_archive", request=None, responses=PolicyOut)
    def post(self, request: Request, policy_id: UUID) -> Response:
        return Response(
            PolicyOut(policy_archive(actor=self.actor(request), at=timezone.now(), policy_id=policy_id)).data
        )


class PolicySimulateApi(ApiView):
    """`Accept: application/x-ndjson` streams every change and the progress; otherwise one JSON object."""

    required_scopes = {"POST": READ}

    @extend_schema(
        operation_id="policies_simulate",
        request=SimulateIn,
        responses=SimulationOut,
        examples=[OpenApiExample("The last thousand", value={"last": 1000}, request_only=True)],
    )
    def post(self, request: Request, policy_id: UUID) -> Response | StreamingHttpResponse:
        limit = self.body(request, SimulateIn)["last"]
        items = policy_simulate(policy=policy_get(policy_id=policy_id), limit=limit)
        if NDJSON in request.headers.get("Accept", ""):
            scope = self.actor(request).organization_ids
            response = StreamingHttpResponse(_simulation_lines(items, scope), content_type=NDJSON)
            response["X-Accel-Buffering"] = "no"
            return response
        return Response(_simulation_json(items))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return super().perform_content_negotiation(request, force=True)


def _simulation_json(items: Iterator[DecisionChange | DecisionTally]) -> dict[str, Any]:
    changes: list[dict[str, Any]] = []
    tally = DecisionTally()
    for item in items:
        if isinstance(item, DecisionTally):
            tally = item
        elif len(changes) < LISTED_CHANGES:
            changes.append(asdict(item))
    return tally.as_json() | {"changes": changes}


def _simulation_lines(
    items: Iterator[DecisionChange | DecisionTally], organization_ids: frozenset[UUID]
) -> Iterator[bytes]:
    """The result as lines of JSON."""
    # The lines are sent after the view has returned, when its tenant scope has ended. Without a scope, reading raises.
    with tenant_scope(organization_ids):
        last = DecisionTally()
        for item in items:
            if isinstance(item, DecisionTally):
                last = item
                yield line({"type": "progress"} | item.as_json())
            else:
                yield line({"type": "change"} | asdict(item))
        yield line({"type": "summary"} | last.as_json())


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, default=str).encode() + b"\n"
