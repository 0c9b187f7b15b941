"""Tasks of execution: execute due attempts, and the scheduled tasks for leases, retries and the queue.

They take ids only. The row decides whether there is something to do, so a task may run twice, late or never.
"""

from uuid import UUID

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from attempts.execution.services import dispatch, lease_expire, queue, work
from attempts.execution.services import outcome as retry
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="attempts.tasks.execution.attempt_dispatch")
def attempt_dispatch_task(attempt_id: str = "") -> None:
    """Executes due attempts while there are any, in fair turns. An id, which older messages have, means nothing: the
    attempt whose turn it is goes first."""
    work.attempts_work(now=timezone.now, places=work.process_places(settings.LANE_PLACES["adapters"]))


@shared_task(name="attempts.tasks.execution.step_dispatch")
def step_dispatch_task(attempt_id: str) -> None:
    """Hands the attempt of a workflow step to the outbox."""
    dispatch.attempt_dispatch(attempt_id=UUID(attempt_id), now=timezone.now)


@shared_task(name="attempts.tasks.execution.leases_expire")
def leases_expire_task() -> None:
    with every_tenant():
        lease_expire.leases_expire()


@shared_task(name="attempts.tasks.execution.retries_due")
def retries_due_task() -> None:
    with every_tenant():
        retry.retries_due()


@shared_task(name="attempts.tasks.execution.queue_hand_out")
def queue_dispatch_task() -> None:
    with every_tenant():
        queue.queue_dispatch()
