"""People of a run: who asked for it, who of a tier can be assigned, and how often they were."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Max
from django.db.models.fields.json import KeyTextTransform

from attempts.reviews.models import Review
from attempts.reviews.states import ReviewKind, ReviewStatus
from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.ledger.models import LedgerEntry
from governance.people.selectors.people import people_in_role
from reasoncodes.base.actors import ActorKind
from reasoncodes.base.ids import UUID_TEXT
from workflows.kinds.assign_reviewer import KIND
from workflows.runs.models import WorkflowInstance, WorkflowStep
from workflows.runs.states import StepStatus


@dataclass(frozen=True, slots=True)
class Requester:
    """A service by its id, a person by their commitment; neither for a run that Holdpoint itself began."""

    kind: str
    ref: str

    @property
    def id(self) -> UUID | None:
        return UUID(self.ref) if self.kind == ActorKind.SERVICE and UUID_TEXT.fullmatch(self.ref) else None


def run_requester(*, instance: WorkflowInstance) -> Requester:
    """Whoever sent what began the run: the actor of its first ledger entry."""
    first = LedgerEntry.objects.filter(subject_id=instance.id).order_by("id").first()
    return Requester(first.actor_kind, first.actor_ref) if first is not None else Requester("", "")


def reviewers_of(*, organization_id: UUID, tier: str, without: UUID | None) -> list[UUID]:
    """Active people of a tier, by user name. `without`: a service account whose people are left out."""
    behind = authors_of(kind=WorkKind.SERVICE, subject_id=without) if without is not None else frozenset()
    people = people_in_role(organization_id=organization_id, role=f"reviewer:{tier}")
    return [person.id for person in people if person.id not in behind]


def _assignments(organization_id: UUID) -> Any:
    rows = WorkflowStep.objects.filter(
        instance__organization_id=organization_id, step_kind=KIND.name, state=StepStatus.COMPLETED
    )
    return rows.annotate(person=KeyTextTransform("reviewer", "output")).order_by()


def assigned_last(*, organization_id: UUID, refs: Sequence[str]) -> dict[str, float]:
    """When each of these people was assigned last, as a number that grows. Who never was is missing."""
    rows = (
        _assignments(organization_id).filter(person__in=refs).values_list("person").annotate(last=Max("completed_at"))
    )
    return {person: last.timestamp() for person, last in rows}


def tasks_open(*, organization_id: UUID, refs: Sequence[str]) -> dict[str, float]:
    """How many open tasks are assigned to each of these people."""
    rows = Review.objects.filter(
        organization_id=organization_id, kind=ReviewKind.HUMAN_TASK, status=ReviewStatus.REQUESTED
    )
    named = rows.annotate(person=KeyTextTransform("assigned", "task")).filter(person__in=refs).order_by()
    return {person: float(count) for person, count in named.values_list("person").annotate(Count("id"))}


def last_assignment(*, instance: WorkflowInstance, step_ids: Sequence[str]) -> str | None:
    """Of these steps the one that was completed last."""
    rows = WorkflowStep.objects.filter(instance=instance, step_id__in=step_ids, state=StepStatus.COMPLETED)
    return rows.order_by("-number").values_list("step_id", flat=True).first()
