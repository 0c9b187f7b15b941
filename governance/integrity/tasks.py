"""The scheduled check of the record."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from governance.integrity.configured import watch_seconds
from governance.integrity.services.watch import LastLook, record_watch
from reasoncodes.base.tenancy import every_tenant

_last = LastLook()  # of this process


@shared_task(name="governance.tasks.record_watch", bind=True)
def record_watch_task(self: Any) -> None:
    # Called by hand, and not by a message, it always looks.
    last = _last if self.request.id else None
    with every_tenant():
        record_watch(at=timezone.now(), seconds=watch_seconds(), last=last)
