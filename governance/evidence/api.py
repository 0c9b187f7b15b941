"""API of evidence bundles: request one, its progress, and the file. The apps above add the URLs of their subjects."""

from typing import Any
from uuid import UUID

from django.core.files.storage import storages
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import renderers, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from governance.evidence.models import EvidenceBundle
from governance.evidence.selectors import bundle_get, bundle_list, bundle_newest_or_404
from governance.evidence.services.bundles import evidence_open
from governance.evidence.services.request import evidence_request
from governance.evidence.states import EvidenceKind, EvidenceState
from governance.people.rules.roles import AUDIT, OPERATE, ApiScope
from governance.sealing.api import opened
from reasoncodes.base.actors import ActorKind
from reasoncodes.base.api import ApiView, StrictSerializer
from reasoncodes.base.errors import ScopeMissing

ZIP = "application/zip"


def evidence_file(bundle: EvidenceBundle) -> FileResponse:
    """The file as a response. Raises a DomainError if there is none."""
    copy = evidence_open(bundle=bundle, storage=storages["evidence"], at=timezone.now())
    name = f"holdpoint-evidence-{bundle.subject_kind}-{bundle.subject_id}.zip"
    headers = {"ETag": f'"{bundle.sha256}"', "Cache-Control": "private, no-cache"}
    return FileResponse(copy, as_attachment=True, filename=name, content_type=ZIP, headers=headers)


READERS: dict[str, set[str]] = {
    EvidenceKind.ATTEMPT: {ApiScope.ATTEMPTS_CREATE, ApiScope.LEDGER_READ},
    EvidenceKind.INSTANCE: {
        ApiScope.ORCHESTRATOR_READ_INSTANCES,
        ApiScope.ORCHESTRATOR_READ,
        ApiScope.LEDGER_READ,
    },
}
FILE = {(200, ZIP): OpenApiTypes.BINARY, 304: OpenApiResponse(description="You have it: `If-None-Match` fits.")}


class EvidenceOut(serializers.ModelSerializer[EvidenceBundle]):
    organization_id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=list(EvidenceState))
    subject_kind = serializers.ChoiceField(choices=list(EvidenceKind))
    progress = serializers.CharField(help_text="What it waits for, in words; empty once it has ended.")
    problem = serializers.CharField(help_text="The problem type that it failed with; see `/problems/`.")
    differences = serializers.JSONField(
        help_text="Of a refused bundle: table, id and field, what the ledger says and what the row says. Values that "
        "somebody submitted stand there as the beginning of their SHA-256."
    )
    sha256 = serializers.CharField(help_text="Of the zip; empty until it is ready. It is on the ledger too.")
    download = serializers.SerializerMethodField()

    class Meta:
        model = EvidenceBundle
        fields = [
            "id",
            "organization_id",
            "subject_kind",
            "subject_id",
            "state",
            "progress",
            "problem",
            "differences",
            "sha256",
            "size",
            "checkpoint_size",
            "requested_at",
            "built_at",
            "altered_at",
            "download",
        ]

    def get_download(self, bundle: EvidenceBundle) -> str | None:
        """Where the file is, once there is one."""
        ready = bundle.state == EvidenceState.READY and bundle.altered_at is None
        return f"/api/v1/evidence/{bundle.id}/download" if ready else None


class ZipRenderer(renderers.BaseRenderer):
    """So that `Accept: application/zip` is understood; the file itself is no DRF response."""

    media_type = ZIP
    format = "zip"
    charset = None
    render_style = "binary"


class EvidenceFilter(StrictSerializer):
    state = serializers.ChoiceField(choices=list(EvidenceState), required=False)
    subject_id = serializers.UUIDField(required=False)


class BundleView(ApiView):
    """By the bundle's own id. A key needs a scope that reads its subject, or the ledger's."""

    required_scopes = {"GET": ApiScope.LEDGER_READ}
    other_scopes = {"GET": tuple(sorted(READERS[EvidenceKind.ATTEMPT] | READERS[EvidenceKind.INSTANCE]))}

    def bundle(self, request: Request, bundle_id: UUID) -> EvidenceBundle:
        bundle, actor = bundle_get(bundle_id=bundle_id), self.actor(request)
        if actor.kind is ActorKind.SERVICE and not READERS[bundle.subject_kind] & actor.scopes:
            raise ScopeMissing(extensions={"required_scope": ApiScope.LEDGER_READ})
        return bundle


class EvidenceListApi(ApiView):
    required_scopes = {"GET": ApiScope.LEDGER_READ}

    @extend_schema(operation_id="evidence_list", parameters=[EvidenceFilter], responses=EvidenceOut(many=True))
    def get(self, request: Request) -> Response:
        return self.page(request, bundle_list(**self.query(request, EvidenceFilter)), EvidenceOut)


class EvidenceApi(BundleView):
    @extend_schema(operation_id="evidence_read", responses=EvidenceOut)
    def get(self, request: Request, bundle_id: UUID) -> Response:
        self.query(request)
        return Response(EvidenceOut(self.bundle(request, bundle_id)).data)


class EvidenceDownloadApi(BundleView):
    """The zip. Its bytes are compared with the ledger before the first one is sent."""

    renderer_classes = [ZipRenderer, renderers.JSONRenderer]

    @extend_schema(operation_id="evidence_download", responses=FILE)
    def get(self, request: Request, bundle_id: UUID) -> HttpResponseBase:
        self.query(request)
        return _file_response(self, request, self.bundle(request, bundle_id))


class SubjectEvidenceView(ApiView):
    """Of one attempt or one run. `Accept: application/zip` gets the newest bundle's file instead of its status."""

    kind: EvidenceKind
    people_permissions = {"GET": AUDIT, "POST": OPERATE}

    def get_renderers(self) -> list[Any]:
        if self.request is not None and self.request.method in {"GET", "HEAD"}:
            return [renderers.JSONRenderer(), ZipRenderer()]
        return list(super().get_renderers())

    def ask(self, request: Request, subject_id: UUID) -> Response:
        self.query(request)
        bundle, new = evidence_request(
            kind=self.kind, subject_id=subject_id, actor=self.actor(request), at=timezone.now()
        )
        code = status.HTTP_202_ACCEPTED if new else status.HTTP_200_OK
        headers = {"Location": f"/api/v1/evidence/{bundle.id}"} | ({"Retry-After": "2"} if new else {})
        return Response(EvidenceOut(bundle).data, status=code, headers=headers)

    def show(self, request: Request, subject_id: UUID) -> HttpResponseBase:
        """The caller has looked the subject up: somebody else's is 404 there."""
        self.query(request)
        bundle = bundle_newest_or_404(kind=self.kind, subject_id=subject_id)
        if isinstance(request.accepted_renderer, ZipRenderer):
            return _file_response(self, request, bundle)
        return Response(EvidenceOut(bundle).data)


def _file_response(view: ApiView, request: Request, bundle: EvidenceBundle) -> HttpResponseBase:
    """Taking a copy is reading it: that stands in the read audit before the first byte leaves."""
    tag = f'"{bundle.sha256}"'
    if bundle.state == EvidenceState.READY and request.headers.get("If-None-Match") == tag:
        return HttpResponse(status=304, headers={"ETag": tag})
    opened(view, request, subject_kind="evidence_bundle", subject_id=bundle.id, organization_id=bundle.organization_id)
    return evidence_file(bundle)
