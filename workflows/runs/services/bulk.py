"""The same intervention for many runs: previewed, ordered in one transaction, then done item by item by a worker."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from governance.boundary.models import Note
from governance.boundary.services import note_create, text_check
from governance.ledger.services import ledger_append
from governance.outside.wake_up import wake_up
from governance.sql.guards import refused_by_guard
from governance.tenancy.selectors import tenant_get
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import DomainError, FieldError, InternalError, InvalidInput, NotFound, ScopeMissing
from reasoncodes.base.ids import uuid7
from workflows.engine.interventions import why_not
from workflows.runs.models import BulkIntervention, BulkItem, WorkflowInstance
from workflows.runs.selectors.bulk import MOST, Targets, orderer_still, targets_facts, targets_find
from workflows.runs.selectors.start import definition_for
from workflows.runs.services.intervene import InterventionOrder, instance_act, reason_code_known
from workflows.runs.services.migrate import instance_migrate
from workflows.runs.states import InterventionAction

TASK = "workflows.tasks.bulk_work"
SAMPLE = 20
# A batch that takes longer than this is taken up by the scheduled task too; items are locked, so none is done twice.
PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """What an order would do now. `more`: the filter matches more runs than one order may have."""

    total: int
    more: bool
    legal: int
    refused: dict[str, int]  # why, and how many
    sample: list[dict[str, Any]]


def bulk_preview(*, organization_id: UUID, order: InterventionOrder, targets: Targets, at: datetime) -> BulkPreview:
    """As `targets_preview`; the reason code and the note are checked too."""
    _check(organization_id, order, targets)
    return targets_preview(organization_id=organization_id, action=order.action, targets=targets, at=at)


def targets_preview(
    *, organization_id: UUID, action: InterventionAction, targets: Targets, at: datetime
) -> BulkPreview:
    """Writes nothing. Refusals that only the locked run shows (an unresolved outcome) are not in the preview."""
    _check_targets(targets)
    facts = targets_facts(targets_find(organization_id=organization_id, targets=targets))
    _all_found(targets, {row["id"] for row in facts})
    supersedes = action == InterventionAction.SUPERSEDE
    runnable = _products_with_definition(organization_id, facts) if supersedes else None
    for row in facts:
        row["refusal"] = _refusal(row, action, runnable, at)
    refused = Counter(row["refusal"] for row in facts[:MOST] if row["refusal"])
    total = min(len(facts), MOST)
    return BulkPreview(total, len(facts) > MOST, total - refused.total(), dict(refused.most_common()), facts[:SAMPLE])


@violations_recorded
def bulk_order(
    *, organization_id: UUID, order: InterventionOrder, targets: Targets, actor: Actor, at: datetime
) -> BulkIntervention:
    """Choose the runs now; whether the action is legal for each is checked later, under that run's lock."""
    if not actor.may_act_in(organization_id) or actor.id is None:
        raise NotFound
    with transaction.atomic():
        _check(organization_id, order, targets)
        ids = list(targets_find(organization_id=organization_id, targets=targets).values_list("id", flat=True))
        _all_found(targets, set(ids))
        _refuse_none_or_too_many(ids)
        note = note_create(organization_id=organization_id, text=order.note)
        bulk = BulkIntervention(
            organization_id=organization_id,
            action=order.action,
            reason_code=order.reason_code,
            note=note,
            ordered_by=actor.id,
            actor_kind=actor.kind.value,
            created_at=at,
            resume_at=at + PATIENCE,
        )
        bulk.save(force_insert=True)
        BulkItem.objects.bulk_create([BulkItem(id=uuid7(), bulk=bulk, instance_id=id_) for id_ in ids], batch_size=1000)
        _record(bulk, targets, note, len(ids), actor=actor, at=at)
        wake_up(TASK, bulk.id)
    return bulk


def _record(
    bulk: BulkIntervention, targets: Targets, note: Note | None, count: int, *, actor: Actor, at: datetime
) -> None:
    ledger_append(
        action="workflow.bulk_ordered",
        organization_id=bulk.organization_id,
        subject_type="bulk_intervention",
        subject_id=bulk.id,
        actor=actor,
        at=at,
        payload={"action": bulk.action, "count": count, "filter": targets.as_json()}
        | ({"note": str(note.id), "note_sha256": note.sha256} if note else {}),
        reason_code=bulk.reason_code,
    )


def _check_targets(targets: Targets) -> None:
    if bool(targets.filter) == bool(targets.instance_ids):
        raise InvalidInput(
            "Say which runs: a filter with at least one criterion, or their ids.",
            errors=[FieldError("/filter", "give at least one criterion here, or instance_ids instead")],
        )


def _check(organization_id: UUID, order: InterventionOrder, targets: Targets) -> None:
    _check_targets(targets)
    reason_code_known(organization_id, order)
    text_check(text=order.note, pointer="/note")


