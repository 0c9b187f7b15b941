"""Runs that are under way go on under another version of their definition: previewed, then moved run by run as a bulk
order, each move an input in the run's log."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from governance.boundary.services import note_create, text_check
from governance.ledger.services import ledger_append
from governance.outside.wake_up import wake_up
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import FieldError, InvalidInput, NotFound, WrongState
from reasoncodes.base.ids import uuid7
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.document import Definition
from workflows.definitions.rules.starting import input_problems
from workflows.definitions.selectors import definition_get
from workflows.definitions.states import DefinitionStatus
from workflows.engine.inputs import Migrated
from workflows.engine.migration import Crossing
from workflows.kinds.registry import kind_table
from workflows.runs.errors import MigrationNotPossible
from workflows.runs.models import BulkIntervention, BulkItem, WorkflowInstance, WorkflowIntervention
from workflows.runs.rules import MIGRATED
from workflows.runs.selectors.bulk import MOST
from workflows.runs.selectors.locked import definition_of, definition_read, steps_needed
from workflows.runs.selectors.migration import came_from, definition_version, runs_under
from workflows.runs.selectors.run import instance_lock
from workflows.runs.services.advance import LoggedInput, instance_advance
from workflows.runs.services.intervene import InterventionOrder, intervention_record, reason_code_known, run_summary
from workflows.runs.services.rows import state_of
from workflows.runs.states import STEP_OPEN, InterventionAction

TASK = "workflows.tasks.bulk_work"
PATIENCE = timedelta(seconds=30)
DEFAULT_REASON = "planned_maintenance"


@dataclass(frozen=True, slots=True)
class Passage:
    """From one version to another of the same slug. `mapping`: old step to new step, where they differ."""

    old: WorkflowDefinition
    new: WorkflowDefinition
    mapping: Mapping[str, str]

    @property
    def is_way_back(self) -> bool:
        return bool(self.new.state != DefinitionStatus.ACTIVE)

    def runs(self) -> list[WorkflowInstance]:
        organization_id = self.old.organization_id
        if organization_id is None:
            return []
        return runs_under(organization_id=organization_id, definition_id=self.old.id, limit=MOST)


@dataclass(frozen=True, slots=True)
class Traveller:
    """A run, and why it cannot go on under the new version; nothing: it can."""

    instance: WorkflowInstance
    stands_at: list[str]
    obstacles: list[str]


def passage_of(*, definition_id: UUID, from_version: int, mapping: Mapping[str, str]) -> Passage:
    new = definition_get(definition_id=definition_id)
    if new.organization_id is None or new.state == DefinitionStatus.DRAFT:
        raise WrongState("Runs follow published definitions only. Publish this draft first.")
    old = definition_version(organization_id=new.organization_id, slug=new.slug, version=from_version)
    if old is None or old.id == new.id:
        raise InvalidInput(errors=[FieldError("/from_version", "is not another published version with this slug")])
    ours, theirs = set(definition_read(old).steps), set(definition_read(new).steps)
    errors = [FieldError("/mapping", "names a step that the version it comes from does not have")] * bool(
        set(mapping) - ours
    )
    errors += [FieldError("/mapping", "leads to a step that this version does not have")] * bool(
        set(mapping.values()) - theirs
    )
    if errors:
        raise InvalidInput(errors=errors)
    return Passage(old, new, dict(mapping))


def migration_preview(*, passage: Passage) -> list[Traveller]:
    """Every run under the old version that has not ended, oldest first. Writes nothing; each run is looked at again
    when it is moved."""
    return [_traveller(passage, instance) for instance in passage.runs()]


def _traveller(passage: Passage, instance: WorkflowInstance) -> Traveller:
    stands_at = [row.step_id for row in steps_needed(instance) if row.state in STEP_OPEN]
    return Traveller(instance, stands_at, _obstacles(passage, instance))


def _obstacles(passage: Passage, instance: WorkflowInstance) -> list[str]:
    old, new = definition_of(instance), definition_read(passage.new)
    if passage.is_way_back and came_from(instance=instance) != passage.new.id:
        return ["This version is not active any more, and the run has gone on since it came from there."]
    if instance.erased_at is not None:
        return ["It was erased."]
    found = [] if _fits(new, instance) else ["Its input does not fit the new version."]
    state = state_of(instance, steps_needed(instance))
    return [*found, *Crossing(old, new, kind_table(), passage.mapping).obstacles(state)]


def _fits(new: Definition, instance: WorkflowInstance) -> bool:
    return new.format == 1 or not input_problems(new, instance.input or {})


@violations_recorded
def migration_order(*, passage: Passage, reason_code: str, note: str, actor: Actor, at: datetime) -> BulkIntervention:
    """All runs that are under the old version now; whether each can go is decided under its lock."""
    organization_id = passage.new.organization_id
    if organization_id is None or not actor.may_act_in(organization_id) or actor.id is None:
        raise NotFound
    order = InterventionOrder(InterventionAction.MIGRATE, reason_code, note)
    reason_code_known(organization_id, order)
    text_check(text=note, pointer="/note")
    with transaction.atomic():
        ids = [instance.id for instance in passage.runs()]
        if not ids:
            raise InvalidInput("No run is under way under that version; nothing was ordered.")
        kept = note_create(organization_id=organization_id, text=note)
        details: dict[str, Any] = {
            "from": str(passage.old.id),
            "definition": str(passage.new.id),
            "mapping": dict(passage.mapping),
        }
        bulk = BulkIntervention(
            organization_id=organization_id,
            action=InterventionAction.MIGRATE,
            details=details,
            reason_code=reason_code,
            note=kept,
            ordered_by=actor.id,
            actor_kind=actor.kind.value,
            created_at=at,
            resume_at=at + PATIENCE,
        )
        bulk.save(force_insert=True)
        BulkItem.objects.bulk_create([BulkItem(id=uuid7(), bulk=bulk, instance_id=id_) for id_ in ids], batch_size=1000)
        ledger_append(
            action="workflow.bulk_ordered",
            organization_id=organization_id,
            subject_type="bulk_intervention",
            subject_id=bulk.id,
            actor=actor,
            at=at,
            payload={"action": bulk.action, "count": len(ids), **details}
            | ({"note": str(kept.id), "note_sha256": kept.sha256} if kept else {}),
            reason_code=reason_code,
        )
        wake_up(TASK, bulk.id)
    return bulk


def instance_migrate(
    *, instance_id: UUID, order: InterventionOrder, actor: Actor, at: datetime, region: str
) -> WorkflowIntervention:
    """One run of a bulk order. The frozen definition and the contract change with the input that is logged."""
    if order.bulk is None:
        raise ValueError("a run is migrated as part of an order")
    with transaction.atomic():
        instance = instance_lock(instance_id=instance_id)
        if not actor.may_act_in(instance.organization_id):
            raise NotFound
        passage = Passage(instance.definition, _target(order.bulk), order.bulk.details["mapping"])
        if str(instance.definition_id) != order.bulk.details["from"]:
            raise MigrationNotPossible("It follows another version by now.")
        if obstacles := _obstacles(passage, instance):
            raise MigrationNotPossible(" ".join(obstacles))
        before = run_summary(instance)
        logged = _logged_input(passage, instance, order, at)
        _follow(instance, passage.new)
        advanced = instance_advance(instance=instance, logged=logged, actor=actor, at=at, region=region)
        instance.save(update_fields=["definition", "definition_sha256", "contract"])
        return intervention_record(advanced, order, order.bulk.note, before, actor=actor, at=at)


def _target(bulk: BulkIntervention) -> WorkflowDefinition:
    return definition_get(definition_id=UUID(bulk.details["definition"]))


def _logged_input(passage: Passage, instance: WorkflowInstance, order: InterventionOrder, at: datetime) -> LoggedInput:
    new = passage.new
    said = {
        "action": InterventionAction.MIGRATE.value,
        "reason_code": order.reason_code,
        "mapping": dict(passage.mapping),
        "from": {"definition": str(instance.definition_id), "sha256": instance.definition_sha256},
        "to": {"definition": str(new.id), "sha256": new.snapshot_sha256, "version": new.version},
        "bulk": str(order.bulk.id) if order.bulk else "",
    }
    given = Migrated(at, dict(passage.mapping), order.reason_code)
    return LoggedInput(given, MIGRATED, "person", envelope=said)


def _follow(instance: WorkflowInstance, new: WorkflowDefinition) -> None:
    instance.definition, instance.definition_sha256, instance.contract = new, new.snapshot_sha256, new.contract
    # Read with the lock, about the contract that the run leaves.
    instance.locked_arrival = None
