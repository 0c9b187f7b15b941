"""The scheduled check of the record."""

from celery import shared_task
from django.utils import timezone

from governance.integrity.configured import watch_seconds
from governance.integrity.services.watch import record_watch
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="governance.tasks.record_watch")
def record_watch_task() -> None:
    with every_tenant():
        record_watch(at=timezone.now(), seconds=watch_seconds())
