"""Requests for evidence: the newest bundle if nothing was added to the record since, otherwise a new one. Also writes
the ledger entries about bundles."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction

from governance.evidence.hooks import collector_for
from governance.evidence.models import EvidenceBundle
from governance.evidence.selectors import bundle_newest, entries_count
from governance.evidence.states import EvidenceKind, EvidenceState
from governance.ledger.services import actor_reference, ledger_append
from governance.outside.wake_up import wake_up
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound

BUILD_TASK = "governance.tasks.evidence_build"
# How long the scheduled task leaves a bundle to its worker. After that the worker counts as dead.
PATIENCE = timedelta(seconds=30)


def evidence_request(
    *, kind: EvidenceKind, subject_id: UUID, actor: Actor, at: datetime
) -> tuple[EvidenceBundle, bool]:
    """The bundle for this subject, and whether it is new."""
    with transaction.atomic():
        organization_id = collector_for(kind).organization(subject_id=subject_id)
        if not actor.may_act_in(organization_id):
            raise NotFound
        _one_at_a_time(subject_id)
        newest = bundle_newest(kind=kind, subject_id=subject_id)
        if newest is not None and _says_all(newest):
            return newest, False
        bundle = EvidenceBundle(
            organization_id=organization_id,
            subject_kind=kind,
            subject_id=subject_id,
            progress="waiting for a worker",
            actor_kind=actor.kind.value,
            requested_by_ref=actor_reference(actor),
            requested_at=at,
            resume_at=at + PATIENCE,
        )
        bundle.save(force_insert=True)
        evidence_record(bundle, "evidence.requested", actor=actor, at=at)
        wake_up(BUILD_TASK, bundle.id)
    return bundle, True


def _record_count(*, bundle: EvidenceBundle) -> int:
    """The number of ledger entries about the subject now."""
    subjects = collector_for(bundle.subject_kind).record(subject_id=bundle.subject_id)
    return entries_count(organization_id=bundle.organization_id, subjects=subjects)


def _says_all(bundle: EvidenceBundle) -> bool:
    """Whether the bundle is up to date. One that is not collected yet will be; for a collected one, the ledger must not
    have grown since."""
    if (
        bundle.state in {EvidenceState.FAILED, EvidenceState.REFUSED, EvidenceState.ERASED}
        or bundle.altered_at is not None
    ):
        return False
    return bundle.entries is None or bundle.entries == _record_count(bundle=bundle)


def _one_at_a_time(subject_id: UUID) -> None:
    """Requests for the same subject wait for each other, so that two at once get the same bundle."""
    # Until the commit. Without it the second one would not see the first one's bundle and would fail on the unique
    # constraint. The seed 5 sets these keys apart from other advisory locks over hashed names.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 5))", [f"evidence:{subject_id}"])


def evidence_record(
    bundle: EvidenceBundle, action: str, *, actor: Actor, at: datetime, payload: dict[str, object] | None = None
) -> UUID:
    """Write a ledger entry about a bundle; returns the entry's id."""
    entry = ledger_append(
        action=action,
        organization_id=bundle.organization_id,
        subject_type="evidence_bundle",
        subject_id=bundle.id,
        actor=actor,
        at=at,
        payload=payload or {"subject": {"kind": bundle.subject_kind, "id": str(bundle.subject_id)}},
    )
    return entry.id
