"""Works an order for many off, run by run, each in a transaction of its own.

Safe to be killed, to be run twice and to be run by several at once: an item is done with the change that it tells of.
"""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from attempts.doorbell import ring
from reasoncodes.errors import DomainError, InternalError, ScopeMissing
from workflows.models import BulkIntervention, BulkItem
from workflows.selectors.bulk import orderer_still
from workflows.services.act import instance_act
from workflows.services.bulk import PATIENCE, TASK
from workflows.services.intervene import Order
from workflows.states import InterventionAction

BATCH = 100
log = structlog.get_logger("holdpoint.bulk")
DUE = """
SELECT id FROM workflows_bulkintervention
WHERE finished_at IS NULL AND resume_at <= statement_timestamp() ORDER BY resume_at LIMIT %s
"""


def bulk_work(*, bulk_id: UUID, now: Callable[[], datetime], region: str) -> int:
    """One batch; how many were worked off. Rings for the next batch, so that others get their turn in between."""
    bulk = BulkIntervention.objects.select_related("note").filter(id=bulk_id, finished_at=None).first()
    if bulk is None:
        return 0
    BulkIntervention.objects.filter(id=bulk.id).update(resume_at=now() + PATIENCE)
    items = BulkItem.objects.filter(bulk=bulk, status="waiting").order_by("id").values_list("id", flat=True)
    worked = sum(_item(bulk, item_id, now(), region) for item_id in list(items[:BATCH]))
    if items.exists():
        if worked:  # otherwise somebody else is at it, or the tick will be
            ring(TASK, bulk.id)
    else:
        _finish(bulk, now())
    return worked


def bulks_due() -> list[UUID]:
    """Unfinished ones that nobody has touched for a while: the bell was unheard, or the worker died."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [BATCH])
        return [row[0] for row in cursor.fetchall()]


def _item(bulk: BulkIntervention, item_id: UUID, at: datetime, region: str) -> bool:
    """False: somebody else has it. What fails for no reason of ours is refused too, or the order would never end."""
    try:
        with transaction.atomic():
            return _one(bulk, item_id, at, region)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.error("bulk_item_failed", bulk=str(bulk.id), item=str(item_id), error=type(error).__name__)
        with transaction.atomic():
            item = _take(item_id)
            return item is not None and _set(item, "refused", InternalError.code, at)


def _one(bulk: BulkIntervention, item_id: UUID, at: datetime, region: str) -> bool:
    item = _take(item_id)
    if item is None:
        return False
    try:
        with transaction.atomic():
            actor = orderer_still(bulk=bulk, at=at)
            if actor is None:
                raise ScopeMissing
            order = Order(
                InterventionAction(bulk.action), bulk.reason_code, bulk.note.text if bulk.note else "", bulk=bulk
            )
            instance_act(instance_id=item.instance_id, order=order, actor=actor, at=at, region=region)
    except DomainError as refusal:
        return _set(item, "refused", refusal.code, at)
    return _set(item, "done", "", at)


def _take(item_id: UUID) -> BulkItem | None:
    rows = BulkItem.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    return rows.filter(id=item_id, status="waiting").first()


def _set(item: BulkItem, status: str, problem: str, at: datetime) -> bool:
    item.status, item.problem, item.finished_at = status, problem, at
    item.save(update_fields=["status", "problem", "finished_at"])
    return True


def _finish(bulk: BulkIntervention, at: datetime) -> None:
    BulkIntervention.objects.filter(id=bulk.id, finished_at=None).update(finished_at=at)
