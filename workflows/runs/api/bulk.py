"""`/workflow-instances/bulk-interventions`: the same for many runs, looked at first, worked off in the background."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from governance.people.selectors.people import organization_of
from reasoncodes.base.api import ApiView, ReasonedIn, StrictSerializer
from workflows.runs.api.shapes import InstanceFilter
from workflows.runs.selectors.bulk import Targets, bulk_get, bulk_items, bulk_list, bulk_progress
from workflows.runs.services.bulk import bulk_order, bulk_preview
from workflows.runs.services.intervene import InterventionOrder
from workflows.runs.states import PLAIN_ACTIONS, InterventionAction


class BulkIn(ReasonedIn):
    action = serializers.ChoiceField(choices=PLAIN_ACTIONS)
    filter = InstanceFilter(required=False, help_text="As in the list; at least one criterion.")
    instance_ids = serializers.ListField(
        child=serializers.UUIDField(), required=False, min_length=1, max_length=1000, help_text="Instead of a filter."
    )
    dry_run = serializers.BooleanField(required=False, default=False)


class BulkOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    org_id = serializers.UUIDField(source="organization_id")
    action = serializers.CharField()
    reason_code = serializers.CharField()
    note = serializers.CharField(source="note.text", default="")
    ordered_by = serializers.CharField(source="orderer_name", default="")
    ordered_by_kind = serializers.CharField(source="actor_kind")
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class BulkDetailOut(BulkOut):
    total = serializers.IntegerField(source="progress.total")
    done = serializers.IntegerField(source="progress.done")
    refused = serializers.IntegerField(source="progress.refused")
    waiting = serializers.IntegerField(source="progress.waiting")


class RefusedOut(serializers.Serializer[Any]):
    why = serializers.CharField()
    count = serializers.IntegerField()


class SampleOut(serializers.Serializer[Any]):
    instance_id = serializers.UUIDField(source="id")
    case_id = serializers.UUIDField()
    status = serializers.CharField(source="state")
    halt_reason = serializers.CharField()
    refusal = serializers.CharField(help_text="Why it would be refused; empty: it would be done.")


class BulkPreviewOut(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(default=True)
    total = serializers.IntegerField(help_text="Counted up to 10,000.")
    more = serializers.BooleanField(help_text="There are more than that: such an order is refused.")
    legal = serializers.IntegerField()
    refused = RefusedOut(many=True)
    sample = SampleOut(many=True)


class BulkItemOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    instance_id = serializers.UUIDField()
    case_id = serializers.UUIDField(source="instance.case_id")
    status = serializers.ChoiceField(choices=["waiting", "done", "refused"])
    problem = serializers.CharField(help_text="The problem type of a refusal.")
    finished_at = serializers.DateTimeField(allow_null=True)


class BulkItemFilter(StrictSerializer):
    status = serializers.ChoiceField(choices=["waiting", "done", "refused"], required=False)


DRY_RUN_EXAMPLE = OpenApiExample(
    "What would it touch?",
    value={
        "action": "resume",
        "reason_code": "data_correction",
        "filter": {"status": "halted", "halt_reason": "ai_review_failed"},
        "dry_run": True,
    },
    request_only=True,
)
BULK_EXAMPLE = OpenApiExample(
    "All that halted for one reason",
    value={
        "action": "resume",
        "reason_code": "data_correction",
        "filter": {"status": "halted", "halt_reason": "ai_review_failed"},
    },
    request_only=True,
)

READ: dict[str, str] = {"GET": ApiScope.ORCHESTRATOR_READ_INSTANCES}
ALSO = {"GET": ApiScope.ORCHESTRATOR_READ}


def _bulk_response(bulk_id: UUID, code: int = status.HTTP_200_OK) -> Response:
    bulk: Any = bulk_get(bulk_id=bulk_id)
    bulk.progress = bulk_progress(bulk_id=bulk_id)
    return Response(BulkDetailOut(bulk).data, status=code)


class BulkListApi(ApiView):
    required_scopes = {**READ, "POST": ApiScope.ORCHESTRATOR_INTERVENE}
    other_scopes = ALSO

    @extend_schema(operation_id="bulk_interventions_list", responses=BulkOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, bulk_list(), BulkOut)

    @extend_schema(
        operation_id="bulk_interventions_order",
        request=BulkIn,
        responses={202: BulkDetailOut, 200: BulkPreviewOut},
        examples=[DRY_RUN_EXAMPLE, BULK_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """With `dry_run` what it would touch, and nothing happens; without, 202 and the order's address."""
        self.query(request)
        given, actor, at = self.body(request, BulkIn), self.actor(request), timezone.now()
        organization = organization_of(actor=actor, org_id=None)
        order = InterventionOrder(InterventionAction(given["action"]), given["reason_code"], given["note"])
        targets = Targets(dict(given.get("filter") or {}), given.get("instance_ids") or ())
        if given["dry_run"]:
            preview = bulk_preview(organization_id=organization.id, order=order, targets=targets, at=at)
            refused = [{"why": why, "count": count} for why, count in preview.refused.items()]
            values = {name: getattr(preview, name) for name in ("total", "more", "legal", "sample")}
            return Response(BulkPreviewOut({"dry_run": True, **values, "refused": refused}).data)
        bulk = bulk_order(organization_id=organization.id, order=order, targets=targets, actor=actor, at=at)
        response = _bulk_response(bulk.id, status.HTTP_202_ACCEPTED)
        response["Location"] = f"{request.path}/{bulk.id}"
        return response


class BulkApi(ApiView):
    required_scopes = READ
    other_scopes = ALSO

    @extend_schema(operation_id="bulk_interventions_read", responses=BulkDetailOut)
    def get(self, request: Request, bulk_id: UUID) -> Response:
        self.query(request)
        return _bulk_response(bulk_id)


class BulkItemsApi(ApiView):
    required_scopes = READ
    other_scopes = ALSO

    @extend_schema(
        operation_id="bulk_interventions_items",
        parameters=[BulkItemFilter],
        responses=BulkItemOut(many=True),
    )
    def get(self, request: Request, bulk_id: UUID) -> Response:
        rows = bulk_items(bulk_id=bulk_get(bulk_id=bulk_id).id, **self.query(request, BulkItemFilter))
        return self.page(request, rows, BulkItemOut)


BULK = "workflow-instances/bulk-interventions"
urlpatterns = [
    path(BULK, BulkListApi.as_view(), name="bulk_list"),
    path(f"{BULK}/<uuid:bulk_id>", BulkApi.as_view(), name="bulk"),
    path(f"{BULK}/<uuid:bulk_id>/items", BulkItemsApi.as_view(), name="bulk_items"),
]
