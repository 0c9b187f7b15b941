"""From the outbox to the streams: oldest first, in order within an instance, the same event_id on every delivery."""

import json
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction
from redis.exceptions import RedisError

from attempts.adapters.event import STREAM, stream_client
from attempts.doorbell import heard, ring_once
from workflows.models import OutboxEvent
from workflows.states import OutboxStatus

log = structlog.get_logger("holdpoint.outbox")
TASK = "workflows.tasks.outbox_relay"
BATCH = 200
LONGEST_WAIT = 60
# Due ones whose instance has no older one waiting. A row that another relay is busy with is passed over, and with it
# everything behind it in the same instance.
DUE = """
SELECT o.id FROM workflows_outboxevent o
WHERE o.status = 'pending' AND o.next_try_at <= statement_timestamp()
  AND NOT EXISTS (
    SELECT 1 FROM workflows_outboxevent earlier
    WHERE earlier.instance_id = o.instance_id AND earlier.status = 'pending' AND earlier.number < o.number)
ORDER BY o.next_try_at, o.id LIMIT %s
FOR NO KEY UPDATE SKIP LOCKED
"""


def relay_ring() -> None:
    """After the commit, once per transaction."""
    ring_once(TASK)


def outbox_relay(*, at: datetime) -> int:
    """How many were published. Several relays may run: each row is one relay's."""
    heard(TASK)
    total = 0
    while True:
        with transaction.atomic():
            rows = _take()
            if not rows:
                return total
            sent = _publish(rows)
            _mark(rows, sent, at)
        total += len(sent)
        if len(sent) < len(rows):
            return total


def _take() -> list[OutboxEvent]:
    with connection.cursor() as cursor:
        cursor.execute(DUE, [BATCH])
        ids = [row[0] for row in cursor.fetchall()]
    return list(OutboxEvent.objects.filter(id__in=ids).order_by("id")) if ids else []


def _publish(rows: list[OutboxEvent]) -> set[Any]:
    """In one round trip. Whatever was not confirmed is published again later, under the same event_id."""
    try:
        pipe = stream_client().pipeline(transaction=False)
        for row in rows:
            data = json.dumps(row.envelope, separators=(",", ":"))
            pipe.xadd(STREAM + row.event_type, {"event_id": str(row.id), "data": data}, maxlen=100_000)
        answers = pipe.execute(raise_on_error=False)
    except RedisError as error:
        log.warning("outbox_unpublished", rows=len(rows), error=type(error).__name__)
        return set()
    return {row.id for row, answer in zip(rows, answers, strict=True) if not isinstance(answer, Exception)}


def _mark(rows: list[OutboxEvent], sent: set[Any], at: datetime) -> None:
    OutboxEvent.objects.filter(id__in=sent).update(status=OutboxStatus.SENT, sent_at=at)
    for row in rows:
        if row.id not in sent:
            row.tries += 1
            row.next_try_at = at + timedelta(seconds=min(2**row.tries, LONGEST_WAIT))
            row.last_error = "not confirmed by the stream"
            row.save(update_fields=["tries", "next_try_at", "last_error"])
