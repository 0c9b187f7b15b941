"""The first half of a build: everything is read in one transaction, and the ledger says what was read.

That entry, the anchor, names the hash of every file: once it is sealed, nothing in the bundle can be changed by anybody
who cannot sign for the log. The rest of the build needs only what was collected.
"""

import json
from datetime import datetime
from uuid import UUID

from django.db import transaction

from governance.collectors import collector_for
from governance.evidence import Collected, CollectedEntry, Material, content_files
from governance.models import EvidenceBundle, Organization
from governance.selectors.evidence import (
    decisions_collected,
    entries_about,
    entry_collected,
    people_collected,
    snapshots_collected,
)
from governance.services.evidence_request import evidence_record
from governance.states import EvidenceState
from reasoncodes.actors import SYSTEM
from sdk import holdpoint_verify as verifier

ENTRIES = "entries.json"


def evidence_collect(*, bundle_id: UUID, at: datetime) -> EvidenceBundle | None:
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
