"""Tasks that belong to no app."""

from celery import shared_task
from django.utils import timezone

from config.heartbeat import heartbeat_beat
from governance.outages.services import clock_beat


@shared_task(name="config.tasks.heartbeat")
def heartbeat_task() -> None:
    """Shows that beat schedules and a worker works; `/health/ready` reads its age, and a gap is an
    outage."""
    heartbeat_beat(at=timezone.now())
    clock_beat()