def _all_found(targets: Targets, found: set[UUID]) -> None:
    """Refuse unknown ids."""
    # `tenant_get` tells a run of another organization, which is recorded as a violation, from one that does not exist.
    for missing in sorted(set(targets.instance_ids) - found):
        tenant_get(WorkflowInstance, missing)
        raise NotFound


def _refuse_none_or_too_many(ids: list[UUID]) -> None:
    if not ids:
        raise InvalidInput("No run matches; nothing was ordered.")
    if len(ids) > MOST:
        raise InvalidInput(
            f"More than {MOST:,} runs match. Narrow the filter, for example with created_before.",
            errors=[FieldError("/filter", f"matches more than {MOST:,} runs")],
        )


def _products_with_definition(organization_id: UUID, facts: list[dict[str, Any]]) -> set[str]:
    products = {row["context__product_id"] for row in facts}
    return {one for one in products if definition_for(organization_id=organization_id, product_id=UUID(one))}


def _refusal(row: dict[str, Any], action: InterventionAction, runnable: set[str] | None, at: datetime) -> str:
    overdue = row["deadline_at"] <= at
    said = why_not(action, state=row["state"], overdue=overdue, under_way=row["under_way"] or "")
    if not said and runnable is not None and row["context__product_id"] not in runnable:
        return "The case's product has no active definition to run under."
    return said


# Small, so that a worker is free for other tasks between two batches.
BATCH = 100
log = structlog.get_logger("holdpoint.bulk")
# By the database's clock: the clocks of two workers may differ.
DUE = """
SELECT id FROM workflows_bulkintervention
WHERE finished_at IS NULL AND resume_at <= statement_timestamp() ORDER BY resume_at LIMIT %s
"""


def bulk_work(*, bulk_id: UUID, now: Callable[[], datetime], region: str) -> int:
    """Do one batch and return how many items were done. The next batch is a task of its own."""
    bulk = BulkIntervention.objects.select_related("note").filter(id=bulk_id, finished_at=None).first()
    if bulk is None:
        return 0
    # Committed before the work: while this worker is alive the scheduled task leaves the order alone.
    BulkIntervention.objects.filter(id=bulk.id).update(resume_at=now() + PATIENCE)
    items = BulkItem.objects.filter(bulk=bulk, status="waiting").order_by("id").values_list("id", flat=True)
    worked = sum(_item(bulk, item_id, now(), region) for item_id in list(items[:BATCH]))
    if items.exists():
        if worked:  # otherwise another worker has the items, and the next batch would find the same
            wake_up(TASK, bulk.id)
    else:
        _finish(bulk, now())
    return worked


def bulks_due() -> list[UUID]:
    """Unfinished orders that no worker has touched for a while: the wake-up was lost, or the worker died."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [BATCH])
        return [row[0] for row in cursor.fetchall()]


def _item(bulk: BulkIntervention, item_id: UUID, at: datetime, region: str) -> bool:
    """False: another worker has it."""
    try:
        with transaction.atomic():
            return _one(bulk, item_id, at, region)
    # If the database is away, the item stays waiting. Every other error, also of a trigger, counts as a refusal:
    # otherwise the order would never end.
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and not refused_by_guard(error):
            raise
        log.error("bulk_item_failed", bulk=str(bulk.id), item=str(item_id), error=type(error).__name__)
        with transaction.atomic():
            item = _take(item_id)
            return item is not None and _set(item, "refused", InternalError.code, at)


def _one(bulk: BulkIntervention, item_id: UUID, at: datetime, region: str) -> bool:
    item = _take(item_id)
    if item is None:
        return False
    try:
        # A savepoint: a refusal undoes what the action has written, and the item's own row can still be marked.
        with transaction.atomic():
            actor = orderer_still(bulk=bulk, at=at)
            if actor is None:
                raise ScopeMissing
            order = InterventionOrder(
                InterventionAction(bulk.action), bulk.reason_code, bulk.note.text if bulk.note else "", bulk=bulk
            )
            perform = instance_migrate if order.action == InterventionAction.MIGRATE else instance_act
            perform(instance_id=item.instance_id, order=order, actor=actor, at=at, region=region)
    except DomainError as refusal:
        return _set(item, "refused", refusal.code, at)
    return _set(item, "done", "", at)


def _take(item_id: UUID) -> BulkItem | None:
    # SKIP LOCKED: two workers share an order without waiting for each other, and no item is done twice.
    rows = BulkItem.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    return rows.filter(id=item_id, status="waiting").first()


def _set(item: BulkItem, status: str, problem: str, at: datetime) -> bool:
    item.status, item.problem, item.finished_at = status, problem, at
    item.save(update_fields=["status", "problem", "finished_at"])
    return True


def _finish(bulk: BulkIntervention, at: datetime) -> None:
    BulkIntervention.objects.filter(id=bulk.id, finished_at=None).update(finished_at=at)
