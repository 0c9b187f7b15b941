"""`/workflow-instances/bulk-interventions`: the same for many runs, looked at first, worked off in the background."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.roles import ApiScope
from governance.selectors import organization_of
from reasoncodes.api.conventions import ApiView
from workflows.api import bulk_shapes as shapes
from workflows.selectors.bulk import Targets, bulk_get, bulk_items, bulk_list, bulk_progress
from workflows.services.bulk import bulk_order, bulk_preview
from workflows.services.intervene import Order
from workflows.states import InterventionAction

READ: dict[str, str] = {"GET": ApiScope.ORCHESTRATOR_READ_INSTANCES}
ALSO = {"GET": ApiScope.ORCHESTRATOR_READ}


def shown(bulk_id: UUID, code: int = status.HTTP_200_OK) -> Response:
    bulk: Any = bulk_get(bulk_id=bulk_id)
    bulk.progress = bulk_progress(bulk_id=bulk_id)
    return Response(shapes.BulkDetailOut(bulk).data, status=code)


class BulkListApi(ApiView):
    required_scopes = {**READ, "POST": ApiScope.ORCHESTRATOR_INTERVENE}
    other_scopes = ALSO

    @extend_schema(operation_id="bulk_interventions_list", responses=shapes.BulkOut(many=True))
    def get(self, request: Request) -> Response:
        self.query(request)
        return self.page(request, bulk_list(), shapes.BulkOut)

    @extend_schema(
        operation_id="bulk_interventions_order",
        request=shapes.BulkIn,
        responses={202: shapes.BulkDetailOut, 200: shapes.BulkPreviewOut},
        examples=[shapes.DRY_RUN_EXAMPLE, shapes.BULK_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """With `dry_run` what it would touch, and nothing happens; without, 202 and the order's address."""
        self.query(request)
        given, actor, at = self.body(request, shapes.BulkIn), self.actor(request), timezone.now()
        organization = organization_of(actor=actor, org_id=None)
        order = Order(InterventionAction(given["action"]), given["reason_code"], given["note"])
        targets = Targets(dict(given.get("filter") or {}), given.get("instance_ids") or ())
        if given["dry_run"]:
            preview = bulk_preview(organization_id=organization.id, order=order, targets=targets, at=at)
            refused = [{"why": why, "count": count} for why, count in preview.refused.items()]
            values = {name: getattr(preview, name) for name in ("total", "more", "legal", "sample")}
            return Response(shapes.BulkPreviewOut({"dry_run": True, **values, "refused": refused}).data)
        bulk = bulk_order(organization_id=organization.id, order=order, targets=targets, actor=actor, at=at)
        response = shown(bulk.id, status.HTTP_202_ACCEPTED)
        response["Location"] = f"{request.path}/{bulk.id}"
        return response


class BulkApi(ApiView):
    required_scopes = READ
    other_scopes = ALSO

    @extend_schema(operation_id="bulk_interventions_read", responses=shapes.BulkDetailOut)
    def get(self, request: Request, bulk_id: UUID) -> Response:
        self.query(request)
        return shown(bulk_id)


class BulkItemsApi(ApiView):
    required_scopes = READ
    other_scopes = ALSO

    @extend_schema(
        operation_id="bulk_interventions_items",
        parameters=[shapes.BulkItemFilter],
        responses=shapes.BulkItemOut(many=True),
    )
    def get(self, request: Request, bulk_id: UUID) -> Response:
        rows = bulk_items(bulk_id=bulk_get(bulk_id=bulk_id).id, **self.query(request, shapes.BulkItemFilter))
        return self.page(request, rows, shapes.BulkItemOut)


BULK = "workflow-instances/bulk-interventions"
urlpatterns = [
    path(BULK, BulkListApi.as_view(), name="bulk_list"),
    path(f"{BULK}/<uuid:bulk_id>", BulkApi.as_view(), name="bulk"),
    path(f"{BULK}/<uuid:bulk_id>/items", BulkItemsApi.as_view(), name="bulk_items"),
]
