"""Builds a bundle: collects all rows in one transaction, waits until they are sealed, adds the proofs, writes the zip
to the storage, and then sets it `ready`.

Safe if it is killed, runs twice, or runs in several workers: the collected data is fixed, so every run writes the same
bytes."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from django.db import InterfaceError, OperationalError, connection, transaction

from governance.enforcement.models import SnapshotBroken
from governance.evidence.errors import EvidenceInconsistent, EvidenceRefused, EvidenceStorageUnavailable
from governance.evidence.hooks import collector_for
from governance.evidence.models import EvidenceBundle
from governance.evidence.rules import Collected, CollectedEntry, Material, content_files, recompute, recomputed
from governance.evidence.selectors import (
    Sealed,
    carriers_collected,
    decisions_collected,
    entries_about,
    entries_sealed,
    entry_collected,
    images_collected,
    payloads_taken,
    people_collected,
    rows_bound,
    snapshots_collected,
)
from governance.evidence.services.request import PATIENCE, evidence_record
from governance.evidence.states import EvidenceState
from governance.ledger.models import LedgerEntry
from governance.sealing.configured import cosigners_configured, witness_quorum
from governance.sql.guards import refused_by_guard
from governance.tenancy.models import Organization
from reasoncodes.base.actors import SYSTEM
from reasoncodes.base.errors import InternalError
from sdk import holdpoint_verify as verifier

ENTRIES = "entries.json"
security_log = structlog.get_logger("holdpoint.security")


def _evidence_collect(*, bundle_id: UUID, at: datetime) -> EvidenceBundle | None:
    """Read everything that belongs in the bundle. None if another worker has done it or is doing it."""
    with transaction.atomic():
        # SKIP LOCKED: another worker that has the row collects the same; waiting for it gains nothing.
        rows = EvidenceBundle.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
        bundle = rows.filter(id=bundle_id, state=EvidenceState.REQUESTED).first()
        if bundle is None:
            return None
        try:
            material = collector_for(bundle.subject_kind).collect(subject_id=bundle.subject_id)
            collected = _collected(bundle, material)
        except SnapshotBroken:
            _refuse(bundle, [SNAPSHOT_LOST], at=at)
            return None
        compared = collected.compared()
        files = content_files(collected, compared.ties())
        entries = [entry.document for entry in collected.entries]
        # Before anything is recorded about the content: a bundle must not be made from rows that somebody changed.
        if differences := _differences(compared, files, entries):
            _refuse(bundle, differences, at=at)
            return None
        # The anchor: this ledger entry names the hash of every file and of the list of entries. Once it is sealed, no
        # file can change and no entry can be left out.
        payload = verifier.anchor_payload(
            files, entries, organization=collected.organization["slug"], subject=material.subject.as_json()
        )
        bundle.anchor = evidence_record(bundle, verifier.ANCHOR, actor=SYSTEM, at=at, payload=payload)
        # Kept in the row: a later run must not read the rows again, which may have changed since the anchor.
        kept = {verifier.CARRIERS: verifier.canonical(collected.carriers), ENTRIES: verifier.canonical(entries)}
        bundle.draft = verifier.zip_write({**files, **kept})
        bundle.covers = _covers(collected)
        bundle.entries = sum(1 for entry in entries if entry["subject_id"] != str(bundle.id))
        bundle.state, bundle.progress = EvidenceState.BUILDING, "waiting for the sealer"
        bundle.save(update_fields=["anchor", "covers", "draft", "entries", "state", "progress"])
        return bundle


SNAPSHOT_LOST = verifier.Difference(
    verifier.SNAPSHOT_TABLE, "", "document", "a hash", "another content, or no row", "a snapshot was changed or removed"
)


def _differences(
    compared: verifier.Comparison, files: dict[str, bytes], entries: list[dict[str, Any]]
) -> list[verifier.Difference]:
    """Everything in which the collected rows differ from the ledger, and decisions that come out differently."""
    # A vote that its person did not sign does not stop the bundle: the bundle is what tells others about it.
    found = [one for one in compared.differences if one.text not in compared.not_signed]
    for id_ in payloads_taken(entries=entries):
        told = f"entry {id_}: its payload is gone, and no order erased it"
        found.append(verifier.Difference(verifier.LEDGER_TABLE, id_, "payload", "it is kept", "it is gone", told))
    if not found:
        table = verifier.TABLES["decisions"][1]
        for id_, names in recomputed(files):
            for name in names:
                told = f"decision {id_}: its {name} comes out differently"
                found.append(verifier.Difference(table, id_, name, "its inputs give another", "what is stored", told))
    return found


# Named in one refusal. More of them say nothing more.
MOST_DIFFERENCES = 50


def _refuse(bundle: EvidenceBundle, differences: Sequence[verifier.Difference], *, at: datetime) -> None:
    """End a locked bundle as refused, with what differs."""
    named = [one.as_json() for one in differences[:MOST_DIFFERENCES]]
    bundle.state, bundle.progress, bundle.draft = EvidenceState.REFUSED, "", None
    bundle.problem, bundle.differences = EvidenceRefused.code, named
    bundle.save(update_fields=["state", "progress", "draft", "problem", "differences"])
    # Where, and not what: entries are kept longer than rows that can be erased.
    places = [{name: one[name] for name in ("table", "id", "field")} for one in named]
    payload: dict[str, object] = {"count": len(differences), "differences": places}
    evidence_record(bundle, "evidence.refused", actor=SYSTEM, at=at, payload=payload)
    # For whoever watches the logs: ids and names of columns only.
    security_log.error("evidence_refused", bundle=str(bundle.id), count=len(differences), first=places[0])


def _covers(collected: Collected) -> list[UUID]:
    """The ids of everything in the bundle. If one of them is erased by order, the bundle is erased too."""
    people = [UUID(person.opening["user_id"]) for person in collected.people if person.opening is not None]
    return sorted({*collected.material.record, *people})


def draft_read(bundle: EvidenceBundle) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    """The files and entries that were collected."""
    files, _ = verifier.zip_read(bytes(bundle.draft or b""))
    entries = json.loads(files.pop(ENTRIES))
    return files, entries


def _collected(bundle: EvidenceBundle, material: Material) -> Collected:
    """Everything that goes into the files."""
    # With the bundle's own entries: it also shows who requested it.
    subjects = material.record | {bundle.id}
    about = entries_about(organization_id=bundle.organization_id, subjects=subjects)
    bound = rows_bound(entry_ids=[entry.id for entry in about], more=sorted(material.record))
    entries = [entry_collected(entry, bound.parts.get(str(entry.id), ())) for entry in about]
    decisions = decisions_collected(decision_ids=material.decisions)
    organization = Organization.objects.get(id=bundle.organization_id)
    collected = Collected(
        material=material,
        organization={"slug": organization.slug, "name": organization.name},
        decisions=decisions,
        snapshots=snapshots_collected(decisions=decisions, more=material.snapshots),
        people=people_collected(organization_id=bundle.organization_id, rows=_naming(material, entries)),
        entries=entries,
    )
    images = images_collected(rows=collected.rows(), bound=bound)
    own = {str(entry.id) for entry in about}
    carriers = sorted({one["entry"] for one in images} - own)
    return replace(collected, images=images, carriers=carriers_collected(entry_ids=carriers, bound=bound))


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
# The sealer runs every second.
SEALER = timedelta(seconds=1)
# How long after a head was signed a bundle waits for its cosignatures.
WITNESSES = timedelta(seconds=30)
# Of the storage, with growing pauses: a few minutes in all. Then the bundle fails, and a new request builds a new one.
MOST_TRIES = 5
log = structlog.get_logger("holdpoint.evidence")


class NotTrue(ValueError):
    """The bundle that was built does not verify; the message names the first fault."""

    def __init__(self, fault: str, differences: Sequence[verifier.Difference] = ()) -> None:
        super().__init__(fault)
        self.differences = differences


def evidence_build(*, bundle_id: UUID, now: Callable[[], datetime], storage: Storage) -> None:
    """Build as far as possible now. A bundle that waits for the sealer or the storage is continued by a scheduled
    task."""
    try:
        with alone_with(bundle_id) as alone:
            if alone and _claim(bundle_id, now()):
                _go_on(bundle_id, now, storage)
    except NotTrue as error:
        log.error("evidence_not_true", bundle=str(bundle_id), differences=len(error.differences))
        _evidence_fail(bundle_id=bundle_id, problem=EvidenceInconsistent.code, at=now(), differences=error.differences)
    # If the database is away, that says nothing about the bundle, and its failure could not be recorded either.
    # Everything else ends the bundle as failed: otherwise the scheduled task would try it for ever.
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not refused_by_guard(error):
            raise
        log.error("evidence_build_failed", bundle=str(bundle_id), error=type(error).__name__, exc_info=error)
        _evidence_fail(bundle_id=bundle_id, problem=InternalError.code, at=now())


@contextmanager
def alone_with(bundle_id: UUID) -> Iterator[bool]:
    """One worker per bundle; False for the others, which do not wait."""
    # An advisory lock of the session, not of a transaction: a transaction that stays open while a storage answers would
    # delay the sealer. If the worker dies, its connection ends, and the lock with it.
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
    """Postpone the scheduled task's next try. It takes over if this process dies."""
    rows = EvidenceBundle.objects.filter(id=bundle_id, state__in=UNFINISHED)
    return bool(rows.update(resume_at=at + PATIENCE))


