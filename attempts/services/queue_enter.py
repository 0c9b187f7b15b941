"""Into the queue: an attempt that is released while a cap is full waits for a place, and not for ever."""

from datetime import datetime, timedelta

from attempts.models import Attempt, Slot
from attempts.services.quarantine_open import documents_of
from attempts.services.transition import entry_build
from attempts.states import RuntimeMode
from governance.models import LedgerEntry
from reasoncodes.actors import Actor


def queue_enter(attempt: Attempt, *, timeout_seconds: int, actor: Actor, at: datetime) -> LedgerEntry:
    """Before the transition to approved, which then does not make it eligible. The caller inserts the entry."""
    attempt.queued_until = at + timedelta(seconds=timeout_seconds)
    until = {"queued_until": attempt.queued_until.isoformat()}
    return entry_build(attempt, "attempt.queued", actor=actor, at=at, payload=until)


def queue_if_placeless(attempt: Attempt, *, actor: Actor, at: datetime) -> LedgerEntry | None:
    """For a review that ends with approval: the attempt was taken in without a place if the caps were full then."""
    rules = documents_of(attempt)["concurrency_and_locks"]
    if attempt.runtime_mode == RuntimeMode.SHADOW or rules["when_busy"] != "queue":
        return None
    if Slot.objects.filter(attempt_id=attempt.id).exists():
        return None
    return queue_enter(attempt, timeout_seconds=rules["queue_timeout_seconds"], actor=actor, at=at)
