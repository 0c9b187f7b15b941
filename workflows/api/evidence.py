"""`/workflow-instances/{id}/evidence`."""

from uuid import UUID

from django.http.response import HttpResponseBase
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.evidence import EvidenceOut, SubjectEvidenceView
from governance.evidence_file import ZIP
from governance.roles import ApiScope
from governance.states import EvidenceKind
from workflows.selectors.run import instance_get

SCOPE = ApiScope.ORCHESTRATOR_READ_INSTANCES
ALSO = (ApiScope.ORCHESTRATOR_READ, ApiScope.LEDGER_READ)


class InstanceEvidenceApi(SubjectEvidenceView):
    kind = EvidenceKind.INSTANCE
    required_scopes = {"GET": SCOPE, "POST": SCOPE}
    other_scopes = {"GET": ALSO, "POST": ALSO}

    @extend_schema(
        operation_id="workflow_instances_evidence_read",
        responses={(200, "application/json"): EvidenceOut, (200, ZIP): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, instance_id: UUID) -> HttpResponseBase:
        """The newest bundle: how far it is, or with `Accept: application/zip` its file."""
        return self.show(request, instance_get(instance_id=instance_id).id)

    @extend_schema(
        operation_id="workflow_instances_evidence_request", request=None, responses={202: EvidenceOut, 200: EvidenceOut}
    )
    def post(self, request: Request, instance_id: UUID) -> Response:
        """202 and a new bundle; 200 and the newest one while nothing was added to the record since."""
        return self.ask(request, instance_id)


urlpatterns = [
    path("workflow-instances/<uuid:instance_id>/evidence", InstanceEvidenceApi.as_view(), name="instance_evidence")
]
