"""Locks a run and reads its steps, organization and contract, in one statement. Every advance begins with it.

Hand-written and prepared: building these queries takes the ORM longer than PostgreSQL needs to answer them. Also the
run's frozen definition, parsed once per process.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from django.db.models import Model, Q

from attempts.lifecycle.states import ENGINE
from governance.contracts.states import Effect
from governance.enforcement.models import snapshot_load
from governance.enforcement.selectors import own_columns, own_joins, own_side
from governance.enforcement.sql import TAKE_SEND_LOCK
from governance.sql.statements import fetch, stored_row
from reasoncodes.base.tenancy import current_scope
from workflows.definitions.models import WorkflowDefinition
from workflows.definitions.rules.document import Definition, read_definition
from workflows.kinds.base import StepKind
from workflows.kinds.registry import kind_table
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.states import STEP_OPEN

BY_ID = "SELECT $2::uuid AS id, FALSE AS known, NULL::uuid AS answered"
# $2 organization, $3 case, $4 correlation id, $5 the event's own id. The run whose step was answered; else the case's
# current run. For an event that was received before nothing is looked up and nothing is locked. OFFSET 0 keeps the
# planner from merging the subquery, so that EXISTS is evaluated once.
BY_EVENT = """
    SELECT known, CASE WHEN NOT known THEN coalesce(
        (SELECT s.instance_id FROM workflows_workflowstep s JOIN workflows_workflowinstance i ON i.id = s.instance_id
         WHERE s.id = $4::uuid AND i.organization_id = $2 AND i.case_id = $3),
        (SELECT id FROM workflows_workflowinstance
         WHERE organization_id = $2 AND case_id = $3 AND superseded_by_id IS NULL ORDER BY id DESC LIMIT 1)
    ) END AS id, $4::uuid AS answered
    FROM (SELECT EXISTS (SELECT 1 FROM workflows_workflowevent WHERE organization_id = $2 AND event_id = $5::uuid)
          AS known OFFSET 0) once
