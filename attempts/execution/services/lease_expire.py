"""The end of leases. What was sent under one and never answered is unknown, and only a person finds out."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db import connection

from attempts.execution.models import DispatchIntent, Receipt
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.services.due import each_due
from attempts.lifecycle.states import AttemptState
from attempts.quarantine.services.open import quarantine_open
from attempts.quarantine.states import QuarantineCategory
from reasoncodes.base.actors import CLOCK

PAGE = 100
MOST_PER_TICK = 1000
# Pages by key, so that rows which cannot be handled are passed by and do not fill every page.
DUE = """
SELECT lease_expires_at, id FROM attempts_attempt
WHERE state = 'approved-for-execution' AND lease_expires_at <= statement_timestamp()
  AND (lease_expires_at, id) > (%s, %s)
ORDER BY lease_expires_at, id LIMIT %s
"""
START = ("-infinity", UUID(int=0))
LOCK = """
SELECT 1 FROM attempts_attempt
WHERE id = %s AND state = 'approved-for-execution' AND lease_expires_at <= statement_timestamp()
FOR NO KEY UPDATE SKIP LOCKED
"""


def leases_expire() -> int:
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
    """Its time is the lease's end, not the tick's. Looked at again under the lock: another beat may have been here."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [attempt_id])
        if cursor.fetchone() is None:
            return False
    attempt = Attempt.objects.get(id=attempt_id)
    if attempt.lease_expires_at is None:
        return False
    if _unanswered(attempt):
        quarantine_open(
            attempt,
            actor=CLOCK,
            at=attempt.lease_expires_at,
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
    """Nothing was sent under it, so it is as if it had not been: the next lease is what goes on record."""
    if attempt.state != AttemptState.APPROVED:
        return
    attempt.next_eligible_at = attempt.next_eligible_at or attempt.lease_expires_at
    attempt.lease_expires_at, attempt.lease_owner = None, ""
    attempt.save(update_fields=["next_eligible_at", "lease_expires_at", "lease_owner"])
