"""Reads bulk orders: the runs they match, their progress, and whether the orderer still has the permission."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from governance.people.rules.roles import OPERATE, ApiScope
from governance.people.selectors.people import live_keys, person_may
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor, ActorKind
from workflows.runs.models import BulkIntervention, BulkItem, WorkflowInstance, WorkflowStep
from workflows.runs.selectors.run import instance_list, orderer_name
from workflows.runs.states import STEP_OPEN, StepStatus

# One order may have this many runs: preview, order and progress read all of them.
MOST = 10_000


@dataclass(frozen=True, slots=True)
class Targets:
    """Which runs: all that a filter matches, or the listed ones."""

    filter: dict[str, Any] = field(default_factory=dict)
    instance_ids: Sequence[UUID] = ()

    def as_json(self) -> dict[str, Any]:
        """For the record: codes, ids and moments."""
        return {name: str(value) for name, value in self.filter.items()}


@dataclass(frozen=True, slots=True)
class BulkProgress:
    total: int
    done: int
    refused: int
    waiting: int


def targets_find(*, organization_id: UUID, targets: Targets, limit: int = MOST + 1) -> QuerySet[WorkflowInstance]:
    """Oldest first. The default limit is one more than an order may have, so that the caller sees that there are
    more."""
    if targets.instance_ids:
        rows = WorkflowInstance.objects.filter(id__in=list(targets.instance_ids))
    else:
        rows = instance_list(**targets.filter)
    return rows.filter(organization_id=organization_id).order_by("id")[:limit]


def targets_facts(rows: QuerySet[WorkflowInstance]) -> list[dict[str, Any]]:
    """What decides whether an action is legal, for all runs in one query."""
    # Subqueries and not a query per run: an order may have ten thousand.
    open_steps = WorkflowStep.objects.filter(instance_id=OuterRef("id"), state__in=STEP_OPEN)
    under_way = open_steps.exclude(state=StepStatus.PENDING).order_by("-number").values("step_id")[:1]
    names = ("id", "case_id", "state", "halt_reason", "deadline_at", "under_way", "context__product_id")
    return [dict(row) for row in rows.annotate(under_way=Subquery(under_way)).values(*names)]


def bulk_list() -> QuerySet[BulkIntervention]:
    """Newest first, each with `orderer_name`."""
    rows = BulkIntervention.objects.select_related("organization", "note").order_by("-id")
    return rows.annotate(orderer_name=orderer_name())


def bulk_get(*, bulk_id: UUID) -> BulkIntervention:
    return bulk_list().filter(id=bulk_id).first() or tenant_get(BulkIntervention, bulk_id)


def bulk_items(*, bulk_id: UUID, status: str | None = None) -> QuerySet[BulkItem]:
    rows = BulkItem.objects.filter(bulk_id=bulk_id).select_related("instance").order_by("-id")
    return rows if status is None else rows.filter(status=status)


def bulk_progress(*, bulk_id: UUID) -> BulkProgress:
    """One order has at most MOST items, so counting them is bounded."""
    counted = BulkItem.objects.filter(bulk_id=bulk_id).aggregate(
        total=Count("id"),
        done=Count("id", filter=Q(status="done")),
        refused=Count("id", filter=Q(status="refused")),
        waiting=Count("id", filter=Q(status="waiting")),
    )
    return BulkProgress(**counted)


def orderer_still(*, bulk: BulkIntervention, at: datetime) -> Actor | None:
    """The orderer, if they still have the permission; otherwise None."""
    # Asked again for every item: a role or a key that is revoked meanwhile must stop the rest of the order.
    if bulk.actor_kind == ActorKind.PERSON:
        may = person_may(user_id=bulk.ordered_by, organization_id=bulk.organization_id, permission=OPERATE)
    else:
        may = _service_may(bulk, at)
    scopes = frozenset({ApiScope.ORCHESTRATOR_INTERVENE.value})
    organizations = frozenset({bulk.organization_id})
    return Actor(ActorKind(bulk.actor_kind), bulk.ordered_by, organizations, scopes) if may else None


def _service_may(bulk: BulkIntervention, at: datetime) -> bool:
    """Whether a live key of the account has the scope; outside its own organization it also needs the
    administrator's."""
    keys = live_keys(at).filter(service_account_id=bulk.ordered_by, scopes__contains=[ApiScope.ORCHESTRATOR_INTERVENE])
    own = Q(service_account__organization_id=bulk.organization_id)
    return keys.filter(own | Q(scopes__contains=[ApiScope.ORCHESTRATOR_ADMIN])).exists()
