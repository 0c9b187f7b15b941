"""Faults of the record: each is recorded once and stops what it touches; only two people let work go on."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction

from governance.enforcement.sql import send_lock_exclude
from governance.integrity.models import RecordAcceptance, RecordFault
from governance.integrity.selectors.standing import faults_open, record_denials
from governance.integrity.states import RECORD_DIFFERS, FoundBy
from governance.ledger.services import ledger_append
from governance.record.services.verify import RecordDifference
from governance.shutdown.models import Shutdown
from governance.shutdown.selectors import shutdown_preview
from governance.shutdown.states import ShutdownScope
from reasoncodes.base.actors import SYSTEM, Actor
from reasoncodes.base.tenancy import every_tenant

log = structlog.get_logger("holdpoint.record")
# Longer words are cut: the column is short, and the full check names everything.
LONGEST = 200


def faults_record(*, found: Sequence[RecordDifference], found_by: FoundBy, at: datetime) -> list[RecordFault]:
    """Record what is new among these, and stop what it touches. Faults that are known already change nothing."""
    if not found:
        return []
    with every_tenant(), transaction.atomic():
        # Exclusively, like every shutdown: no intent commits after it. And two finders at once record a fault once.
        send_lock_exclude()
        fresh = [fault for one in found if (fault := _new(one, found_by, at)) is not None]
        for fault in fresh:
            fault.save()
            ledger_append(
                action="record.fault_found",
                organization_id=fault.organization_id,
                subject_type="record_fault",
                subject_id=fault.id,
                actor=SYSTEM,
                at=at,
                payload={"table": fault.table, "row": fault.row, "found_by": fault.found_by},
                reason_code=RECORD_DIFFERS,
            )
        for organization_id in {fault.organization_id for fault in fresh}:
            _deny(organization_id, [one for one in fresh if one.organization_id == organization_id], at)
    for fault in fresh:
        log.error("record_differs", fault_id=str(fault.id), table=fault.table)
    return fresh


def _new(one: RecordDifference, found_by: FoundBy, at: datetime) -> RecordFault | None:
    what = one.what[:LONGEST]
    if RecordFault.objects.filter(table=one.table, row=one.id, what=what).exists():
        return None
    return RecordFault(
        organization_id=one.organization_id, table=one.table, row=one.id, what=what, found_by=found_by, found_at=at
    )


def _deny(organization_id: UUID | None, faults: Sequence[RecordFault], at: datetime) -> None:
    """Stop the organization that the rows belong to; everything, if they belong to none."""
    if any(one.organization_id in (None, organization_id) for one in record_denials()):
        return
    scope = ShutdownScope.ORGANIZATION if organization_id else ShutdownScope.GLOBAL
    named = [{"table": one.table, "row": one.row, "words": f"{one.table} {one.row}: {one.what}"} for one in faults[:20]]
    shutdown = Shutdown(
        scope=scope,
        organization_id=organization_id,
        target=RECORD_DIFFERS,
        reason_code=RECORD_DIFFERS,
        preview=shutdown_preview(scope=scope, organization_id=organization_id, target="") | {"findings": named},
        engaged_by_kind=SYSTEM.kind.value,
        engaged_by_ref="",
        engaged_at=at,
    )
    shutdown.save(force_insert=True)
    ledger_append(
        action="shutdown.engaged",
        organization_id=organization_id,
        subject_type="shutdown",
        subject_id=shutdown.id,
        actor=SYSTEM,
        at=at,
        payload={"scope": shutdown.scope, "target": shutdown.target, "drill": False},
        reason_code=RECORD_DIFFERS,
    )


def faults_accept(
    *, actor: Actor, actor_ref: str, at: datetime, fault_ids: Sequence[UUID], authority_change_id: UUID
) -> list[UUID]:
    """Two people have looked at these faults. Shutdowns that no open fault keeps are released. Runs in the transaction
    of the authority change."""
    with every_tenant():
        accepted = list(faults_open().filter(id__in=list(fault_ids)))
        for fault in accepted:
            RecordAcceptance(fault=fault, authority_change=authority_change_id, at=at).save()
            ledger_append(
                action="record.fault_accepted",
                organization_id=fault.organization_id,
                subject_type="record_fault",
                subject_id=fault.id,
                actor=actor,
                at=at,
                payload={"table": fault.table, "row": fault.row, "authority_change": str(authority_change_id)},
                reason_code=RECORD_DIFFERS,
            )
        for denial in record_denials():
            _release_if_explained(denial, actor, actor_ref, at)
    return [fault.id for fault in accepted]


def _release_if_explained(denial: Shutdown, actor: Actor, actor_ref: str, at: datetime) -> None:
    left = faults_open()
    if denial.organization_id is not None:
        left = left.filter(organization_id=denial.organization_id)
    else:
        left = left.filter(organization=None)
    if left.exists():
        return
    denial.release()
    denial.released_by_ref, denial.released_at = actor_ref, at
    denial.save(update_fields=["state", "released_by_ref", "released_at"])
    ledger_append(
        action="shutdown.released",
        organization_id=denial.organization_id,
        subject_type="shutdown",
        subject_id=denial.id,
        actor=actor,
        at=at,
        payload={"scope": denial.scope, "target": denial.target, "drill": False},
        reason_code=RECORD_DIFFERS,
    )