def _go_on(bundle_id: UUID, now: Callable[[], datetime], storage: Storage) -> None:
    _evidence_collect(bundle_id=bundle_id, at=now())
    bundle = EvidenceBundle.objects.filter(id=bundle_id, state=EvidenceState.BUILDING).first()
    if bundle is None:
        return
    files, entries = draft_read(bundle)
    wanted = entries_needed(bundle, files, entries)
    sealed = entries_sealed(entry_ids=wanted, cosigners=cosigners_configured())
    if sealed is None:
        _later(bundle, "waiting for the sealer", now() + SEALER)
        return
    # Not for ever: a bundle without cosignatures is still evidence, and a witness that is away must not stop it.
    if len(sealed.cosignatures) < witness_quorum() and now() < sealed.checkpoint.at + WITNESSES:
        _later(bundle, "waiting for the witnesses", now() + SEALER)
        return
    data = bundle_bytes(bundle, files, entries, sealed)
    name = file_name(bundle)
    # Before `ready` is committed, so that a ready bundle has its file; and outside any transaction.
    try:
        name = _store(storage, name, data)
    # Everything: each storage raises its own classes, which are not known here.
    except Exception as error:
        log.error("evidence_storage_unavailable", bundle=str(bundle_id), error=type(error).__name__)
        _storage_failed(bundle, now())
        return
    _ready(bundle.id, data, name, sealed.checkpoint.size, at=now())


