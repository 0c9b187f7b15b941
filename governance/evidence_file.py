"""A bundle as a response, for the doors that hand it out: the API and the console."""

from django.core.files.storage import storages
from django.http import FileResponse
from django.utils import timezone

from governance.models import EvidenceBundle
from governance.services.evidence_open import evidence_open

ZIP = "application/zip"


def evidence_file(bundle: EvidenceBundle) -> FileResponse:
    """Raises a DomainError when there is nothing to hand out."""
    copy = evidence_open(bundle=bundle, storage=storages["evidence"], at=timezone.now())
    name = f"holdpoint-evidence-{bundle.subject_kind}-{bundle.subject_id}.zip"
    headers = {"ETag": f'"{bundle.sha256}"', "Cache-Control": "private, no-cache"}
    return FileResponse(copy, as_attachment=True, filename=name, content_type=ZIP, headers=headers)
