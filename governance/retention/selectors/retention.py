"""Reads legal holds, erasure orders, exports and deletion requests, and the terms of an organization's regions."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from governance.contracts.models import ContractDocument
from governance.contracts.states import ContractState
from governance.people.models import PersonReference
from governance.regions.rules import EffectiveProfile, RegionError, load_profiles, merge, tighten
from governance.retention.models import (
    ContextReference,
    DeletionRequest,
    ErasureItem,
    ErasureOrder,
    ExportRequest,
    LegalHold,
)
from governance.retention.rules import Hold
from governance.retention.states import DeletionState, ExportState, HoldScope, HoldState
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get


@dataclass(frozen=True, slots=True)
class ErasureProgress:
    total: int
    done: int
    refused: int
    waiting: int


def _reference_of(field: str = "commitment") -> Subquery:
    """The reference behind a commitment, while it exists."""
    # A subquery instead of a look-up per row: a list has one statement, however long it is.
    rows = ContextReference.objects.filter(commitment=OuterRef(field))
    return Subquery(rows.values("reference")[:1])


def _person_of(field: str) -> Subquery:
    rows = PersonReference.objects.filter(commitment=OuterRef(field))
    return Subquery(rows.values("user__username")[:1])


def legal_hold_list(*, state: str | None = None, scope: str | None = None) -> QuerySet[LegalHold]:
    """Newest first, each with its `reference` or `person`, if that was not destroyed."""
    rows = LegalHold.objects.select_related("organization", "note").order_by("-id")
    rows = rows.annotate(reference=_reference_of("target"), person=_person_of("target"))
    given = {"state": state, "scope": scope}
    return rows.filter(**{name: value for name, value in given.items() if value is not None})


def legal_hold_get(*, hold_id: UUID) -> LegalHold:
    return legal_hold_list().filter(id=hold_id).first() or tenant_get(LegalHold, hold_id)


def holds_active(*, organization_id: UUID) -> list[Hold]:
    """Active legal holds in the form that the rules compare: the target of a context is the reference itself."""
    rows = LegalHold.objects.filter(organization_id=organization_id, state=HoldState.ACTIVE)
    rows = rows.annotate(reference=_reference_of("target"))
    return [
        Hold(scope, reference or target if scope == HoldScope.CONTEXT else target)
        for scope, target, reference in rows.values_list("scope", "target", "reference")
    ]


def terms_for(*, organization: Organization) -> EffectiveProfile:
    """The merged profiles of the organization's regions, tightened by every contract that is no longer a draft."""
    profiles = load_profiles()
    try:
        effective = merge(profiles.select(organization.regions))
    # Without a known region all profiles apply together: the strictest of all cannot be too short.
    except RegionError:
        effective = merge(profiles.profiles)
    stances = ContractDocument.objects.filter(
        contract__organization_id=organization.id, area="regional_compliance"
    ).exclude(contract__state=ContractState.DRAFT)
    for stance in stances.values_list("document", flat=True):
        effective = tighten(effective, stance=stance)
    return effective


def erasure_list() -> QuerySet[ErasureOrder]:
    """Newest first, each with the `orderer_name`."""
    rows = ErasureOrder.objects.select_related("organization", "note").order_by("-id")
    return rows.annotate(orderer_name=_person_of("ordered_by_ref"))


def erasure_items(*, order_id: UUID, state: str | None = None) -> QuerySet[ErasureItem]:
    rows = ErasureItem.objects.filter(order_id=order_id).order_by("id")
    return rows if state is None else rows.filter(state=state)


def erasure_progress(*, order_id: UUID) -> ErasureProgress:
    counted = ErasureItem.objects.filter(order_id=order_id).aggregate(
        total=Count("id"),
        done=Count("id", filter=Q(state="done")),
        refused=Count("id", filter=Q(state="refused")),
        waiting=Count("id", filter=Q(state="waiting")),
    )
    return ErasureProgress(**counted)


def erased_by(*, subject_id: UUID) -> UUID | None:
    """The order that erased an attempt, a run or a decision."""
    rows = ErasureItem.objects.filter(state="done").filter(Q(subject_id=subject_id) | Q(related__contains=[subject_id]))
    return rows.values_list("order_id", flat=True).first()


def export_list(*, state: str | None = None) -> QuerySet[ExportRequest]:
    rows = (
        ExportRequest.objects.select_related("organization", "note").order_by("-id").annotate(reference=_reference_of())
    )
    return rows if state is None else rows.filter(state=state)


def export_get(*, export_id: UUID) -> ExportRequest:
    return export_list().filter(id=export_id).first() or tenant_get(ExportRequest, export_id)


def deletion_list(
    *, state: str | None = None, overdue: bool | None = None, at: datetime | None = None
) -> QuerySet[DeletionRequest]:
    rows = DeletionRequest.objects.select_related("organization", "note", "order").order_by("-id")
    rows = rows.annotate(reference=_reference_of(), person=_person_of("commitment"))
    if state is not None:
        rows = rows.filter(state=state)
    if overdue is not None and at is not None:
        late = Q(state=DeletionState.REQUESTED, due_at__lte=at)
        rows = rows.filter(late) if overdue else rows.exclude(late)
    return rows


def deletion_get(*, deletion_id: UUID) -> DeletionRequest:
    return deletion_list().filter(id=deletion_id).first() or tenant_get(DeletionRequest, deletion_id)


def requests_overdue(*, at: datetime, limit: int = 1000) -> dict[str, int]:
    """The number of deletions without a decision and exports that are not ready after their due date, counted up to
    `limit`."""
    deletions = DeletionRequest.objects.filter(state=DeletionState.REQUESTED, due_at__lte=at)
    exports = ExportRequest.objects.filter(state__in=[ExportState.REQUESTED, ExportState.FAILED], due_at__lte=at)
    # A failed export stays failed. After a year it no longer needs attention, and would raise the number for ever.
    exports = exports.filter(due_at__gt=at - timedelta(days=365))
    return {
        "deletion": deletions.order_by()[:limit].count(),
        "export": exports.order_by()[:limit].count(),
    }


def organizations_of(*, ids: Iterable[UUID]) -> QuerySet[Organization]:
    return Organization.objects.filter(id__in=list(ids)).order_by("slug")
