"""Celery tasks of webhooks. They carry no data: the rows say whether there is anything to do, so a repeated task does
no harm."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from reasoncodes.base.tenancy import every_tenant
from workflows.webhooks.configured import webhook_private_hosts
from workflows.webhooks.services.gather import deliveries_trim, ledger_gather
from workflows.webhooks.services.sender import deliveries_send


@shared_task(name="workflows.tasks.webhooks_gather")
def webhooks_gather_task() -> None:
    with every_tenant():
        ledger_gather(at=timezone.now())


@shared_task(name="workflows.tasks.webhooks_deliver")
def webhooks_deliver_task() -> None:
    with every_tenant():
        deliveries_send(
            now=timezone.now, private_hosts=webhook_private_hosts(), senders=settings.HOLDPOINT_WEBHOOK_SENDERS
        )


@shared_task(name="workflows.tasks.webhooks_trim")
def webhooks_trim_task() -> None:
    with every_tenant():
        deliveries_trim(at=timezone.now(), keep=timedelta(days=settings.HOLDPOINT_WEBHOOK_KEEP_DAYS))
