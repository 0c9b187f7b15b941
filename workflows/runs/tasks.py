"""Doors of the worker and the clock. Ids only; the rows decide whether there is anything to do."""

from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from reasoncodes.base.tenancy import every_tenant
from workflows.runs.services import bulk
from workflows.runs.services import clock as timing
from workflows.runs.services import dispatch as hand_out
from workflows.runs.services.signal_follow import nudge_follow as follow


@shared_task(name="workflows.tasks.nudge_follow")
def nudge_follow(nudge_id: str) -> None:
    with every_tenant():
        follow(nudge_id=UUID(nudge_id), at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.nudges_due")
def nudges_due() -> None:
    with every_tenant():
        timing.nudges_due(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.steps_time_out")
def steps_time_out() -> None:
    with every_tenant():
        timing.steps_time_out(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.step_retries_due")
def step_retries_due() -> None:
    with every_tenant():
        timing.step_retries_due(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.deadlines_pass")
def deadlines_pass() -> None:
    with every_tenant():
        timing.deadlines_pass(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.instances_hand_out")
def instances_hand_out() -> None:
    with every_tenant():
        hand_out.instances_hand_out(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.bulk_work")
def bulk_work(bulk_id: str) -> None:
    with every_tenant():
        bulk.bulk_work(bulk_id=UUID(bulk_id), now=timezone.now, region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.bulks_resume")
def bulks_resume() -> None:
    with every_tenant():
        for bulk_id in bulk.bulks_due():
            bulk.bulk_work(bulk_id=bulk_id, now=timezone.now, region=settings.DEPLOYMENT_REGION)
