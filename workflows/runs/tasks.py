"""Celery tasks of runs. They carry ids only: the rows say whether there is anything to do, so a repeated task does no
harm."""

from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from reasoncodes.base.tenancy import every_tenant
from workflows.runs.services import bulk, dispatch
from workflows.runs.services import clock as timing
from workflows.runs.services.signal_follow import signal_follow as follow


@shared_task(name="workflows.tasks.nudge_follow")
def signal_follow_task(signal_id: str) -> None:
    with every_tenant():
        follow(signal_id=UUID(signal_id), at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.nudges_due")
def signals_due_task() -> None:
    with every_tenant():
        timing.signals_due(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.steps_time_out")
def steps_time_out_task() -> None:
    with every_tenant():
        timing.steps_time_out(at=timezone.now(), region=settings.DEPLOYMENT_REGION)
        timing.steps_overdue(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.step_retries_due")
def step_retries_due_task() -> None:
    with every_tenant():
        timing.step_retries_due(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.deadlines_pass")
def deadlines_pass_task() -> None:
    with every_tenant():
        timing.deadlines_pass(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.instances_hand_out")
def instances_dispatch_task() -> None:
    with every_tenant():
        dispatch.instances_dispatch(at=timezone.now(), region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.bulk_work")
def bulk_work_task(bulk_id: str) -> None:
    with every_tenant():
        bulk.bulk_work(bulk_id=UUID(bulk_id), now=timezone.now, region=settings.DEPLOYMENT_REGION)


@shared_task(name="workflows.tasks.bulks_resume")
def bulks_resume_task() -> None:
    with every_tenant():
        for bulk_id in bulk.bulks_due():
            bulk.bulk_work(bulk_id=bulk_id, now=timezone.now, region=settings.DEPLOYMENT_REGION)
