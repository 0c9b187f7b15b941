"""Erasure by order, and the purge of everything whose retention is over. A person orders; a worker erases item by item,
each in its own transaction.

A database function decides at that moment whether the item may be erased, under the lock that legal holds wait for.
Safe if it is killed, runs twice, or runs in several workers: an item and its erasure commit together.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from governance.boundary.models import Note
from governance.boundary.services import note_create
from governance.ledger.models import LedgerEntry
from governance.ledger.services import actor_reference, ledger_append
from governance.outside.wake_up import wake_up
from governance.people.rules.roles import OPERATE
from governance.people.selectors.people import person_may
from governance.retention.hooks import subject_kind, subject_kinds
from governance.retention.models import ErasedPayload, ErasureItem, ErasureOrder
from governance.retention.rules import RetentionSubject, blockers_counted
from governance.retention.selectors.retention import holds_active, organizations_of
from governance.retention.states import ErasureKind, ItemState
from governance.sql.guards import refused_by_guard
from governance.tenancy.models import Organization
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
from reasoncodes.base.errors import InvalidInput, NotFound
from reasoncodes.base.ids import uuid7
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_require

TASK = "governance.tasks.erasure_work"
# How long the scheduled task leaves an order to its worker. After that the worker counts as dead.
PATIENCE = timedelta(seconds=30)
# Items per message, so that a long order does not keep other work from the worker.
BATCH = 100
ORDERED = "erasure.ordered"
NOT_ALLOWED = "not_authorized"
FAILED = "enforcement_exception"
log = structlog.get_logger("holdpoint.erasure")
# The partial index `erasure_unfinished` serves it. With the server's clock, which is the same for all workers.
DUE = """
SELECT id FROM governance_erasureorder
WHERE finished_at IS NULL AND resume_at <= statement_timestamp() ORDER BY resume_at LIMIT %s
"""
OnFinished = Callable[[ErasureOrder, datetime], None]
OnErased = Callable[[ErasureItem, Actor, datetime], None]
_finished: list[OnFinished] = []
_erased: list[OnErased] = []


def on_erasure_finished(handler: OnFinished) -> OnFinished:
    """Register a handler that is called in the transaction that finishes an order."""
    if handler not in _finished:
        _finished.append(handler)
    return handler


def on_erased(handler: OnErased) -> OnErased:
    """Register a handler that is called in the transaction that erased a subject, with the person who ordered it. Code
    that keeps copies of the subject (an evidence bundle) erases them there. An error rolls the erasure back."""
    if handler not in _erased:
        _erased.append(handler)
    return handler


def erasure_order(
    *,
    actor: Actor,
    at: datetime,
    organization_id: UUID,
    kind: ErasureKind,
    subjects: Sequence[RetentionSubject],
    reason_code: str,
    note: Note | None,
) -> ErasureOrder:
    """Order the erasure of these subjects, in the caller's transaction. The caller has checked the reason."""
    # Only people may order: neither a service nor the clock erases anything by itself.
    if actor.kind is not ActorKind.PERSON or actor.id is None or not actor.may_act_in(organization_id):
        raise NotFound
    order = ErasureOrder(
        organization_id=organization_id,
        kind=kind,
        reason_code=reason_code,
        note=note,
        ordered_by=actor.id,
        ordered_by_ref=actor_reference(actor),
        created_at=at,
        resume_at=at + PATIENCE,
    )
    order.save(force_insert=True)
    # In batches: one statement with ten thousand items would be very long.
    ErasureItem.objects.bulk_create([_item(order, one) for one in subjects], batch_size=1000)
    ledger_append(
        action=ORDERED,
        organization_id=organization_id,
        subject_type="erasure_order",
        subject_id=order.id,
        actor=actor,
        at=at,
        payload={"kind": kind.value, "count": len(subjects), "note_sha256": note.sha256 if note else None},
        reason_code=reason_code,
    )
    wake_up(TASK, order.id)
    return order


def _item(order: ErasureOrder, subject: RetentionSubject) -> ErasureItem:
    return ErasureItem(
        id=uuid7(),
        order=order,
        organization_id=order.organization_id,
        kind=subject.kind,
        subject_id=subject.id,
        not_before=subject.retention_until,
    )


