"""Doors of the worker and the clock. Ids only; the rows decide whether there is anything to do."""

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from reasoncodes.tenancy import every_tenant
from workflows import streams
from workflows.services import bulk_work as bulk
from workflows.services import hand_out, outbox, timing
from workflows.services.nudge_follow import nudge_follow as follow
from workflows.services.webhook_deliver import deliveries_send
from workflows.services.webhook_gather import ledger_gather
from workflows.services.webhook_keep import deliveries_trim
from workflows.webhooks.configured import webhook_private_hosts


@shared_task
def nudge_follow(nudge_id: str) -> None:
    with every_tenant():
        follow(nudge_id=UUID(nudge_id), at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task
def nudges_due() -> None:
    with every_tenant():
        timing.nudges_due(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task
def steps_time_out() -> None:
    with every_tenant():
        timing.steps_time_out(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task
def step_retries_due() -> None:
    with every_tenant():
        timing.step_retries_due(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task
def deadlines_pass() -> None:
    with every_tenant():
        timing.deadlines_pass(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task
def instances_hand_out() -> None:
    with every_tenant():
        hand_out.instances_hand_out(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task
def outbox_relay() -> None:
    with every_tenant():
        outbox.outbox_relay(at=timezone.now())


@shared_task
def streams_tidy() -> None:
    streams.streams_tidy(max_age_ms=settings.STREAM_DAYS * 24 * 3600 * 1000)


@shared_task
def bulk_work(bulk_id: str) -> None:
    with every_tenant():
        bulk.bulk_work(bulk_id=UUID(bulk_id), now=timezone.now, region=settings.DEPLOYMENT_REGION)


@shared_task
def bulks_resume() -> None:
    with every_tenant():
        for bulk_id in bulk.bulks_due():
            bulk.bulk_work(bulk_id=bulk_id, now=timezone.now, region=settings.DEPLOYMENT_REGION)


@shared_task
def webhooks_gather() -> None:
    with every_tenant():
        ledger_gather(at=timezone.now())


@shared_task
def webhooks_deliver() -> None:
    with every_tenant():
        deliveries_send(
            now=timezone.now, private_hosts=webhook_private_hosts(), senders=settings.HOLDPOINT_WEBHOOK_SENDERS
        )


@shared_task
def webhooks_trim() -> None:
    with every_tenant():
        deliveries_trim(at=timezone.now(), keep=timedelta(days=settings.HOLDPOINT_WEBHOOK_KEEP_DAYS))
