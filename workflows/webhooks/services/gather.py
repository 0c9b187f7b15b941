"""From what happened to deliveries: one row per endpoint and event, in the transaction that knows of the event.

Two sources. The outbox: its relay calls `outbox_told` with what it has published. The record: a cursor follows the
sealed ledger, whose positions have no gaps and to which nothing is added in between; nothing waits for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from django.db import transaction

from governance.outside.wake_up import wake_up_once
from governance.retention.models import ErasureItem, LegalHold
from governance.retention.states import HoldState
from governance.sealing.selectors.tree import SealedEntry, checkpoint_latest, sealed_entries
from reasoncodes.base.actors import Actor
from workflows.events.models import OutboxEvent
from workflows.webhooks.models import WebhookAttempt, WebhookCursor, WebhookDelivery, WebhookEndpoint
from workflows.webhooks.rules.delivery import matches
from workflows.webhooks.rules.events import BY_ACTION, body_of_entry, body_of_outbox, type_of_outbox
from workflows.webhooks.selectors import any_endpoint_enabled, endpoints_enabled

TASK = "workflows.tasks.webhooks_deliver"
BATCH = 1000
MOST_BATCHES = 50


@dataclass(frozen=True, slots=True)
class EndpointEvent:
    """An event as endpoints get it. Without an organization it concerns all of them."""

    event_id: UUID
    organization_id: UUID | None
    name: str
    subject_id: UUID
    number: int
    body: bytes


def outbox_told(rows: Sequence[OutboxEvent], at: datetime) -> None:
    """A listener of the relay: in its transaction, for events that the streams have."""
    full = [row for row in rows if row.instance_id and row.envelope]  # an erased one says nothing any more
    chosen = [(row, type_of_outbox(row.event_type, row.envelope["payload"])) for row in full]
    deliveries_make([_of_outbox(row, name) for row, name in chosen if name], at=at)


def _of_outbox(row: OutboxEvent, name: str) -> EndpointEvent:
    body = body_of_outbox(name, row.envelope, instance_id=str(row.instance_id))
    return EndpointEvent(row.id, row.organization_id, name, row.instance_id or row.id, row.number, body)


def ledger_gather(*, at: datetime) -> int:
    """How many deliveries were made. One gatherer at a time, by the cursor's row; a second one finds nothing to do."""
    total = 0
    for _ in range(MOST_BATCHES):
        made = _gather_batch(at)
        if made is None:
            break
        total += made
    return total


def _gather_batch(at: datetime) -> int | None:
    """None: all is gathered, or somebody else is at it."""
    with transaction.atomic():
        head = checkpoint_latest()
        cursor = _cursor(head.size if head else 0)
        if head is None or cursor is None or cursor.position >= head.size:
            return None
        last = min(cursor.position + BATCH, head.size)
        made = 0
        if any_endpoint_enabled():
            found = sealed_entries(first=cursor.position, before=last, actions=list(BY_ACTION))
            made = deliveries_make([_of_entry(entry) for entry in found], at=at)
        else:
            last = head.size  # nobody listens: an endpoint that is made now hears what is sealed from now on
        WebhookCursor.objects.filter(id=cursor.id).update(position=last)
        return made


def _cursor(size: int) -> WebhookCursor | None:
    """A lost cursor begins at the end: the past is not told twice."""
    rows = WebhookCursor.objects.select_for_update(no_key=True, skip_locked=True)
    if not WebhookCursor.objects.exists():
        WebhookCursor.objects.bulk_create([WebhookCursor(position=size)], ignore_conflicts=True)
    return rows.first()


def _of_entry(entry: SealedEntry) -> EndpointEvent:
    one = BY_ACTION[entry.action]
    body = body_of_entry(
        one,
        organization_id=str(entry.organization_id) if entry.organization_id else None,
        subject_id=str(entry.subject_id),
        reason_code=entry.reason_code,
        attempt_id=entry.attempt or "",
        at=entry.at,
    )
    return EndpointEvent(entry.id, entry.organization_id, one.name, entry.subject_id, entry.position, body)


def deliveries_make(events: Sequence[EndpointEvent], *, at: datetime) -> int:
    """In the caller's transaction. The same event for the same endpoint is made once, whoever asks again."""
    if not events:
        return 0
    of_all = any(event.organization_id is None for event in events)
    endpoints = endpoints_enabled(
        organization_ids=None if of_all else {event.organization_id for event in events if event.organization_id}
    )
    rows = [delivery_row(endpoint, event, at) for event in events for endpoint in _listening(endpoints, event)]
    if rows:
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


MOST_TRIM_BATCHES = 100


def deliveries_trim(*, at: datetime, keep: timedelta) -> int:
    """Those older than `keep`, pending ones too: nothing is tried for so long. Where a legal hold is active, none."""
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
    """The smallest id of that millisecond: ids begin with the moment, so the primary key finds the oldest rows."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def deliveries_erase(item: ErasureItem, actor: Actor, at: datetime) -> None:
    """In the transaction of an erasure: what was told about the subject cannot be read or sent again."""
    about = WebhookDelivery.objects.filter(
        organization_id=item.organization_id, subject_id__in={item.subject_id, *item.related}
    )
    about.exclude(body=b"").update(body=b"")
