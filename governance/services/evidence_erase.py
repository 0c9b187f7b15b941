"""What is erased from the record is erased from the bundles that hold it: their rows at once, their files after it."""

from datetime import datetime
from uuid import UUID

import structlog
from django.core.files.storage import Storage
from django.db import transaction
from django.db.models import Q

from governance.doorbell import ring
from governance.models import ErasureItem, EvidenceBundle
from governance.services.evidence_build import alone_with, file_name
from governance.services.evidence_request import PATIENCE, evidence_record
from governance.states import EvidenceState
from reasoncodes.actors import Actor

TASK = "governance.tasks.evidence_remove"
log = structlog.get_logger("holdpoint.evidence")


def evidence_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """In the transaction of the erasure. A worker that is writing a bundle finds it erased at its end."""
    holding = Q(covers__contains=[item.subject_id]) | Q(subject_id=item.subject_id)
    rows = EvidenceBundle.objects.select_for_update(no_key=True, of=("self",)).filter(holding)
    for bundle in rows.exclude(state=EvidenceState.ERASED).order_by("id"):
        bundle.state, bundle.progress, bundle.draft = EvidenceState.ERASED, "", None
        bundle.erased_at, bundle.resume_at = at, at + PATIENCE
        bundle.save(update_fields=["state", "progress", "draft", "erased_at", "resume_at"])
        evidence_record(bundle, "evidence.erased", actor=actor, at=at)
        ring(TASK, bundle.id)


def evidence_remove(*, bundle_id: UUID, storage: Storage, at: datetime) -> bool:
    """False: a worker is still at it, or the storage does not answer; the tick comes again."""
    with alone_with(bundle_id) as alone:
        bundle = EvidenceBundle.objects.filter(id=bundle_id, state=EvidenceState.ERASED, removed_at=None).first()
        if not alone or bundle is None:
            return False
        try:
            for name in {bundle.storage_name, file_name(bundle)} - {""}:
                storage.delete(name)
        except Exception as error:
            log.error("evidence_storage_unavailable", bundle=str(bundle_id), error=type(error).__name__)
            EvidenceBundle.objects.filter(id=bundle_id).update(resume_at=at + PATIENCE)
            return False
        with transaction.atomic():
            EvidenceBundle.objects.filter(id=bundle_id).update(removed_at=at)
    return True
