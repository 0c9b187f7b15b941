"""Celery, and all scheduled tasks in one table. A message only wakes a worker up; the rows in the database are the
truth."""

from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init

app = Celery("holdpoint")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["config"])

# name: (task, seconds). django-celery-beat's tables are synchronised with it after every migrate. A lost wake-up costs
# at most the interval of its scheduled task.
SCHEDULE: dict[str, tuple[str, float]] = {
    "heartbeat": ("config.tasks.heartbeat", 5.0),
    "ledger-seal": ("governance.tasks.ledger_seal", 1.0),
    "evidence-resume": ("governance.tasks.evidence_resume", 2.0),
    "witnesses-push": ("governance.tasks.witnesses_push", 2.0),
    "ledger-check": ("governance.tasks.ledger_check", 30.0),
    "authority-lapse": ("governance.tasks.authority_lapse", 60.0),
    "intake-minutes-count": ("governance.tasks.intake_minutes_count", 60.0),
    "reviews-expire": ("attempts.tasks.review.reviews_expire", 5.0),
    "reviews-remind": ("attempts.tasks.review.reviews_remind", 60.0),
    "notifications-send": ("attempts.tasks.notify.notifications_send", 2.0),
    "cards-refresh": ("attempts.tasks.notify.cards_refresh", 10.0),
    "chat-tidy": ("attempts.tasks.notify.chat_tidy", 60.0),
    "leases-expire": ("attempts.tasks.execution.leases_expire", 5.0),
    "retries-due": ("attempts.tasks.execution.retries_due", 2.0),
    "queue-hand-out": ("attempts.tasks.execution.queue_hand_out", 2.0),
    "quarantine-escalate": ("attempts.tasks.quarantine.escalate_due", 30.0),
    "steps-time-out": ("workflows.tasks.steps_time_out", 2.0),
    "step-retries-due": ("workflows.tasks.step_retries_due", 2.0),
    "deadlines-pass": ("workflows.tasks.deadlines_pass", 10.0),
    "instances-hand-out": ("workflows.tasks.instances_hand_out", 2.0),
    "nudges-due": ("workflows.tasks.nudges_due", 5.0),
    "outbox-relay": ("workflows.tasks.outbox_relay", 2.0),
    "streams-tidy": ("workflows.tasks.streams_tidy", 1800.0),
    "erasures-resume": ("governance.tasks.erasures_resume", 10.0),
    "exports-resume": ("governance.tasks.exports_resume", 30.0),
    "exports-expire": ("governance.tasks.exports_expire", 300.0),
    "bulks-resume": ("workflows.tasks.bulks_resume", 10.0),
    "webhooks-gather": ("workflows.tasks.webhooks_gather", 2.0),
    "webhooks-deliver": ("workflows.tasks.webhooks_deliver", 5.0),
    "webhooks-trim": ("workflows.tasks.webhooks_trim", 900.0),
}


@setup_logging.connect
def use_our_logging(**_: Any) -> None:
    """Celery must not install its own handlers: they print task arguments."""
    from django.conf import settings

    from config.logs import configure_logging

    configure_logging(level=settings.LOG_LEVEL)


@worker_init.connect
@beat_init.connect
def check_first(**_: Any) -> None:
    """Runs in the parent, before the first task: nothing may be sealed or sent if the record has lost its newest
    entries."""
    from config.startup import serving

    serving()
