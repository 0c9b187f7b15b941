"""The console's scheduled task."""

from celery import shared_task
from django.utils import timezone

from governance.console.services import minutes_count
from reasoncodes.base.tenancy import every_tenant


@shared_task(name="governance.tasks.intake_minutes_count")
def intake_minutes_count_task() -> None:
    """Counts decisions for the dashboard. Nothing depends on it: a minute that is not counted yet is read from the
    decisions."""
    with every_tenant():
        minutes_count(at=timezone.now())
