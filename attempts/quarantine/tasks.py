"""The scheduled task of quarantine."""

from celery import shared_task
from django.utils import timezone

from attempts.quarantine.services.resolve import quarantine_escalate_due


@shared_task(name="attempts.tasks.quarantine.escalate_due")
def escalate_due_task() -> None:
    quarantine_escalate_due(at=timezone.now())
