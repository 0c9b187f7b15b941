"""The second half of a build: proofs to one signed head, the zip, the storage, and only then `ready`.

Safe to be killed, to be run twice and to be run by several at once: what was collected is fixed, so every run writes
the same bytes. The file is written before `ready` is committed and outside any transaction: one that stays open while
a storage answers would hold the sealer up.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import InterfaceError, OperationalError, connection, transaction

from governance.evidence import recompute
from governance.evidence_errors import EvidenceInconsistent, EvidenceStorageUnavailable
from governance.models import EvidenceBundle, LedgerEntry
from governance.selectors.evidence import Sealed, entries_sealed, entry_collected
from governance.services.evidence_collect import draft_read, evidence_collect
from governance.services.evidence_request import PATIENCE, evidence_record
from governance.states import EvidenceState
from reasoncodes.actors import SYSTEM
from reasoncodes.errors import InternalError
from sdk import holdpoint_verify as verifier

UNFINISHED = [EvidenceState.REQUESTED, EvidenceState.BUILDING]
SEALER = timedelta(seconds=1)
MOST_TRIES = 5
log = structlog.get_logger("holdpoint.evidence")


class NotTrue(ValueError):
    """What was built does not verify; the message names the first fault."""


def evidence_build(*, bundle_id: UUID, now: Callable[[], datetime], storage: Storage) -> None:
    """As far as it goes now. What waits for the sealer or the storage is taken up again by the tick."""
    try:
        with alone_with(bundle_id) as alone:
            if alone and _claim(bundle_id, now()):
                _go_on(bundle_id, now, storage)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.error("evidence_build_failed", bundle=str(bundle_id), error=type(error).__name__, exc_info=error)
        code = EvidenceInconsistent.code if isinstance(error, NotTrue) else InternalError.code
        evidence_fail(bundle_id=bundle_id, problem=code, at=now())


@contextmanager
def alone_with(bundle_id: UUID) -> Iterator[bool]:
    """For as long as this connection lasts; without a transaction. False: somebody else is at it."""
    key = f"evidence-build:{bundle_id}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 5))", [key])
        (alone,) = cursor.fetchone()
    try:
        yield bool(alone)
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 5))", [key])


def _claim(bundle_id: UUID, at: datetime) -> bool:
    """The tick leaves it alone for a while; should this process die, it takes it up then."""
    rows = EvidenceBundle.objects.filter(id=bundle_id, state__in=UNFINISHED)
    return bool(rows.update(resume_at=at + PATIENCE))


def _go_on(bundle_id: UUID, now: Callable[[], datetime], storage: Storage) -> None:
    evidence_collect(bundle_id=bundle_id, at=now())
    bundle = EvidenceBundle.objects.filter(id=bundle_id, state=EvidenceState.BUILDING).first()
    if bundle is None:
        return
    files, entries = draft_read(bundle)
    sealed = entries_sealed(entry_ids=[UUID(str(entry["id"])) for entry in entries] + [_anchor(bundle).id])
    if sealed is None:
        _later(bundle, "waiting for the sealer", now() + SEALER)
        return
    data = bundle_bytes(bundle, files, entries, sealed)
    name = file_name(bundle)
    try:
        name = _store(storage, name, data)
    except Exception as error:
        log.error("evidence_storage_unavailable", bundle=str(bundle_id), error=type(error).__name__)
        _storage_failed(bundle, now())
        return
    _ready(bundle.id, data, name, sealed.checkpoint.size, at=now())


def file_name(bundle: EvidenceBundle) -> str:
    return f"{bundle.organization_id}/{bundle.id}.zip"


def bundle_bytes(
    bundle: EvidenceBundle, files: dict[str, bytes], entries: list[dict[str, object]], sealed: Sealed
) -> bytes:
    """Verified with the verifier that goes with it, and every decision made again: nothing leaves that is not true."""
    documents = [*entries, entry_collected(_anchor(bundle)).document]
    proven = []
    for document in documents:
        position, proof = sealed.places[str(document["id"])]
        proven.append({**document, "position": position, "proof": proof})
    data = verifier.bundle_write(files, proven, sealed.checkpoint.text, sealed.verifier_key)
    faults = [*verifier.verify(data).faults, *recompute(files)]
    if faults:
        raise NotTrue(faults[0])
    return data


def _anchor(bundle: EvidenceBundle) -> LedgerEntry:
    return LedgerEntry.objects.get(id=str(bundle.anchor))


def _store(storage: Storage, name: str, data: bytes) -> str:
    """A file that a killed run left behind has the same bytes and gives way."""
    if storage.exists(name):
        storage.delete(name)
    return storage.save(name, ContentFile(data))


def _later(bundle: EvidenceBundle, progress: str, resume_at: datetime) -> None:
    rows = EvidenceBundle.objects.filter(id=bundle.id, state=EvidenceState.BUILDING)
    rows.update(progress=progress, resume_at=resume_at)


def _storage_failed(bundle: EvidenceBundle, at: datetime) -> None:
    tries = bundle.tries + 1
    if tries >= MOST_TRIES:
        evidence_fail(bundle_id=bundle.id, problem=EvidenceStorageUnavailable.code, at=at)
        return
    EvidenceBundle.objects.filter(id=bundle.id, state=EvidenceState.BUILDING).update(tries=tries)
    _later(bundle, "the storage does not answer, trying again", at + timedelta(seconds=5 * 2**tries))


def _ready(bundle_id: UUID, data: bytes, name: str, checkpoint_size: int, *, at: datetime) -> None:
    with transaction.atomic():
        bundle = _lock(bundle_id)
        if bundle is None:
            return
        bundle.state, bundle.progress, bundle.draft = EvidenceState.READY, "", None
        bundle.sha256, bundle.size = hashlib.sha256(data).hexdigest(), len(data)
        bundle.storage_name, bundle.checkpoint_size, bundle.built_at = name, checkpoint_size, at
        bundle.save(
            update_fields=[
                "state",
                "progress",
                "draft",
                "sha256",
                "size",
                "storage_name",
                "checkpoint_size",
                "built_at",
            ]
        )
        facts: dict[str, object] = {"sha256": bundle.sha256, "size": bundle.size, "checkpoint_size": checkpoint_size}
        evidence_record(bundle, "evidence.built", actor=SYSTEM, at=at, payload=facts)


def evidence_fail(*, bundle_id: UUID, problem: str, at: datetime) -> None:
    with transaction.atomic():
        bundle = _lock(bundle_id)
        if bundle is None:
            return
        bundle.state, bundle.progress, bundle.problem, bundle.draft = EvidenceState.FAILED, "", problem, None
        bundle.save(update_fields=["state", "progress", "problem", "draft"])
        evidence_record(bundle, "evidence.failed", actor=SYSTEM, at=at, payload={"problem": problem})


def _lock(bundle_id: UUID) -> EvidenceBundle | None:
    """FOR NO KEY UPDATE; None when it has ended."""
    rows = EvidenceBundle.objects.select_for_update(no_key=True, of=("self",))
    return rows.filter(id=bundle_id, state__in=UNFINISHED).first()
