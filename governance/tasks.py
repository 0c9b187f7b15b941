"""Doors of the worker and the clock to the record."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.core.files.storage import Storage, storages
from django.utils import timezone

from governance.deny_mode import ledger_guard
from governance.ledger.configured import known_keys, sealing_key
from governance.selectors.epoch import ledger_denial
from governance.selectors.evidence import bundles_due, bundles_to_remove
from governance.selectors.witness import heads_due
from governance.services import erasure, export, seal, verification
from governance.services import evidence_build as evidence
from governance.services.evidence_erase import evidence_remove as bundle_remove
from governance.services.intake_minutes import minutes_count
from governance.services.witness_push import witness_push
from governance.witnesses import witnesses_configured
from reasoncodes.tenancy import every_tenant


@shared_task
def ledger_check() -> None:
    ledger_guard()


@shared_task
def ledger_seal() -> None:
    """Nothing is sealed in deny mode: it would sign a second history."""
    with every_tenant():
        if ledger_denial() is None:
            seal.ledger_seal_all(at=timezone.now(), key=sealing_key())


@shared_task
def evidence_build(bundle_id: str) -> None:
    with every_tenant():
        evidence.evidence_build(bundle_id=UUID(bundle_id), now=timezone.now, storage=storages["evidence"])


@shared_task
def evidence_resume() -> None:
    """Those that wait for the sealer or the storage, and those whose worker died."""
    with every_tenant():
        for bundle_id in bundles_due():
            evidence.evidence_build(bundle_id=bundle_id, now=timezone.now, storage=storages["evidence"])
        for bundle_id in bundles_to_remove():
            bundle_remove(bundle_id=bundle_id, storage=storages["evidence"], at=timezone.now())


@shared_task
def evidence_remove(bundle_id: str) -> None:
    with every_tenant():
        bundle_remove(bundle_id=UUID(bundle_id), storage=storages["evidence"], at=timezone.now())


@shared_task
def witnesses_push() -> None:
    """Asked before told: a head of another history must not become the newest that a witness holds."""
    due = [witness for witness in witnesses_configured() if heads_due(witness=witness.name, limit=1)]
    if due and ledger_guard():
        with every_tenant():
            for witness in due:
                witness_push(at=timezone.now(), witness=witness)


@shared_task
def ledger_verify(verification_id: str) -> None:
    with every_tenant():
        verification.verification_work(
            verification_id=UUID(verification_id),
            now=timezone.now,
            witnesses=witnesses_configured(),
            keys=known_keys(),
        )


def exports_storage() -> Storage:
    return storages["exports"]


@shared_task
def erasure_work(order_id: str) -> None:
    with every_tenant():
        erasure.erasure_work(order_id=UUID(order_id), now=timezone.now)


@shared_task
def erasures_resume() -> None:
    """Goes on with what people ordered; it orders nothing."""
    with every_tenant():
        for order_id in erasure.erasures_due():
            erasure.erasure_work(order_id=order_id, now=timezone.now)


@shared_task
def export_build(export_id: str) -> None:
    with every_tenant():
        export.export_build(
            export_id=UUID(export_id),
            now=timezone.now,
            storage=exports_storage(),
            keep_for=timedelta(days=settings.EXPORT_DAYS),
        )


@shared_task
def exports_resume() -> None:
    with every_tenant():
        due = export.exports_due(at=timezone.now())
    for export_id in due:
        export_build(str(export_id))


@shared_task
def exports_expire() -> None:
    with every_tenant():
        export.exports_expire(at=timezone.now(), storage=exports_storage())


@shared_task
def intake_minutes_count() -> None:
    """For the dashboard. Nothing depends on it: a minute that is not counted yet is read from the decisions."""
    with every_tenant():
        minutes_count(at=timezone.now())
