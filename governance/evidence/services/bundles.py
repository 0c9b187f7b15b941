"""Handing a bundle out: only bytes that hash to what the ledger says, looked at before the first one leaves."""

import hashlib
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import IO
from uuid import UUID

import structlog
from django.core.files.storage import Storage
from django.db import transaction
from django.db.models import Q

from governance.evidence.errors import (
    EvidenceAltered,
    EvidenceErased,
    EvidenceFailed,
    EvidenceNotReady,
    EvidenceStorageUnavailable,
)
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import recompute
from governance.evidence.selectors import built_sha256
from governance.evidence.services.build import alone_with, file_name
from governance.evidence.services.request import PATIENCE, evidence_record
from governance.evidence.states import EvidenceState
from governance.outside.wake_up import wake_up
from governance.retention.models import ErasureItem
from reasoncodes.base.actors import SYSTEM, Actor
from sdk import holdpoint_verify as verifier

CHUNK = 1 << 16
IN_MEMORY = 8 << 20
security_log = structlog.get_logger("holdpoint.security")


def evidence_open(*, bundle: EvidenceBundle, storage: Storage, at: datetime) -> IO[bytes]:
    """A copy that nobody can change any more. Raises when it is not there yet, or not what was built."""
    if bundle.state == EvidenceState.FAILED:
        raise EvidenceFailed(extensions={"problem": bundle.problem})
    if bundle.state == EvidenceState.ERASED:
        raise EvidenceErased
    if bundle.state != EvidenceState.READY:
        raise EvidenceNotReady(extensions={"progress": bundle.progress})
    expected = built_sha256(bundle=bundle)
    copy: IO[bytes] = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # the caller closes it
    try:
        found = _copied(storage, bundle.storage_name, copy)
    except FileNotFoundError:
        found = "missing"
    except Exception as error:
        copy.close()
        security_log.error("evidence_storage_unavailable", bundle=str(bundle.id), error=type(error).__name__)
        raise EvidenceStorageUnavailable from error
    if found != expected:
        copy.close()
        _altered(bundle, found, at=at)
        raise EvidenceAltered
    copy.seek(0)
    return copy


def _copied(storage: Storage, name: str, copy: IO[bytes]) -> str:
    digest = hashlib.sha256()
    with storage.open(name, "rb") as stored:
        for chunk in stored.chunks(CHUNK):
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()


def _altered(bundle: EvidenceBundle, found: str, *, at: datetime) -> None:
    """On record once; whoever wanted to read it is not to blame, so it is no violation of theirs."""
    security_log.error("evidence_altered", bundle=str(bundle.id), found=found)
    with transaction.atomic():
        rows = EvidenceBundle.objects.select_for_update(no_key=True, of=("self",))
        locked = rows.filter(id=bundle.id, altered_at=None).first()
        if locked is not None:
            locked.altered_at = at
            locked.save(update_fields=["altered_at"])
            evidence_record(locked, "evidence.altered", actor=SYSTEM, at=at, payload={"found": found})


def evidence_verify(*, bundle: EvidenceBundle, storage: Storage, at: datetime) -> verifier.Report:
    """The stored file by the verifier, and every decision in it made again."""
    with evidence_open(bundle=bundle, storage=storage, at=at) as stream:
        return data_verify(stream.read())


def data_verify(data: bytes, *, public_key: str = "") -> verifier.Report:
    """Raises verifier.Unusable for a key that is none."""
    report = verifier.verify(data, public_key=public_key)
    if report.valid:
        report.faults += recompute(verifier.zip_read(data)[0])
        report.checked.append("every decision, made again")
    return report


REMOVE_TASK = "governance.tasks.evidence_remove"
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
        wake_up(REMOVE_TASK, bundle.id)


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
