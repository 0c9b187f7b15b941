"""Celery, and all scheduled tasks in one table. A message only wakes a worker up; the rows in the database are the
truth."""

from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init

app = Celery("holdpoint", task_cls="config.lanes:LaneTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["config"])

# name: (task, seconds). django-celery-beat's tables are synchronised with it after every migrate, and compared with it
# by /health/ready. A lost wake-up costs at most the interval of its scheduled task.
SCHEDULE: dict[str, tuple[str, float]] = {
    "heartbeat": ("config.tasks.heartbeat", 5.0),
    "ledger-seal": ("governance.tasks.ledger_seal", 1.0),
    "evidence-resume": ("governance.tasks.evidence_resume", 2.0),
    "evidence-sweep": ("governance.tasks.evidence_sweep", 60.0),
    "witnesses-push": ("governance.tasks.witnesses_push", 2.0),
    "record-watch": ("governance.tasks.record_watch", 20.0),
    "ledger-check": ("governance.tasks.ledger_check", 30.0),
    "authority-lapse": ("governance.tasks.authority_lapse", 60.0),
    "intake-minutes-count": ("governance.tasks.intake_minutes_count", 60.0),
    "sign-in-mail-send": ("governance.tasks.sign_in_mail_send", 10.0),
    "reviews-expire": ("attempts.tasks.review.reviews_expire", 5.0),
    "reviews-remind": ("attempts.tasks.review.reviews_remind", 60.0),
    "delegations-expire": ("attempts.tasks.review.delegations_expire", 30.0),
    "notifications-send": ("attempts.tasks.notify.notifications_send", 2.0),
    "cards-refresh": ("attempts.tasks.notify.cards_refresh", 10.0),
    "key-ends-tell": ("attempts.tasks.notify.key_ends_tell", 600.0),
    "holds-warn": ("attempts.tasks.notify.holds_warn", 60.0),
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
    "module-calls-work": ("workflows.tasks.module_calls_work", 2.0),
    "module-calls-expire": ("workflows.tasks.module_calls_expire", 5.0),
    "streams-tidy": ("workflows.tasks.streams_tidy", 1800.0),
    "erasures-resume": ("governance.tasks.erasures_resume", 10.0),
    "exports-resume": ("governance.tasks.exports_resume", 30.0),
    "exports-expire": ("governance.tasks.exports_expire", 300.0),
    "bulks-resume": ("workflows.tasks.bulks_resume", 10.0),
    "webhooks-gather": ("workflows.tasks.webhooks_gather", 2.0),
    "webhooks-deliver": ("workflows.tasks.webhooks_deliver", 5.0),
    "webhooks-trim": ("workflows.tasks.webhooks_trim", 900.0),
}

# What each does, for the console's page of the schedule. A test fails if one is missing.
SCHEDULE_WORDS: dict[str, str] = {
    "heartbeat": "shows that beat, queue and worker work",
    "ledger-seal": "seals new entries of the ledger",
    "evidence-resume": "continues evidence bundles that are being built",
    "evidence-sweep": "requests evidence of attempts and runs that ended",
    "witnesses-push": "sends signed heads to the witnesses",
    "record-watch": "compares governed rows with the ledger",
    "ledger-check": "compares the ledger with its witnesses",
    "authority-lapse": "ends proposals that nobody confirmed in time",
    "sign-in-mail-send": "sends invitations and links for a new password",
    "intake-minutes-count": "counts decisions by the minute, for the overview",
    "reviews-expire": "ends reviews whose deadline has passed",
    "reviews-remind": "reminds people of reviews that wait",
    "notifications-send": "sends messages to people that are due",
    "cards-refresh": "updates cards in chats",
    "chat-tidy": "forgets chat links that were not used in time",
    "delegations-expire": "ends delegations whose time is over",
    "key-ends-tell": "tells people that an API key ends soon",
    "holds-warn": "warns people that open holds have nearly reached their cap",
    "leases-expire": "ends leases of executors that went silent",
    "retries-due": "re-queues attempts whose retry is due",
    "queue-hand-out": "gives free slots to queued attempts",
    "quarantine-escalate": "escalates quarantine cases that nobody looked at, and proposes shutdowns to operators",
    "steps-time-out": "ends workflow steps that got no answer in time, and marks those that are overdue",
    "step-retries-due": "repeats workflow requests whose retry is due",
    "deadlines-pass": "halts workflow runs whose deadline has passed",
    "instances-hand-out": "gives free slots to workflow runs",
    "nudges-due": "passes on signals that workflow runs have not received",
    "outbox-relay": "publishes events to the streams",
    "module-calls-work": "sends requests to modules over http",
    "module-calls-expire": "ends requests to modules whose sender died",
    "streams-tidy": "removes old messages from the streams",
    "erasures-resume": "continues erasures",
    "exports-resume": "continues exports",
    "exports-expire": "removes archives of exports after their time",
    "bulks-resume": "continues bulk interventions",
    "webhooks-gather": "prepares webhook deliveries",
    "webhooks-deliver": "sends webhook deliveries that are due",
    "webhooks-trim": "removes old webhook deliveries",
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