def erasure_work(*, order_id: UUID, now: Callable[[], datetime]) -> int:
    """Erase one batch of an order. Returns how many items were done. A wake-up starts the next batch, so that other
    tasks can run in between."""
    order = ErasureOrder.objects.filter(id=order_id, finished_at=None).first()
    if order is None:
        return 0
    ErasureOrder.objects.filter(id=order.id).update(resume_at=now() + PATIENCE)
    items = ErasureItem.objects.filter(order=order, state=ItemState.WAITING).order_by("id").values_list("id", flat=True)
    worked = sum(erase_one(order, item_id, now()) for item_id in list(items[:BATCH]))
    if items.exists():
        # Nothing done means that another worker has the items. It continues itself, or the scheduled task does; with a
        # wake-up here, two workers could wake each other again and again.
        if worked:
            wake_up(TASK, order.id)
    else:
        _finish(order, now())
    return worked


def erasures_due() -> list[UUID]:
    """Unfinished orders that no worker has touched for a while."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [BATCH])
        return [row[0] for row in cursor.fetchall()]


def erase_one(order: ErasureOrder, item_id: UUID, at: datetime) -> bool:
    """Erase one item, or refuse it. False if another worker has it."""
    try:
        with transaction.atomic():
            return _one(order, item_id, at)
    # If the database is away, the item stays, and the scheduled task continues later. Every other error, also a
    # refusal by a trigger, refuses the item: otherwise it would be tried for ever, and the order would never finish.
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not refused_by_guard(error):
            raise
        log.error("erasure_item_failed", order=str(order.id), item=str(item_id), error=type(error).__name__)
        with transaction.atomic():
            item = _take(item_id)
            return item is not None and _end(order, item, FAILED, at)


def _one(order: ErasureOrder, item_id: UUID, at: datetime) -> bool:
    item = _take(item_id)
    if item is None:
        return False
    # Checked again at every item: the person may have lost the role since the order.
    if not _on_record(order) or not person_may(
        user_id=order.ordered_by, organization_id=order.organization_id, permission=OPERATE
    ):
        return _end(order, item, NOT_ALLOWED, at)
    # The function checks order, legal hold, quarantine, state and retention, and erases with the rights of the tables'
    # owner. Its name comes from the registered kinds, not from a request.
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {subject_kind(item.kind).door}(%s)", [item.id])
        (problem,) = cursor.fetchone()
    return _end(order, item, problem, at)


def _on_record(order: ErasureOrder) -> bool:
    """Whether the ledger says that this person gave this order. A row that somebody put into the table does not."""
    return LedgerEntry.objects.filter(
        action=ORDERED,
        organization_id=order.organization_id,
        subject_id=order.id,
        actor_kind=ActorKind.PERSON,
        actor_ref=order.ordered_by_ref,
    ).exists()


def _take(item_id: UUID) -> ErasureItem | None:
    """The item, locked, if it still waits."""
    # SKIP LOCKED: a second worker takes the next item instead of waiting for this one.
    rows = ErasureItem.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    return rows.filter(id=item_id, state=ItemState.WAITING).first()


def _end(order: ErasureOrder, item: ErasureItem, problem: str, at: datetime) -> bool:
    """Set the item done or refused, and write the ledger entry with a digest of the erased payloads."""
    # The database function has counted them.
    item.refresh_from_db(fields=["entries"])
    item.state, item.problem = ItemState.REFUSED if problem else ItemState.DONE, problem
    # The references in clear were needed only to find legal holds. Kept here, they would survive their own erasure.
    item.refs, item.finished_at = [], at
    item.save(update_fields=["state", "problem", "refs", "finished_at"])
    for handler in [] if problem else _erased:
        handler(item, orderer(order), at)
    # In a fixed order: `verify_ledger` computes the same digest from the same ids.
    ids = ErasedPayload.objects.filter(item=item).order_by("entry_id").values_list("entry_id", flat=True)
    ledger_append(
        action="erasure.refused" if problem else "erasure.done",
        organization_id=order.organization_id,
        subject_type=item.kind,
        subject_id=item.subject_id,
        actor=_answerable(order),
        at=at,
        payload={
            "order": str(order.id),
            "item": str(item.id),
            "entries": item.entries,
            "entries_sha256": entries_digest(ids),
        },
        reason_code=problem or order.reason_code,
    )
    return True


def entries_digest(ids: Iterable[UUID]) -> str:
    """Digest of the ids of erased entries, in their order. With it the ledger fixes which payloads an item erased."""
    return sha256("\n".join(str(one) for one in ids).encode()).hexdigest()


def orderer(order: ErasureOrder) -> Actor:
    return Actor(ActorKind.PERSON, order.ordered_by, frozenset({order.organization_id}))


def _answerable(order: ErasureOrder) -> Actor:
    """Whose act the ledger says it was. A forged order must not put words into the mouth of the person it names."""
    return orderer(order) if _on_record(order) else SYSTEM


def _finish(order: ErasureOrder, at: datetime) -> None:
    with transaction.atomic():
        # Two workers may get here at once; under the lock only one of them writes the entry and calls the handlers.
        locked = ErasureOrder.objects.select_for_update(no_key=True).filter(id=order.id, finished_at=None).first()
        if locked is None or ErasureItem.objects.filter(order=locked, state=ItemState.WAITING).exists():
            return
        locked.finished_at = at
        locked.save(update_fields=["finished_at"])
        states = list(ErasureItem.objects.filter(order=locked).values_list("state", flat=True))
        ledger_append(
            action="erasure.finished",
            organization_id=locked.organization_id,
            subject_type="erasure_order",
            subject_id=locked.id,
            actor=_answerable(locked),
            at=at,
            payload={"done": states.count(ItemState.DONE), "refused": states.count(ItemState.REFUSED)},
            reason_code=locked.reason_code,
        )
        for handler in _finished:
            handler(locked, at)


# Items per order: it is made in one transaction, during a request.
MOST = 10_000
# Subjects per preview. If nearly all are blocked, it would otherwise read the whole table to find the rest.
MOST_LOOKED_AT = 100_000
PAGE = 1000
FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class PurgePreview:
    """What retention no longer protects in one organization: `over` by kind, `blocked` by reason. `more`: not
    everything was checked, because of the limits MOST and MOST_LOOKED_AT."""

    organization: Organization
    over: dict[str, int] = field(default_factory=dict)
    blocked: dict[str, int] = field(default_factory=dict)
    unstamped: int = 0
    more: bool = False
    subjects: list[RetentionSubject] = field(default_factory=list, repr=False)

    @property
    def regions(self) -> str:
        return ", ".join(self.organization.regions) or "none"

    @property
    def total(self) -> int:
        return sum(self.over.values())


def purge_preview(*, actor: Actor, at: datetime, organization_ids: list[UUID] | None = None) -> list[PurgePreview]:
    """A preview for each organization that the actor may act in. Writes nothing."""
    ids = list(actor.organization_ids) if organization_ids is None else organization_ids
    if any(not actor.may_act_in(one) for one in ids):
        raise NotFound
    return [_preview(organization, at) for organization in organizations_of(ids=ids)]


def _preview(organization: Organization, at: datetime) -> PurgePreview:
    preview = PurgePreview(organization)
    holds = holds_active(organization_id=organization.id)
    looked_at = 0
    for kind, page in _due(organization, at):
        free, blocked = blockers_counted(page, holds=holds, at=at)
        preview.subjects.extend(free)
        preview.over[kind] = preview.over.get(kind, 0) + len(free)
        for code, count in blocked.items():
            preview.blocked[code] = preview.blocked.get(code, 0) + count
        looked_at += len(page)
        # Before the next page could exceed MOST.
        if len(preview.subjects) > MOST - PAGE or looked_at >= MOST_LOOKED_AT:
            return replace(preview, more=True)
    unstamped = sum(kind.unstamped(organization.id, MOST) for kind in subject_kinds())
    over = {kind: count for kind, count in preview.over.items() if count}
    return replace(preview, unstamped=unstamped, over=over)


def _due(organization: Organization, at: datetime) -> Iterator[tuple[str, list[RetentionSubject]]]:
    for kind in subject_kinds():
        after = FIRST
        # By id after the last one: OFFSET would read the earlier pages again.
        while page := kind.due(organization.id, at, after, PAGE):
            yield kind.name, page
            after = max(one.id for one in page)


@violations_recorded
def purge_order(*, actor: Actor, at: datetime, organization_id: UUID, reason_code: str, note: str = "") -> ErasureOrder:
    """Order the erasure of everything that can be erased now. The database checks each item again at its turn."""
    if not actor.may_act_in(organization_id):
        raise NotFound
    with transaction.atomic():
        reason_code_require(organization_id=organization_id, scope=Scope.INTERVENTION, code=reason_code, note=note)
        (preview,) = purge_preview(actor=actor, at=at, organization_ids=[organization_id])
        if not preview.subjects:
            raise InvalidInput("Nothing can be erased now, so nothing was ordered.")
        return erasure_order(
            actor=actor,
            at=at,
            organization_id=organization_id,
            kind=ErasureKind.PURGE,
            subjects=preview.subjects,
            reason_code=reason_code,
            note=note_create(organization_id=organization_id, text=note),
        )
