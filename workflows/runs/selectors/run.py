"""Reads runs: lists, one run and what belongs to it, and the lock on a run."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django.db.models import Case, CharField, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, NullIf

from attempts.lifecycle.models import Attempt
from attempts.reviews.models import Review
from attempts.reviews.states import ReviewStatus
from governance.people.models import PersonReference, User
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.errors import NotFound
from workflows.events.models import WorkflowEvent
from workflows.runs.models import WorkflowInstance, WorkflowIntervention, WorkflowStep
from workflows.runs.selectors.locked import instance_locked_by_id
from workflows.runs.states import STEP_OPEN


def instance_lock(*, instance_id: UUID) -> WorkflowInstance:
    """The run, locked, with its steps, organization and contract. Takes the send lock before it."""
    found = instance_locked_by_id(instance_id=instance_id)
    if found is None:
        tenant_get(WorkflowInstance, instance_id)  # raises a violation if it is another organization's
        raise NotFound
    return found


def current_step(*, instance_id: UUID) -> WorkflowStep | None:
    return WorkflowStep.objects.filter(instance_id=instance_id, state__in=STEP_OPEN).order_by("-number").first()


def actor_name(*, kind: str = "actor_kind", ref: str = "actor_ref") -> Combinable:
    """The name behind a commitment, which is how the record names people."""
    person = PersonReference.objects.filter(commitment=OuterRef(ref)).values("user__username")[:1]
    nobody = Case(When(**{kind: "person"}, then=Value("erased")), default=F(kind))
    service = NullIf(F(ref), Value(""))
    return Coalesce(Case(When(**{kind: "service"}, then=service), default=Subquery(person)), nobody)


def orderer_name() -> Combinable:
    """The name behind `ordered_by`, which is an id and no commitment: the order must find its person again."""
    person = User.objects.filter(id=OuterRef("ordered_by")).values("username")[:1]
    return Coalesce(Subquery(person), Cast("ordered_by", CharField()))


# Limits of what one page or answer shows. A run that is retried for weeks has more steps and events than anybody reads.
SHOWN = 50
STEPS_SHOWN = 1000


HEAVY = ("context", "early", "tokens", "input", "output", "definition__definition")


def instance_list(
    *,
    case_id: UUID | None = None,
    business_key: str | None = None,
    product_id: UUID | None = None,
    definition_id: UUID | None = None,
    status: str | None = None,
    mode: str | None = None,
    halt_reason: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
) -> QuerySet[WorkflowInstance]:
    """Newest first, without the columns that only the page of one run needs."""
    exact = {
        "business_key": business_key,
        "product_id": product_id,
        "definition_id": definition_id,
        "state": status,
        "mode": mode,
        "halt_reason": halt_reason,
        "created_at__gt": created_after,
        "created_at__lt": created_before,
    }
    rows = WorkflowInstance.objects.filter(**{name: value for name, value in exact.items() if value is not None})
    if case_id is not None:
        rows = rows.filter(of_case(case_id))
    return rows.select_related("definition").defer(*HEAVY).order_by("-id")


def of_case(case_id: UUID) -> Q:
    """The case's current run, and the superseded ones."""
    # As two conditions, because each matches one partial index; `case_id` alone would match neither.
    return Q(case_id=case_id, superseded_by=None) | Q(case_id=case_id, superseded_by__isnull=False)


def instance_get(*, instance_id: UUID) -> WorkflowInstance:
    rows = WorkflowInstance.objects.select_related("definition", "contract", "product", "organization")
    return rows.filter(id=instance_id).first() or tenant_get(WorkflowInstance, instance_id)


def instances_walk() -> Iterator[WorkflowInstance]:
    """All runs in scope, oldest first. Read in chunks, so that memory does not grow with the table."""
    return WorkflowInstance.objects.order_by("id").iterator(chunk_size=1000)


def instances_total() -> int:
    return WorkflowInstance.objects.count()


def instance_steps(*, instance_id: UUID) -> list[WorkflowStep]:
    """All tries in order; at most the newest STEPS_SHOWN."""
    rows = WorkflowStep.objects.filter(instance_id=instance_id).order_by("-number")[:STEPS_SHOWN]
    return list(rows)[::-1]


def step_instance(*, step_id: UUID) -> WorkflowInstance | None:
    """The run that a step belongs to."""
    step = WorkflowStep.objects.filter(id=step_id).select_related("instance__definition").first()
    return step.instance if step is not None else None


def instance_events(*, instance_id: UUID) -> QuerySet[WorkflowEvent]:
    return WorkflowEvent.objects.filter(instance_id=instance_id).order_by("-id")


def instance_interventions(*, instance_id: UUID) -> QuerySet[WorkflowIntervention]:
    """Newest first, each with `actor_name`."""
    rows = WorkflowIntervention.objects.filter(instance_id=instance_id).select_related("note")
    return rows.annotate(actor_name=actor_name()).order_by("-id")


def intervention_get(*, intervention: WorkflowIntervention) -> WorkflowIntervention:
    """With the run as it is now."""
    row = instance_interventions(instance_id=intervention.instance_id).get(id=intervention.id)
    row.instance = instance_get(instance_id=intervention.instance_id)
    return row


def instance_drift(*, instance_id: UUID, limit: int = SHOWN) -> list[WorkflowEvent]:
    """Where a client-driven run left its definition's order, newest first."""
    return list(instance_events(instance_id=instance_id).exclude(drift="")[:limit])


def steps_attempts(*, steps: list[WorkflowStep]) -> dict[UUID, Attempt]:
    """The governed attempts behind these tries, by id."""
    ids = {step.governed_attempt for step in steps if step.governed_attempt}
    return Attempt.objects.in_bulk(ids) if ids else {}


def attempts_reviews(*, attempt_ids: set[UUID]) -> dict[UUID, Review]:
    """The review of each attempt that was held."""
    rows = Review.objects.filter(attempt_id__in=attempt_ids) if attempt_ids else Review.objects.none()
    return {row.attempt_id: row for row in rows if row.attempt_id is not None}


def steps_reviews(*, steps: list[WorkflowStep], events: list[WorkflowEvent]) -> dict[UUID, UUID]:
    """By step: the human review that it waits for, or that answered it."""
    # Ended reviews come from the log: the index on `origin_step` has open reviews only.
    waiting = [step.id for step in steps if step.state == "waiting_approval"]
    open_ones = Review.objects.filter(origin_step__in=waiting, status=ReviewStatus.REQUESTED) if waiting else []
    found = {row.origin_step: row.id for row in open_ones if row.origin_step is not None}
    for event in events:
        if event.source == "person" and event.correlation_id and "review" in event.envelope:
            found[event.correlation_id] = UUID(event.envelope["review"])
    return found
