"""The second half of a build: proofs to one signed head, the zip, the storage, and only then `ready`.

Safe to be killed, to be run twice and to be run by several at once: what was collected is fixed, so every run writes
the same bytes. The file is written before `ready` is committed and outside any transaction: one that stays open while
a storage answers would hold the sealer up."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import InterfaceError, OperationalError, connection, transaction

from governance.evidence.errors import EvidenceInconsistent, EvidenceStorageUnavailable
from governance.evidence.hooks import collector_for
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import Collected, CollectedEntry, Material, content_files, recompute
from governance.evidence.selectors import (
    Sealed,
    decisions_collected,
    entries_about,
    entries_sealed,
    entry_collected,
    people_collected,
    snapshots_collected,
)
from governance.evidence.services.request import PATIENCE, evidence_record
from governance.evidence.states import EvidenceState
from governance.ledger.models import LedgerEntry
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import InternalError
from sdk import holdpoint_verify as verifier

ENTRIES = "entries.json"


def _evidence_collect(*, bundle_id: UUID, at: datetime) -> EvidenceBundle | None:
    """None when somebody else has done it, or is at it."""
    with transaction.atomic():
        rows = EvidenceBundle.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        bundle = rows.filter(id=bundle_id, state=EvidenceState.REQUESTED).first()
        if bundle is None:
            return None
        material = collector_for(bundle.subject_kind).collect(subject_id=bundle.subject_id)
        collected = _collected(bundle, material)
        files = content_files(collected)
        entries = [entry.document for entry in collected.entries]
        payload = verifier.anchor_payload(
            files, entries, organization=collected.organization["slug"], subject=material.subject.as_json()
        )
        bundle.anchor = evidence_record(bundle, verifier.ANCHOR, actor=SYSTEM, at=at, payload=payload)
        bundle.draft = verifier.zip_write({**files, ENTRIES: verifier.canonical(entries)})
        bundle.covers = _covers(collected)
        bundle.entries = sum(1 for entry in entries if entry["subject_id"] != str(bundle.id))
        bundle.state, bundle.progress = EvidenceState.BUILDING, "waiting for the sealer"
        bundle.save(update_fields=["anchor", "covers", "draft", "entries", "state", "progress"])
        return bundle


def _covers(collected: Collected) -> list[UUID]:
    """Once one of these is erased by order, the bundle is too."""
    people = [UUID(person.opening["user_id"]) for person in collected.people if person.opening is not None]
    return sorted({*collected.material.record, *people})


def draft_read(bundle: EvidenceBundle) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    """The files and the entries that were collected."""
    files, _ = verifier.zip_read(bytes(bundle.draft or b""))
    entries = json.loads(files.pop(ENTRIES))
    return files, entries


def _collected(bundle: EvidenceBundle, material: Material) -> Collected:
    """The request itself is among the entries: the bundle says who asked for it."""
    subjects = material.record | {bundle.id}
    entries = [
        entry_collected(entry) for entry in entries_about(organization_id=bundle.organization_id, subjects=subjects)
    ]
    decisions = decisions_collected(decision_ids=material.decisions)
    organization = Organization.objects.get(id=bundle.organization_id)
    return Collected(
        material=material,
        organization={"slug": organization.slug, "name": organization.name},
        decisions=decisions,
        snapshots=snapshots_collected(decisions=decisions, more=material.snapshots),
        people=people_collected(organization_id=bundle.organization_id, rows=_naming(material, entries)),
        entries=entries,
    )


def _naming(material: Material, entries: list[CollectedEntry]) -> list[dict[str, object]]:
    """Rows that name people or services."""
    return [
        *(entry.document for entry in entries),
        *material.attempts,
        *material.transitions,
        *material.reviews,
        *material.votes,
        *material.quarantine,
        *material.interventions,
    ]


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
        _evidence_fail(bundle_id=bundle_id, problem=code, at=now())


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
    _evidence_collect(bundle_id=bundle_id, at=now())
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
        _evidence_fail(bundle_id=bundle.id, problem=EvidenceStorageUnavailable.code, at=at)
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


def _evidence_fail(*, bundle_id: UUID, problem: str, at: datetime) -> None:
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
