"""Creates deliveries from events: one row per endpoint and event. Also trims and erases them.

There are two sources. The outbox: its relay calls `outbox_told` with what it has published. The ledger: a cursor
follows the sealed entries; their positions have no gaps and nothing is inserted before them later, so a cursor misses
nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID, uuid5

from django.db import transaction

from governance.outside.wake_up import wake_up_once
from governance.retention.models import ErasureItem, LegalHold
from governance.retention.states import HoldState
from governance.sealing.selectors.tree import SealedMove, checkpoint_latest, sealed_moves
from reasoncodes.base.actors import Actor
from workflows.events.models import OutboxEvent
from workflows.webhooks.models import WebhookAttempt, WebhookCursor, WebhookDelivery, WebhookEndpoint
from workflows.webhooks.rules.delivery import matches
from workflows.webhooks.rules.events import BY_ACTION, body_of_entry, body_of_outbox, type_of_outbox
from workflows.webhooks.selectors import any_endpoint_enabled, endpoints_enabled

TASK = "workflows.tasks.webhooks_deliver"
# Rows per transaction, and transactions per run of the task: a cursor that is far behind catches up over several runs.
BATCH = 1000
MOST_BATCHES = 50


@dataclass(frozen=True, slots=True)
class EndpointEvent:
    """An event as endpoints get it. An event without an organization concerns all of them."""

    event_id: UUID
    organization_id: UUID | None
    name: str
    subject_id: UUID
    number: int
    body: bytes


def outbox_told(rows: Sequence[OutboxEvent], at: datetime) -> None:
    """A listener of the relay: called in its transaction with published events."""
    full = [row for row in rows if row.instance_id and row.envelope]  # an erased event has no content any more
    chosen = [(row, type_of_outbox(row.event_type, row.envelope["payload"])) for row in full]
    deliveries_make([_of_outbox(row, name) for row, name in chosen if name], at=at)


def _of_outbox(row: OutboxEvent, name: str) -> EndpointEvent:
    body = body_of_outbox(name, row.envelope, instance_id=str(row.instance_id))
    return EndpointEvent(row.id, row.organization_id, name, row.instance_id or row.id, row.number, body)


def ledger_gather(*, at: datetime) -> int:
    """Make deliveries of newly sealed entries and return how many."""
    total = 0
    for _ in range(MOST_BATCHES):
        made = _gather_batch(at)
        if made is None:
            break
        total += made
    return total


def _gather_batch(at: datetime) -> int | None:
    """None: nothing is left, or another worker has the cursor."""
    with transaction.atomic():
        head = checkpoint_latest()
        cursor = _cursor(head.size if head else 0)
        if head is None or cursor is None or cursor.position >= head.size:
            return None
        last = min(cursor.position + BATCH, head.size)
        made = 0
        if any_endpoint_enabled():
            found = sealed_moves(first=cursor.position, before=last, actions=BY_ACTION)
            made = deliveries_make([_of_move(one) for one in found], at=at)
        else:
            last = head.size  # no endpoint: one that is created later gets what is sealed from then on
        WebhookCursor.objects.filter(id=cursor.id).update(position=last)
        return made


def _cursor(size: int) -> WebhookCursor | None:
    """The cursor, locked; None if another worker has it."""
    # SKIP LOCKED: one worker gathers at a time, and a second one does not wait. A lost cursor starts at the end:
    # starting at the beginning would send the whole past again.
    rows = WebhookCursor.objects.select_for_update(no_key=True, skip_locked=True)
    if not WebhookCursor.objects.exists():
        WebhookCursor.objects.bulk_create([WebhookCursor(position=size)], ignore_conflicts=True)
    return rows.first()


def _of_move(told: SealedMove) -> EndpointEvent:
    one = BY_ACTION[told.move.action]
    body = body_of_entry(
        one,
        organization_id=str(told.organization_id) if told.organization_id else None,
        subject_id=str(told.subject_id),
        reason_code=told.move.reason_code,
        attempt_id=(told.move.facts or {}).get("attempt") or "",
        at=told.at,
    )
    # An event id of its own for every move: endpoints drop a second message with the same one.
    event_id = told.entry_id if told.last else uuid5(told.entry_id, str(told.number))
    return EndpointEvent(event_id, told.organization_id, one.name, told.subject_id, told.position, body)


def deliveries_make(events: Sequence[EndpointEvent], *, at: datetime) -> int:
    """Make the deliveries of these events, in the caller's transaction. A delivery that exists already is left
    alone."""
    if not events:
        return 0
    of_all = any(event.organization_id is None for event in events)
    endpoints = endpoints_enabled(
        organization_ids=None if of_all else {event.organization_id for event in events if event.organization_id}
    )
    rows = [delivery_row(endpoint, event, at) for event in events for endpoint in _listening(endpoints, event)]
    if rows:
        # ignore_conflicts: the relay publishes a batch again after a failure; endpoint and event id are unique
        # together.
        WebhookDelivery.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True)
        wake_up_once(TASK)
    return len(rows)


def _listening(endpoints: Iterable[WebhookEndpoint], event: EndpointEvent) -> list[WebhookEndpoint]:
    return [
        one
        for one in endpoints
        if event.organization_id in {None, one.organization_id} and matches(one.events, event.name)
    ]


def delivery_row(endpoint: WebhookEndpoint, event: EndpointEvent, at: datetime) -> WebhookDelivery:
    return WebhookDelivery(
        organization_id=endpoint.organization_id,
        endpoint=endpoint,
        event_id=event.event_id,
        event_type=event.name,
        subject_id=event.subject_id,
        number=event.number,
        body=event.body,
        body_sha256=sha256(event.body).hexdigest(),
        next_try_at=at,
        created_at=at,
    )


# Each batch is a transaction of its own; what is left is trimmed by the next run.
MOST_TRIM_BATCHES = 100


def deliveries_trim(*, at: datetime, keep: timedelta) -> int:
    """Delete deliveries older than `keep`, pending ones too: nothing is tried for that long. Organizations with an
    active legal hold are left out."""
    before = _first_id(at - keep)
    on_hold = LegalHold.objects.filter(state=HoldState.ACTIVE).values("organization_id")
    total = 0
    for _ in range(MOST_TRIM_BATCHES):
        with transaction.atomic():
            rows = WebhookDelivery.objects.select_for_update(skip_locked=True).filter(id__lt=before)
            ids = list(rows.exclude(organization_id__in=on_hold).order_by("id").values_list("id", flat=True)[:BATCH])
            WebhookAttempt.objects.filter(delivery_id__in=ids).delete()
            WebhookDelivery.objects.filter(id__in=ids).delete()
        total += len(ids)
        if len(ids) < BATCH:
            break
    return total


def _first_id(at: datetime) -> UUID:
    """The smallest UUIDv7 of that millisecond, so that the primary key's index finds the oldest rows."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def deliveries_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """In the transaction of an erasure: empty the bodies about the subject, so that they cannot be read or sent
    again."""
    about = WebhookDelivery.objects.filter(
        organization_id=item.organization_id, subject_id__in={item.subject_id, *item.related}
    )
    about.exclude(body=b"").update(body=b"")
