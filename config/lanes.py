"""Lanes: kinds of work that never wait for each other. Each has its own queue and its own worker, a process with a pool
of threads; a receiver that hangs can fill one lane and stops no other."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from celery import Task

CLOCK, DISPATCH, ADAPTERS = "clock", "dispatch", "adapters"
WEBHOOKS, NOTIFICATIONS, EVIDENCE = "webhooks", "notifications", "evidence"
QUEUE = "lane."


@dataclass(frozen=True, slots=True)
class Lane:
    """`words` say what it does, for people."""

    words: str
    tasks: frozenset[str]


# In the order of starting. A task that stands in none fails `make check`.
LANES: Final[Mapping[str, Lane]] = {
    CLOCK: Lane(
        "ends what is due; seals and compares the record",
        frozenset(
            {
                "config.tasks.heartbeat",
                "governance.tasks.ledger_seal",
                "governance.tasks.witnesses_push",
                "governance.tasks.record_watch",
                "governance.tasks.ledger_check",
                "governance.tasks.authority_lapse",
                "attempts.tasks.review.reviews_expire",
                "attempts.tasks.review.delegations_expire",
                "attempts.tasks.execution.leases_expire",
                "attempts.tasks.quarantine.escalate_due",
                "workflows.tasks.module_calls_expire",
                "workflows.tasks.steps_time_out",
                "workflows.tasks.deadlines_pass",
            }
        ),
    ),
    DISPATCH: Lane(
        "gives free slots out, publishes events, passes signals on",
        frozenset(
            {
                "attempts.tasks.execution.retries_due",
                "attempts.tasks.execution.queue_hand_out",
                "attempts.tasks.execution.step_dispatch",
                "workflows.tasks.instances_hand_out",
                "workflows.tasks.step_retries_due",
                "workflows.tasks.nudge_follow",
                "workflows.tasks.nudges_due",
                "workflows.tasks.outbox_relay",
            }
        ),
    ),
    ADAPTERS: Lane(
        "calls the receivers of attempts, and modules",
        frozenset({"attempts.tasks.execution.attempt_dispatch", "workflows.tasks.module_calls_work"}),
    ),
    WEBHOOKS: Lane(
        "makes and sends webhook deliveries",
        frozenset(
            {
                "workflows.tasks.webhooks_gather",
                "workflows.tasks.webhooks_deliver",
                "workflows.tasks.webhooks_trim",
            }
        ),
    ),
    NOTIFICATIONS: Lane(
        "sends messages to people",
        frozenset(
            {
                "governance.tasks.sign_in_mail_send",
                "attempts.tasks.review.reviews_remind",
                "attempts.tasks.review.review_reminder_send",
                "attempts.tasks.notify.notifications_send",
                "attempts.tasks.notify.cards_refresh",
                "attempts.tasks.notify.key_ends_tell",
                "attempts.tasks.notify.holds_warn",
                "attempts.tasks.notify.chat_tidy",
            }
        ),
    ),
    EVIDENCE: Lane(
        "long work: evidence, exports, erasures, full verification, bulk interventions, counts",
        frozenset(
            {
                "governance.tasks.evidence_at_end",
                "governance.tasks.evidence_build",
                "governance.tasks.evidence_remove",
                "governance.tasks.evidence_resume",
                "governance.tasks.evidence_sweep",
                "governance.tasks.erasure_work",
                "governance.tasks.erasures_resume",
                "governance.tasks.export_build",
                "governance.tasks.exports_expire",
                "governance.tasks.exports_resume",
                "governance.tasks.intake_minutes_count",
                # A full verification reads everything: in the clock's process it would take the sealer's time.
                "governance.tasks.ledger_verify",
                "workflows.tasks.bulk_work",
                "workflows.tasks.bulks_resume",
                "workflows.tasks.streams_tidy",
            }
        ),
    ),
}
LANE_OF: Final[Mapping[str, str]] = {task: name for name, lane in LANES.items() for task in lane.tasks}
# Several runs at once send to several receivers. Of webhooks a second run wakes the first one up.
PARALLEL = frozenset(
    {
        "attempts.tasks.execution.attempt_dispatch",
        "workflows.tasks.module_calls_work",
        "attempts.tasks.notify.notifications_send",
        "workflows.tasks.webhooks_deliver",
    }
)


def queue_of(lane: str) -> str:
    return QUEUE + lane


def lanes_of(queues: Iterable[str]) -> list[str]:
    """The lanes whose queues these are; all if none is named."""
    named = [queue.removeprefix(QUEUE) for queue in queues if queue.removeprefix(QUEUE) in LANES]
    return named or list(LANES)


def route(name: str, *_: Any, **__: Any) -> dict[str, str] | None:
    """For Celery: the queue of a task."""
    lane = LANE_OF.get(name)
    return {"queue": queue_of(lane)} if lane else None


class SingleRuns:
    """Which tasks run in this process now. A second run of the same task does not begin; the first one repeats itself
    once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._again: set[str] = set()

    def begin(self, name: str) -> bool:
        with self._lock:
            if name in self._running:
                self._again.add(name)
                return False
            self._running.add(name)
            self._again.discard(name)
            return True

    def again(self, name: str) -> bool:
        """Whether somebody wanted a run meanwhile, whose rows this run may have read too early."""
        with self._lock:
            wanted = name in self._again
            self._again.discard(name)
            return wanted

    def end(self, name: str) -> None:
        with self._lock:
            self._running.discard(name)


_runs = SingleRuns()


class LaneTask(Task):  # type: ignore[misc]
    """A task without arguments runs once at a time in a process. Otherwise ticks that take longer than their interval
    would pile up and take every thread of the lane: a witness that hangs would stop the sealer."""

    Request = "config.clocks:FairRequest"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or self.name not in LANE_OF or self.name in PARALLEL:
            return self.run(*args, **kwargs)
        if not _runs.begin(self.name):
            return None
        try:
            self.run()
            # Once: a run that is wanted all the time must give its thread back. The next tick comes soon.
            if _runs.again(self.name):
                self.run()
        finally:
            _runs.end(self.name)
        return None
