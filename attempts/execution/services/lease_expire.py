"""Ends expired leases. An intent without a receipt makes the outcome unknown, and the attempt goes to quarantine."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db import connection

from attempts.execution.models import DispatchIntent, Receipt
from attempts.execution.selectors import lease_deadline
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.due import each_due
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.services.open import quarantine_open
from attempts.quarantine.states import QuarantineCategory
from attempts.reviews.selectors.reviews import database_now
from reasoncodes.base.actors import CLOCK

PAGE = 100
MOST_PER_TICK = 1000  # bounds one run of the scheduled task; the next one goes on
# By key instead of the first rows each time: rows that cannot be handled would otherwise fill every page.
DUE = """
SELECT lease_expires_at, id FROM attempts_attempt
WHERE state = 'approved-for-execution' AND lease_expires_at <= statement_timestamp()
  AND (lease_expires_at, id) > (%s, %s)
ORDER BY lease_expires_at, id LIMIT %s
"""
START = ("-infinity", UUID(int=0))
# The condition again, under the lock: another worker may have ended the lease, or a heartbeat extended it. SKIP LOCKED:
# a row that an executor is reporting on is left to the report, or to the next run.
LOCK = """
SELECT 1 FROM attempts_attempt
WHERE id = %s AND state = 'approved-for-execution' AND lease_expires_at <= statement_timestamp()
FOR NO KEY UPDATE SKIP LOCKED
"""


def leases_expire() -> int:
    """Ends every expired lease and returns how many there were."""
    return each_due(_due(), _expire, tick="leases_expire")


def _due() -> Iterator[UUID]:
    after: tuple[datetime | str, UUID] = START
    for _ in range(MOST_PER_TICK // PAGE):
        with connection.cursor() as cursor:
            cursor.execute(DUE, [*after, PAGE])
            rows = cursor.fetchall()
        yield from (row[1] for row in rows)
        if len(rows) < PAGE:
            return
        after = rows[-1]


def _expire(attempt_id: UUID) -> bool:
    """Ends one lease. The recorded time is the end of the lease, not the moment when the task noticed it."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [attempt_id])
        if cursor.fetchone() is None:
            return False
    attempt = Attempt.objects.get(id=attempt_id)
    if attempt.lease_expires_at is None:
        return False
    now = database_now()
    ended = lease_deadline(attempt.lease_expires_at, now=now)
    if ended > now:
        return False
    if _unanswered(attempt):
        quarantine_open(
            attempt,
            actor=CLOCK,
            at=ended,
            category=QuarantineCategory.OUTCOME_UNKNOWN,
            reason_code="outcome_unknown",
            payload={"trigger": "intent_without_receipt", "fence": attempt.lease_token, "owner": attempt.lease_owner},
        )
        return True
    _give_back(attempt)
    return True


def _unanswered(attempt: Attempt) -> bool:
    answered = Receipt.objects.filter(attempt_id=attempt.id, late=False).values("intent_id")
    return DispatchIntent.objects.filter(attempt_id=attempt.id).exclude(id__in=answered).exists()


def _give_back(attempt: Attempt) -> None:
    """Makes the attempt due again: every intent has its receipt, so nothing is unknown. Leaves no ledger entry."""
    if attempt.state != AttemptState.APPROVED:
        return
    attempt.next_eligible_at = attempt.next_eligible_at or attempt.lease_expires_at
    attempt.lease_expires_at, attempt.lease_owner = None, ""
    attempt.save(update_fields=["next_eligible_at", "lease_expires_at", "lease_owner"])
