"""`/attempts/{id}/evidence`."""

from uuid import UUID

from django.http.response import HttpResponseBase
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.selectors.attempt import attempt_get
from governance.api.evidence import EvidenceOut, SubjectEvidenceView
from governance.evidence_file import ZIP
from governance.roles import ApiScope
from governance.states import EvidenceKind


class AttemptEvidenceApi(SubjectEvidenceView):
    kind = EvidenceKind.ATTEMPT
    required_scopes = {"GET": ApiScope.ATTEMPTS_CREATE, "POST": ApiScope.ATTEMPTS_CREATE}
    other_scopes = {"GET": ApiScope.LEDGER_READ, "POST": ApiScope.LEDGER_READ}

    @extend_schema(
        operation_id="attempts_evidence_read",
        responses={(200, "application/json"): EvidenceOut, (200, ZIP): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, attempt_id: UUID) -> HttpResponseBase:
        """The newest bundle: how far it is, or with `Accept: application/zip` its file."""
        return self.show(request, attempt_get(attempt_id=attempt_id).id)

    @extend_schema(
        operation_id="attempts_evidence_request", request=None, responses={202: EvidenceOut, 200: EvidenceOut}
    )
    def post(self, request: Request, attempt_id: UUID) -> Response:
        """202 and a new bundle; 200 and the newest one while nothing was added to the record since."""
        return self.ask(request, attempt_id)


urlpatterns = [path("attempts/<uuid:attempt_id>/evidence", AttemptEvidenceApi.as_view(), name="attempt_evidence")]
