"""The relay from the outbox to the streams: in order within a run, with the same event_id on every delivery. Also
publishes parked events again when a person orders it."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from redis.exceptions import RedisError, ResponseError

from attempts.execution.adapters.event import RETRYABLE_ANSWERS, STREAM, answer_code, stream_client
from governance.boundary.services import note_create
from governance.ledger.services import ledger_append
from governance.outside.wake_up import wake_up_once, wake_up_received
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require
from workflows.events.models import OutboxEvent
from workflows.events.states import OutboxStatus

log = structlog.get_logger("holdpoint.outbox")
TASK = "workflows.tasks.outbox_relay"
# Rows per transaction: their locks last as long as the round trip to Valkey.
BATCH = 200
# The interval of the scheduled task: a longer wait would delay events after Valkey is back.
AWAY_WAIT = timedelta(seconds=2)
LONGEST_WAIT = 60
# After this many refusals a person must look: the event would be refused for ever, and later events of its run wait.
MOST_REFUSALS = 8
# Answers that are about the server and not about the event. They do not count as refusals: an outage must not park
# events.
SERVERS_OWN = (*RETRYABLE_ANSWERS, "MISCONF", "NOAUTH", "WRONGPASS", "NOREPLICAS")
# Due events whose run has no earlier event that is not sent yet: order within a run is promised. SKIP LOCKED: several
# relays share the work; NOT EXISTS also keeps back what is behind a row that another relay has, or behind a parked one.
DUE = """
SELECT o.id FROM workflows_outboxevent o
WHERE o.status = 'pending' AND o.next_try_at <= statement_timestamp()
  AND NOT EXISTS (
    SELECT 1 FROM workflows_outboxevent earlier
    WHERE earlier.instance_id = o.instance_id AND earlier.status IN ('pending', 'parked') AND earlier.number < o.number)
