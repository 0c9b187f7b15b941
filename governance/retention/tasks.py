"""Tasks of erasure orders and exports: do one, continue unfinished ones, remove expired archives."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.core.files.storage import Storage, storages
from django.utils import timezone

from governance.retention.services import erasure, export
from reasoncodes.base.tenancy import every_tenant


def _exports_storage_open() -> Storage:
    return storages["exports"]


@shared_task(name="governance.tasks.erasure_work")
def erasure_work_task(order_id: str) -> None:
    with every_tenant():
        erasure.erasure_work(order_id=UUID(order_id), now=timezone.now)


@shared_task(name="governance.tasks.erasures_resume")
def erasures_resume_task() -> None:
    """Continues orders that people gave. It orders nothing itself."""
    with every_tenant():
        for order_id in erasure.erasures_due():
            erasure.erasure_work(order_id=order_id, now=timezone.now)


@shared_task(name="governance.tasks.export_build")
def export_build_task(export_id: str) -> None:
    with every_tenant():
        export.export_build(
            export_id=UUID(export_id),
            now=timezone.now,
            storage=_exports_storage_open(),
            keep_for=timedelta(days=settings.EXPORT_DAYS),
        )


@shared_task(name="governance.tasks.exports_resume")
def exports_resume_task() -> None:
    with every_tenant():
        due = export.exports_due(at=timezone.now())
    for export_id in due:
        export_build_task(str(export_id))


@shared_task(name="governance.tasks.exports_expire")
def exports_expire_task() -> None:
    with every_tenant():
        export.exports_expire(at=timezone.now(), storage=_exports_storage_open())
