"""The clock's task: proposals that nobody confirmed lapse."""

from celery import shared_task
from django.utils import timezone

from governance.authority.services.changes import authority_lapse_due
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="governance.tasks.authority_lapse")
def authority_lapse_task() -> None:
    with every_tenant():
        authority_lapse_due(at=timezone.now())
