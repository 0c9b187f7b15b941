"""`POST /workflow-definitions/{id}/migrate`: runs that are under way go on under this version."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer
from workflows.runs.selectors.bulk import bulk_get
from workflows.runs.services.migrate import DEFAULT_REASON, migration_order, migration_preview, passage_of

CODE = r"^[a-z][a-z0-9_]{0,63}$"
SHOWN = 1000
EXAMPLE = OpenApiExample(
    "What would happen?",
    value={"from_version": 3, "mapping": {"check": "check_twice"}, "preview": True},
    request_only=True,
)


class MigrateIn(StrictSerializer):
    from_version = serializers.IntegerField(min_value=1, help_text="The version of this slug that the runs follow now.")
    mapping = serializers.DictField(
        child=serializers.RegexField(CODE),
        required=False,
        default=dict,
        help_text="Old step: new step, if they differ.",
    )
    preview = serializers.BooleanField(required=False, default=True, help_text="Only say what would happen.")
    reason_code = serializers.RegexField(CODE, required=False, default=DEFAULT_REASON)
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=280)


class TravellerOut(serializers.Serializer[Any]):
    instance_id = serializers.UUIDField(source="instance.id")
    case_id = serializers.UUIDField(source="instance.case_id")
    business_key = serializers.CharField(source="instance.business_key")
    status = serializers.CharField(source="instance.state")
    steps = serializers.ListField(source="stands_at", child=serializers.CharField())
    can_go = serializers.SerializerMethodField()
    why = serializers.ListField(source="obstacles", child=serializers.CharField(), help_text="Why it cannot.")

    def get_can_go(self, one: Any) -> bool:
        return not one.obstacles


class MigrationPreviewOut(serializers.Serializer[Any]):
    preview = serializers.BooleanField(default=True)
    total = serializers.IntegerField()
    can_go = serializers.IntegerField()
    cannot = serializers.IntegerField()
    runs = TravellerOut(many=True, help_text=f"The oldest {SHOWN:,}.")


class MigrationOrderedOut(serializers.Serializer[Any]):
    preview = serializers.BooleanField(default=False)
    bulk_intervention_id = serializers.UUIDField(source="id", help_text="Its progress: /bulk-interventions/{id}.")
    created_at = serializers.DateTimeField()


class DefinitionMigrateApi(ApiView):
    required_scopes = {"POST": ApiScope.ORCHESTRATOR_INTERVENE}

    @extend_schema(
        operation_id="workflow_definitions_migrate",
        request=MigrateIn,
        responses={200: MigrationPreviewOut, 202: MigrationOrderedOut},
        examples=[EXAMPLE],
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        """200 with every affected run, whether it can go, and why not. Without `preview` 202: each run is moved in the
        background, under its lock, if it can go then. Back is possible while nothing has happened to the run since."""
        self.query(request)
        given = self.body(request, MigrateIn)
        passage = passage_of(definition_id=definition_id, from_version=given["from_version"], mapping=given["mapping"])
        if given["preview"]:
            found = migration_preview(passage=passage)
            can_go = sum(not one.obstacles for one in found)
            counts = {"total": len(found), "can_go": can_go, "cannot": len(found) - can_go}
            return Response(MigrationPreviewOut({"preview": True, **counts, "runs": found[:SHOWN]}).data)
        bulk = migration_order(
            passage=passage,
            reason_code=given["reason_code"],
            note=given["note"],
            actor=self.actor(request),
            at=timezone.now(),
        )
        answer = Response(
            MigrationOrderedOut(bulk_get(bulk_id=bulk.id)).data | {"preview": False}, status=status.HTTP_202_ACCEPTED
        )
        answer["Location"] = f"/api/v1/workflow-instances/bulk-interventions/{bulk.id}"
        return answer


urlpatterns = [
    path(
        "workflow-definitions/<uuid:definition_id>/migrate",
        DefinitionMigrateApi.as_view(),
        name="definition_migrate",
    ),
]
