"""Schedules another try of an attempt, and wakes workers up for attempts that are due."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.transition import entry_build
from attempts.lifecycle.states import DISPATCH, AttemptState, RuntimeMode, is_ours_to_execute
from governance.contracts.states import AdapterName
from governance.outside.wake_up import wake_up
from governance.sql.insert import insert_together
from reasoncodes.base.actors import Actor

BATCH = 200  # bounds one run of the scheduled task; the next one goes on


def retry_schedule(
    attempt: Attempt, *, due_at: datetime, actor: Actor, at: datetime, payload: Mapping[str, Any], reason_code: str
) -> None:
    """Schedules the next try of a stored and locked attempt. It keeps its slots, because it is still under way."""
    attempt.next_eligible_at = due_at
    attempt.lease_expires_at, attempt.lease_owner = None, ""
    attempt.save(update_fields=["next_eligible_at", "lease_expires_at", "lease_owner"])
    recorded = {"due_at": due_at.isoformat(), **payload}
    entry = entry_build(attempt, "attempt.retried", actor=actor, at=at, payload=recorded, reason_code=reason_code)
    insert_together([entry])


def dispatch_wake_up(attempt: Attempt) -> None:
    """Wakes a worker up after the commit, if the attempt is ours to execute. Call it after making it eligible."""
    if is_ours_to_execute(attempt):
        wake_up(DISPATCH, attempt.id)


def retries_due() -> int:
    """Wakes workers up for the oldest due attempts: due retries, and those whose first wake-up was lost."""
    # By the database's clock, as the lease itself. A wake-up too many does no harm: the lease decides.
    due = Attempt.objects.filter(
        state=AttemptState.APPROVED,
        next_eligible_at__lte=Now(),
        queued_until=None,
        runtime_mode=RuntimeMode.ACTIVE,
    ).exclude(connector=AdapterName.EXTERNAL)
    ids = list(due.order_by("next_eligible_at").values_list("id", flat=True)[:BATCH])
    # In a transaction, because `wake_up` sends on commit: all messages are sent after the query, not between.
    with transaction.atomic():
        for attempt_id in ids:
            wake_up(DISPATCH, attempt_id)
    return len(ids)