"""


@dataclass(frozen=True, slots=True)
class Found:
    """`known`: the event was received before, and nothing was locked for it."""

    known: bool
    instance: WorkflowInstance | None


def instance_locked_by_id(*, instance_id: UUID) -> WorkflowInstance | None:
    return _locked(BY_ID, instance_id).instance


def instance_locked_by_event(
    *, organization_id: UUID, case_id: UUID, correlation_id: UUID | None, event_id: UUID | None
) -> Found:
    """`event_id` None: the caller knows that the event is new."""
    return _locked(BY_EVENT, organization_id, case_id, correlation_id, event_id)


def _locked(which: str, *parameters: Any) -> Found:
    """Lock one run, and read with it what an advance needs."""
    # The send lock is a statement of its own before this one: contract and shutdowns, which this statement reads, are
    # then newer than the lock and cannot change until the commit. The run is the first row in the lock order.
    scope = current_scope()
    organizations = None if scope.everything else list(scope.organization_ids)
    while True:
        ((known, is_current, steps, *columns),) = fetch(_sql(which), (organizations, *parameters), first=TAKE_SEND_LOCK)
        # The statement sees rows as they were when it began. If it waited for the lock, the locked row is a newer
        # version than the one it saw, and the steps are outdated: read again, now under the lock.
        if is_current is not False:
            return Found(known, _instance(columns, steps))


def _instance(columns: list[Any], steps: str | None) -> WorkflowInstance | None:
    names, ends = _names(WorkflowInstance), len(_names(WorkflowInstance))
    instance = stored_row(WorkflowInstance, names, columns[:ends])
    if instance is None:
        return None
    for name in ("context", "early", "tokens", "input", "output"):
        setattr(instance, name, _json(getattr(instance, name)))
    ours = own_side(columns[ends:])
    instance._state.fields_cache |= {"organization": ours.organization, "contract": ours.contract}
    instance.locked_arrival = ours.arrival
    instance.locked_steps = [_step(row) for row in _json(steps) or ()]
    return instance


def _step(values: list[Any]) -> WorkflowStep:
    row = dict(zip(_names(WorkflowStep), values, strict=True))
    for name in ("id", "instance_id", "governed_attempt", "request_event"):
        row[name] = UUID(row[name]) if row[name] else None
    for name in ("started_at", "completed_at", "timeout_at", "next_eligible_at", "due_at"):
        row[name] = datetime.fromisoformat(row[name]) if row[name] else None
    step = stored_row(WorkflowStep, row, tuple(row.values()))
    if step is None:
        raise ValueError("a step without an id")
    return step


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


@cache
def _sql(which: str) -> str:
    """$1: the organizations in scope (NULL: all); then the parameters of `which`."""
    # MATERIALIZED: each part is evaluated once, although it is used several times. NO KEY UPDATE: rows that refer to
    # the run by foreign key can still be inserted meanwhile.
    instance, step = _columns(WorkflowInstance), _columns(WorkflowStep)
    return f"""
    WITH wanted AS MATERIALIZED ({which}),
    held AS MATERIALIZED (
        SELECT {", ".join(f"i.{name}" for name in instance)}, i.xmin AS version
        FROM workflows_workflowinstance i, wanted
        WHERE i.id = wanted.id AND ($1::uuid[] IS NULL OR i.organization_id = ANY ($1))
        FOR NO KEY UPDATE OF i
    )
    SELECT wanted.known,
        held.version = (SELECT seen.xmin FROM workflows_workflowinstance seen WHERE seen.id = held.id),
        (SELECT json_agg(json_build_array({", ".join(f"s.{name}" for name in step)}) ORDER BY s.number)
         FROM ({_needed("held.id", "held.tokens", "wanted.answered")}) s),
        {", ".join(f"held.{name}" for name in instance)}, {own_columns()}
    FROM wanted LEFT JOIN held ON TRUE
    LEFT JOIN governance_organization o ON o.id = held.organization_id
    LEFT JOIN governance_contract c ON c.id = held.contract_id
    {own_joins(f"'{ENGINE}'")}
    """  # noqa: S608


def _needed(instance: str, tokens: str, answered: str) -> str:
    """The steps that an advance needs: all of a run of format 1; of format 2 the open ones, the one that is answered,
    and the halt step at which it stands."""
    # Each part is skipped without a look at the table if its condition on `tokens` is not true.
    open_ = ", ".join(f"'{state}'" for state in sorted(STEP_OPEN))
    more = f"{tokens} <> '{{}}' AND known.instance_id = {instance}"
    return f"""
        SELECT * FROM workflows_workflowstep known WHERE {tokens} = '{{}}' AND known.instance_id = {instance}
        UNION ALL SELECT * FROM workflows_workflowstep known WHERE {more} AND known.state IN ({open_})
        UNION ALL SELECT * FROM workflows_workflowstep known WHERE {more} AND known.state NOT IN ({open_})
            AND known.id IN ({answered}, ({tokens} ->> 'halted')::uuid)
    """  # noqa: S608


def steps_needed(instance: WorkflowInstance) -> list[WorkflowStep]:
    """The same, for a run that was read before."""
    rows = WorkflowStep.objects.filter(instance=instance)
    if instance.tokens:
        rows = rows.filter(Q(state__in=STEP_OPEN) | Q(id=instance.tokens["halted"]))
    return list(rows.order_by("number"))


@cache
def _names(model: type[Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.local_concrete_fields)


def _columns(model: type[Model]) -> list[str]:
    return [str(field.column) for field in model._meta.local_concrete_fields]


def definition_read(definition: WorkflowDefinition) -> Definition:
    """The frozen copy of a published definition."""
    return definition_frozen(definition.snapshot_sha256, definition.id)


def definition_of(instance: WorkflowInstance) -> Definition:
    return definition_frozen(instance.definition_sha256, instance.definition_id)


def kind_of(instance: WorkflowInstance, step_id: str) -> StepKind | None:
    """The kind of a step of this run, as its frozen definition binds it."""
    return definition_of(instance).kind(step_id, kind_table())


def contract_allows_retries(instance: WorkflowInstance, *, step_id: str = "") -> bool:
    """Whether the contract allows automatic retries of this step. A contract can only tighten what the definition asks
    for."""
    contract = instance.contract
    if contract is None or not contract.snapshot_sha256:
        return False
    known = kind_of(instance, step_id) if contract.effect == Effect.ONCE and step_id else None
    if known is not None and known.bind is not None and not known.is_governed:
        # A contract of effect `once` says "never", because another step has that effect. A call that only reads opens
        # no attempt, so the contract says nothing about it.
        return True
    documents = snapshot_load(contract.snapshot_sha256)["documents"]
    return bool(documents["retry_and_replay"]["automatic_retries"] != "never")


def definition_frozen(sha256: str, definition_id: UUID | str) -> Definition:
    """The frozen copy with this hash, as it was published under this id."""
    return _read(sha256, str(definition_id))


# Never outdated: the copy is stored under its own hash. The limit bounds the memory of a process that serves many
# organizations.
@lru_cache(maxsize=256)
def _read(sha256: str, definition_id: str) -> Definition:
    return read_definition(snapshot_load(sha256)["definition"], definition_id=definition_id)