ORDER BY o.next_try_at, o.id LIMIT %s
FOR NO KEY UPDATE SKIP LOCKED
"""

Carrier = Callable[[Sequence[OutboxEvent], datetime], None]
_carriers: list[Carrier] = []


def on_call(carrier: Carrier) -> Carrier:
    """Register who takes over requests that go out over http. The relay calls it in its transaction; what it writes is
    committed with the mark that they were sent. It may use the database only."""
    if carrier not in _carriers:
        _carriers.append(carrier)
    return carrier


Listener = Callable[[Sequence[OutboxEvent], datetime], None]
_listeners: list[Listener] = []


def on_published(listener: Listener) -> Listener:
    """Register a listener. The relay calls it in its transaction with the rows that the stream confirmed, before it
    marks them as sent.

    What the listener writes is committed with that mark. If it raises, the batch is published again. It must be quick
    and may use the database only.
    """
    if listener not in _listeners:
        _listeners.append(listener)
    return listener


def relay_wake_up() -> None:
    """Wake the relay after the commit, once per transaction."""
    wake_up_once(TASK)


def outbox_relay(*, at: datetime) -> int:
    """Publish what is due and return how many that were. Several relays may run at once."""
    wake_up_received(TASK)
    total = 0
    while True:
        with transaction.atomic():
            rows = _take()
            if not rows:
                return total
            calls = [row for row in rows if row.call is not None]
            answers = _publish([row for row in rows if row.call is None]) | _carry(calls, at)
            sent = [row for row in rows if not isinstance(answers[row.id], Exception)]
            _tell(sent, at)
            _mark(rows, answers)
        total += len(sent)
        if not sent:  # the server is away or refuses: the next batch would most likely fail too
            return total


def _take() -> list[OutboxEvent]:
    with connection.cursor() as cursor:
        cursor.execute(DUE, [BATCH])
        ids = [row[0] for row in cursor.fetchall()]
    return list(OutboxEvent.objects.filter(id__in=ids).order_by("id")) if ids else []


def _carry(rows: list[OutboxEvent], at: datetime) -> dict[UUID, Any]:
    """Requests over http do not go to a stream: they are handed over, in this transaction."""
    if rows:
        for carrier in _carriers:
            carrier(rows, at)
    return {row.id: "carried" for row in rows}


def _publish(rows: list[OutboxEvent]) -> dict[UUID, Any]:
    """The stream's answer for each row, in one round trip. What was not confirmed is published again later with the
    same event_id, so that receivers can recognize it."""
    if not rows:
        return {}
    try:
        pipe = stream_client().pipeline(transaction=False)
        for row in rows:
            data = json.dumps(row.envelope, separators=(",", ":"))
            pipe.xadd(STREAM + row.event_type, {"event_id": str(row.id), "data": data})
        answers = pipe.execute(raise_on_error=False)
    except RedisError as error:
        log.warning("outbox_unpublished", rows=len(rows), error=type(error).__name__)
        return {row.id: error for row in rows}
    return {row.id: answer for row, answer in zip(rows, answers, strict=True)}


def _tell(rows: list[OutboxEvent], at: datetime) -> None:
    if rows:
        for listener in _listeners:
            listener(rows, at)


def _mark(rows: list[OutboxEvent], answers: dict[UUID, Any]) -> None:
    """Mark the rows as sent, to be tried again, or refused."""
    # By the database's now and not `at`: after a long run of batches `at` can be long ago, and a step's time counts
    # from here.
    refused = [row for row in rows if _refuses(answers[row.id])]
    away = {id_ for id_, answer in answers.items() if isinstance(answer, Exception)} - {row.id for row in refused}
    sent = answers.keys() - away - {row.id for row in refused}
    OutboxEvent.objects.filter(id__in=sent).update(status=OutboxStatus.SENT, sent_at=Now())
    OutboxEvent.objects.filter(id__in=away).update(
        tries=F("tries") + 1, next_try_at=Now() + AWAY_WAIT, last_error="not confirmed by the stream"
    )
    for row in refused:
        _refused(row, answers[row.id])


def _refuses(answer: Any) -> bool:
    return isinstance(answer, ResponseError) and answer_code(answer) not in SERVERS_OWN


def _refused(row: OutboxEvent, answer: ResponseError) -> None:
    """The stream refuses this event. After MOST_REFUSALS it is parked for a person."""
    # Only the first word of the answer is kept: the rest may repeat what was sent.
    refusals, word = row.refusals + 1, answer_code(answer)[:40]
    parked = refusals >= MOST_REFUSALS
    OutboxEvent.objects.filter(id=row.id).update(
        tries=row.tries + 1,
        refusals=refusals,
        status=OutboxStatus.PARKED if parked else OutboxStatus.PENDING,
        next_try_at=Now() + timedelta(seconds=min(2**refusals, LONGEST_WAIT)),
        last_error=f"refused by the stream: {word}",
    )
    if parked:
        about = {"event_id": str(row.id), "instance_id": str(row.instance_id) if row.instance_id else None}
        correlation = row.envelope.get("correlation_id")
        log.error("outbox_parked", event_type=row.event_type, error=word, correlation_id=correlation, **about)


@violations_recorded
def outbox_redrive(*, event_id: UUID, reason_code: str, note: str, actor: Actor, at: datetime) -> OutboxEvent:
    with transaction.atomic():
        row = OutboxEvent.objects.select_for_update(no_key=True).filter(id=event_id).first()
        if row is None or not actor.may_act_in(row.organization_id):
            raise NotFound
        reason_code_require(organization_id=row.organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        if row.status != OutboxStatus.PARKED:
            raise WrongState(f"The event is {row.status}; only parked ones are published again.")
        if not row.envelope:
            raise WrongState("What it said was erased with its run; there is nothing to publish.")
        kept = note_create(organization_id=row.organization_id, text=note)
        row.status, row.refusals, row.next_try_at = OutboxStatus.PENDING, 0, at
        row.save(update_fields=["status", "refusals", "next_try_at"])
        ledger_append(
            action="workflow.outgoing_redriven",
            organization_id=row.organization_id,
            subject_type="outbox_event",
            subject_id=row.id,
            actor=actor,
            at=at,
            reason_code=reason_code,
            payload={"event": row.event_type, "tries": row.tries}
            | ({"note": str(kept.id), "note_sha256": kept.sha256} if kept else {}),
        )
        relay_wake_up()
    return row
