"""Doors of the worker and the clock to the record."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.core.files.storage import Storage, storages
from django.utils import timezone

from governance.ledger.keys import SealingKey, key_read
from governance.services import erasure, export, seal
from reasoncodes.tenancy import every_tenant


def sealing_key() -> SealingKey:
    """From the environment or a file, as the settings say; see docs/operations.md."""
    return key_read(
        name=settings.LEDGER_NAME,
        text=settings.LEDGER_KEY,
        file=str(settings.LEDGER_KEY_FILE),
        create=settings.LEDGER_KEY_CREATE,
    )


@shared_task
def ledger_seal() -> None:
    with every_tenant():
        seal.ledger_seal_all(at=timezone.now(), key=sealing_key())


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