def entries_needed(bundle: EvidenceBundle, files: dict[str, bytes], entries: list[dict[str, object]]) -> list[UUID]:
    """All entries whose proofs the bundle carries."""
    listed = [*entries, *json.loads(files[verifier.CARRIERS])]
    return [UUID(str(entry["id"])) for entry in listed] + [_anchor(bundle).id]


def file_name(bundle: EvidenceBundle) -> str:
    return f"{bundle.organization_id}/{bundle.id}.zip"


def bundle_bytes(
    bundle: EvidenceBundle, files: dict[str, bytes], entries: list[dict[str, object]], sealed: Sealed
) -> bytes:
    """The finished zip. It is verified with the verifier inside it, and every decision is computed again. Raises
    NotTrue."""
    anchor = _anchor(bundle)
    own = rows_bound(entry_ids=[anchor.id]).parts.get(str(anchor.id), ())
    documents = [*entries, entry_collected(anchor, own).document]
    files, carriers = {**files}, json.loads(files[verifier.CARRIERS])
    files.pop(verifier.CARRIERS)
    data = verifier.bundle_write(
        files,
        [_proven(document, sealed) for document in documents],
        sealed.cosigned,
        sealed.keys,
        [_proven(document, sealed) for document in carriers],
    )
    report = verifier.verify(data)
    # A vote that its person did not sign does not stop the bundle: the bundle is what tells others about it.
    faults = [fault for fault in report.faults if fault not in report.not_signed] + list(recompute(files))
    if faults:
        differing = [verifier.Difference(**one, text=one["id"]) for one in report.differences]
        raise NotTrue(faults[0], differing if len(differing) == len(faults) else ())
    return data


def _proven(document: dict[str, Any], sealed: Sealed) -> dict[str, Any]:
    position, proof = sealed.places[str(document["id"])]
    return {**document, "position": position, "proof": proof}


def _anchor(bundle: EvidenceBundle) -> LedgerEntry:
    return LedgerEntry.objects.get(id=str(bundle.anchor))


def _store(storage: Storage, name: str, data: bytes) -> str:
    # A run that was killed may have left the file, with the same bytes. Django would save a second one under another
    # name, and nobody would remove the first.
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
    # 10, 20, 40 and 80 seconds.
    _later(bundle, "the storage does not answer, trying again", at + timedelta(seconds=5 * 2**tries))


def _ready(bundle_id: UUID, data: bytes, name: str, checkpoint_size: int, *, at: datetime) -> None:
    with transaction.atomic():
        # Under the lock: an erasure may have ended the bundle while its file was written. It must not become ready.
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


def _evidence_fail(
    *, bundle_id: UUID, problem: str, at: datetime, differences: Sequence[verifier.Difference] = ()
) -> None:
    with transaction.atomic():
        bundle = _lock(bundle_id)
        if bundle is None:
            return
        if differences:
            _refuse(bundle, differences, at=at)
            return
        bundle.state, bundle.progress, bundle.problem, bundle.draft = EvidenceState.FAILED, "", problem, None
        bundle.save(update_fields=["state", "progress", "problem", "draft"])
        evidence_record(bundle, "evidence.failed", actor=SYSTEM, at=at, payload={"problem": problem})


def _lock(bundle_id: UUID) -> EvidenceBundle | None:
    """The row, locked FOR NO KEY UPDATE; None if the bundle has ended."""
    rows = EvidenceBundle.objects.select_for_update(no_key=True, of=("self",))
    return rows.filter(id=bundle_id, state__in=UNFINISHED).first()
