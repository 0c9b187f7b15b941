"""`POST /workflow-definitions/{id}/what-if`: what the last finished runs would have done under this version."""

from typing import Any
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.people.rules.roles import ApiScope
from reasoncodes.base.api import ApiView, StrictSerializer
from workflows.runs.services.what_if import MOST_RUNS, definition_what_if

EXAMPLE = OpenApiExample("The last fifty runs", value={"last": 50}, request_only=True)


class WhatIfIn(StrictSerializer):
    last = serializers.IntegerField(min_value=1, max_value=MOST_RUNS, help_text="So many finished runs, newest first.")


class StoryOut(serializers.Serializer[Any]):
    end = serializers.CharField(
        help_text="completed, halted or cancelled; `waits`: it stops there; `refused`: no start."
    )
    reason = serializers.CharField()
    path = serializers.ListField(child=serializers.CharField(), help_text="Each try that ended, with its outcome.")
    output = serializers.JSONField(allow_null=True)
    waits_for = serializers.ListField(
        child=serializers.CharField(), help_text="Steps for which the run has no recorded answer."
    )
    assumed = serializers.ListField(
        child=serializers.CharField(), help_text="Side effects about which nobody was asked then; taken as allowed."
    )


class DifferenceOut(serializers.Serializer[Any]):
    instance_id = serializers.UUIDField(source="instance.id")
    business_key = serializers.CharField(source="instance.business_key")
    definition_version = serializers.IntegerField(source="instance.definition.version")
    differs = serializers.ListField(child=serializers.CharField(), help_text="Of end, reason, path and output.")
    was = StoryOut()
    would_be = StoryOut()


class WhatIfOut(serializers.Serializer[Any]):
    runs = serializers.IntegerField()
    same = serializers.IntegerField()
    different = DifferenceOut(many=True)


class DefinitionWhatIfApi(ApiView):
    # Outputs of runs are in the answer.
    required_scopes = {"POST": ApiScope.ORCHESTRATOR_READ_INSTANCES}
    other_scopes = {"POST": ApiScope.ORCHESTRATOR_READ}

    @extend_schema(
        operation_id="workflow_definitions_what_if", request=WhatIfIn, responses=WhatIfOut, examples=[EXAMPLE]
    )
    def post(self, request: Request, definition_id: UUID) -> Response:
        """Inputs and answers of the last finished runs of this slug, fed to this version. Nothing is asked, sent or
        stored."""
        self.query(request)
        asked = self.body(request, WhatIfIn)
        return Response(WhatIfOut(definition_what_if(definition_id=definition_id, last=asked["last"])).data)


urlpatterns = [
    path(
        "workflow-definitions/<uuid:definition_id>/what-if",
        DefinitionWhatIfApi.as_view(),
        name="definition_what_if",
    ),
]
