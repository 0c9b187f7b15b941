"""The clock's task: proposals that nobody confirmed lapse, and exceptions of roles end."""

from celery import shared_task
from django.utils import timezone

from governance.authority.services.changes import authority_lapse_due
from governance.authority.services.exceptions import role_exceptions_end
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="governance.tasks.authority_lapse")
def authority_lapse_task() -> None:
    now = timezone.now()
    with every_tenant():
        authority_lapse_due(at=now)
        role_exceptions_end(at=now)
