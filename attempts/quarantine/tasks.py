"""The scheduled task of quarantine."""

from celery import shared_task
from django.utils import timezone

from attempts.notify.configured import public_url
from attempts.notify.services.proposals import proposals_tell
from attempts.proposals.services import shutdowns_propose
from attempts.quarantine.services.resolve import quarantine_escalate_due


@shared_task(name="attempts.tasks.quarantine.escalate_due")
def escalate_due_task() -> None:
    quarantine_escalate_due(at=timezone.now())
    shutdowns_propose(at=timezone.now())
    proposals_tell(now=timezone.now, base_url=public_url())
