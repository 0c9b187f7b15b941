"""Finished bundles: opens them (only if the bytes have the hash in the ledger), verifies them, and erases and removes
them by order. Building is in `build`."""

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
    EvidenceRefused,
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
from governance.sealing.selectors.keys import keys_text
from reasoncodes.base.actors import SYSTEM, Actor
from sdk import holdpoint_verify as verifier

CHUNK = 1 << 16
# A larger copy goes to a temporary file: a download must not take as much memory as the bundle is large.
IN_MEMORY = 8 << 20
security_log = structlog.get_logger("holdpoint.security")


def evidence_open(*, bundle: EvidenceBundle, storage: Storage, at: datetime) -> IO[bytes]:
    """A private copy of the file. Raises if the bundle is not ready or the file is not the one that was built."""
    if bundle.state == EvidenceState.FAILED:
        raise EvidenceFailed(extensions={"problem": bundle.problem})
    if bundle.state == EvidenceState.REFUSED:
        raise EvidenceRefused(extensions={"differences": bundle.differences})
    if bundle.state == EvidenceState.ERASED:
        raise EvidenceErased
    if bundle.state != EvidenceState.READY:
        raise EvidenceNotReady(extensions={"progress": bundle.progress})
    expected = built_sha256(bundle=bundle)
    # A copy, hashed as a whole before the first byte is sent: the stored file could change between check and download.
    copy: IO[bytes] = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # the caller closes it
    try:
        found = _copied(storage, bundle.storage_name, copy)
    except FileNotFoundError:
        found = "missing"
    # Everything else is a storage that does not answer, not an altered file: that would be recorded for ever.
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
    """Record once that the file was altered. It is not a violation by the reader."""
    security_log.error("evidence_altered", bundle=str(bundle.id), found=found)
    with transaction.atomic():
        rows = EvidenceBundle.objects.select_for_update(no_key=True, of=("self",))
        # Looked at again under the lock: of two readers at once only one writes the entry.
        locked = rows.filter(id=bundle.id, altered_at=None).first()
        if locked is not None:
            locked.altered_at = at
            locked.save(update_fields=["altered_at"])
            evidence_record(locked, "evidence.altered", actor=SYSTEM, at=at, payload={"found": found})


def evidence_verify(*, bundle: EvidenceBundle, storage: Storage, at: datetime) -> verifier.Report:
    """Run the verifier on the stored file, and compute every decision in it again."""
    with evidence_open(bundle=bundle, storage=storage, at=at) as stream:
        return data_verify(stream.read())


def data_verify(data: bytes, *, public_key: str = "") -> verifier.Report:
    """The same for any bundle, with the keys of this installation unless others are given. Raises verifier.Unusable for
    a text that is not a key."""
    public_key = public_key or keys_text()
    report = verifier.verify(data, public_key=public_key)
    if report.valid:
        report.faults += recompute(verifier.zip_read(data)[0])
        report.checked.append("every decision, made again")
    return report


REMOVE_TASK = "governance.tasks.evidence_remove"
log = structlog.get_logger("holdpoint.evidence")


def evidence_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """Erase every bundle that contains the item's subject, in the transaction of the erasure. A worker that is building
    one finds it erased when it wants to set it ready."""
    holding = Q(covers__contains=[item.subject_id]) | Q(subject_id=item.subject_id)
    rows = EvidenceBundle.objects.select_for_update(no_key=True, of=("self",)).filter(holding)
    # Locked in the order of ids: two erasures that share bundles would otherwise wait for each other.
    for bundle in rows.exclude(state=EvidenceState.ERASED).order_by("id"):
        bundle.state, bundle.progress, bundle.draft = EvidenceState.ERASED, "", None
        bundle.erased_at, bundle.resume_at, bundle.differences = at, at + PATIENCE, []
        bundle.save(update_fields=["state", "progress", "draft", "differences", "erased_at", "resume_at"])
        evidence_record(bundle, "evidence.erased", actor=actor, at=at)
        # The file goes after the commit: a storage cannot be rolled back.
        wake_up(REMOVE_TASK, bundle.id)


def evidence_remove(*, bundle_id: UUID, storage: Storage, at: datetime) -> bool:
    """Remove the file of an erased bundle. False if a worker still uses it or the storage does not answer; a scheduled
    task tries again."""
    # The lock of the builder: otherwise it could write its file after this has deleted it.
    with alone_with(bundle_id) as alone:
        bundle = EvidenceBundle.objects.filter(id=bundle_id, state=EvidenceState.ERASED, removed_at=None).first()
        if not alone or bundle is None:
            return False
        try:
            # Under both names: a build that ended before `ready` wrote its file but no name.
            for name in {bundle.storage_name, file_name(bundle)} - {""}:
                storage.delete(name)
        except Exception as error:
            log.error("evidence_storage_unavailable", bundle=str(bundle_id), error=type(error).__name__)
            EvidenceBundle.objects.filter(id=bundle_id).update(resume_at=at + PATIENCE)
            return False
        with transaction.atomic():
            EvidenceBundle.objects.filter(id=bundle_id).update(removed_at=at)
    return True
