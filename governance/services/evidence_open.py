"""Handing a bundle out: only bytes that hash to what the ledger says, looked at before the first one leaves."""

import hashlib
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import IO

import structlog
from django.core.files.storage import Storage
from django.db import transaction

from governance.evidence import recompute
from governance.evidence_errors import (
    EvidenceAltered,
    EvidenceErased,
    EvidenceFailed,
    EvidenceNotReady,
    EvidenceStorageUnavailable,
)
from governance.models import EvidenceBundle
from governance.selectors.evidence import built_sha256
from governance.services.evidence_request import evidence_record
from governance.states import EvidenceState
from reasoncodes.actors import SYSTEM
from sdk import holdpoint_verify as verifier

CHUNK = 1 << 16
IN_MEMORY = 8 << 20
log = structlog.get_logger("holdpoint.security")


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
        log.error("evidence_storage_unavailable", bundle=str(bundle.id), error=type(error).__name__)
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
    log.error("evidence_altered", bundle=str(bundle.id), found=found)
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
