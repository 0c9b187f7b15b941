"""Celery tasks of events. They carry no data: the rows say whether there is anything to do, so a repeated task does no
harm."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from reasoncodes.base.tenancy import every_tenant
from workflows.events.adapters import streams
from workflows.events.services import outbox


@shared_task(name="workflows.tasks.outbox_relay")
def outbox_relay_task() -> None:
    with every_tenant():
        outbox.outbox_relay(at=timezone.now())


@shared_task(name="workflows.tasks.streams_tidy")
def streams_tidy_task() -> None:
    streams.streams_tidy(max_age_ms=settings.STREAM_DAYS * 24 * 3600 * 1000)
