"""Reading for the operator console: what its pages and forms show, in a bounded number of queries for any number of
rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Count, Exists, Model, OuterRef, Prefetch, Q, QuerySet, Subquery

from governance.authorship.selectors import authors_of
from governance.authorship.states import WorkKind
from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.readiness import APPROVED, CORE_FIELDS, AreaStatus, board
from governance.contracts.states import ContractState
from governance.people.models import PersonReference, User
from governance.policies.selectors import policy_list
from governance.shutdown.models import Shutdown
from governance.shutdown.selectors import shutdowns_engaged
from governance.shutdown.states import ShutdownScope
from governance.tenancy.models import Organization, Product, RoleGroup
from reasoncodes.base.tenancy import every_tenant

# Figures stop here, so that a page does not become slower because more is waiting.
COUNT_LIMIT = 10_000
OWNER = "owner:"


@dataclass(frozen=True, slots=True)
class DocumentDigest:
    """What the readiness board needs of a document if only its status is shown."""

    sha256: str
    document: None = None


@dataclass(frozen=True, slots=True)
class WaitingArea:
    """An area that one of the person's groups owns and has not approved yet."""

    contract: Contract
    row: AreaStatus


def shutdowns_covering() -> QuerySet[Shutdown]:
    """Engaged shutdowns (drills excluded) that cover an organization in scope. A regional one counts only if an
    organization in scope has that region."""
    concerned = Organization.objects.filter(regions__contains=[OuterRef("target")])
    return shutdowns_engaged().filter(~Q(scope=ShutdownScope.REGION) | Exists(concerned))


def _readiness_boards(*, contracts: Iterable[Contract]) -> dict[UUID, list[AreaStatus]]:
    """The boards of many contracts with two queries, without the documents' contents."""
    rows = {contract.id: contract for contract in contracts}
    documents: dict[UUID, dict[str, Any]] = {id_: {} for id_ in rows}
    latest: dict[UUID, dict[str, Any]] = {id_: {} for id_ in rows}
    found = ContractDocument.objects.filter(contract_id__in=rows)
    for contract_id, area, sha256 in found.values_list("contract_id", "area", "sha256"):
        documents[contract_id][area] = DocumentDigest(sha256)
    decisions = ReadinessDecision.objects.filter(contract_id__in=rows).select_related("carried_from__contract")
    # DISTINCT ON keeps the newest decision of each area; one query for all contracts instead of one for each area.
    for decision in decisions.order_by("contract_id", "area", "-id").distinct("contract_id", "area"):
        latest[decision.contract_id][decision.area] = decision
    return {
        id_: board(
            documents=documents[id_],
            latest=latest[id_],
            core={name: getattr(contract, name) for name in CORE_FIELDS},
        )
        for id_, contract in rows.items()
    }


def readiness_counts(*, contracts: Iterable[Contract]) -> dict[UUID, int]:
    """How many of the ten areas are approved, for each contract."""
    boards = _readiness_boards(contracts=contracts)
    return {id_: sum(row.status == APPROVED for row in rows) for id_, rows in boards.items()}


def readiness_history(*, contract: Contract, area: str, limit: int = 50) -> Sequence[ReadinessDecision]:
    """What owners said about this area, newest first."""
    rows = ReadinessDecision.objects.filter(contract=contract, area=area).select_related("carried_from__contract")
    return list(rows.order_by("-id")[:limit])


def contract_document(*, contract: Contract, area: str) -> ContractDocument:
    """One document with the person who wrote to it last."""
    return ContractDocument.objects.select_related("written_by").get(contract=contract, area=area)


def work_authors(*, kind: WorkKind, subject_id: UUID) -> dict[UUID, str]:
    """The names of everybody who wrote to it since its last approval."""
    people = User.objects.filter(id__in=authors_of(kind=kind, subject_id=subject_id))
    return dict(people.order_by("username").values_list("id", "username"))


def roles_of(*, user_id: UUID) -> dict[UUID, frozenset[str]]:
    """The person's roles in each organization in scope."""
    rows = RoleGroup.objects.filter(group__user__id=user_id).values_list("organization_id", "role")
    found: dict[UUID, set[str]] = {}
    for organization_id, role in rows:
        found.setdefault(organization_id, set()).add(role)
    return {organization_id: frozenset(roles) for organization_id, roles in found.items()}


def areas_waiting(*, user_id: UUID, limit: int = 20) -> list[WaitingArea]:
    """Areas that the person's groups own and that are not approved, on the newest fifty contracts that are not open."""
    owned = {
        organization_id: {role.removeprefix(OWNER) for role in roles if role.startswith(OWNER)}
        for organization_id, roles in roles_of(user_id=user_id).items()
    }
    owned = {organization_id: groups for organization_id, groups in owned.items() if groups}
    if not owned:
        return []
    states = [ContractState.DRAFT, ContractState.SUSPENDED]
    # Fifty: the overview shows twenty areas, and must not read every draft that was ever made.
    contracts = list(Contract.objects.filter(organization_id__in=owned, state__in=states).order_by("-id")[:50])
    boards = _readiness_boards(contracts=contracts)
    return [
        WaitingArea(contract, row)
        for contract in contracts
        for row in boards[contract.id]
        if row.status != APPROVED and row.owner_group in owned[contract.organization_id]
    ][:limit]


def contracts_by_state() -> dict[str, int]:
    counted = Contract.objects.order_by().values_list("state").annotate(rows=Count("id"))
    found = dict(counted)
    return {state.value: found.get(state.value, 0) for state in ContractState}


def id_floor(at: datetime) -> UUID:
    """The smallest UUIDv7 of that millisecond: a time filter on ids needs no index on a time column."""
    # RFC 9562: 48 bits of milliseconds, then version 7, then variant 2; all random bits are zero.
    return UUID(int=(int(at.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62))


def id_moment(id_: UUID) -> datetime:
    """When a UUIDv7 was created."""
    return datetime.fromtimestamp((id_.int >> 80) / 1000, tz=UTC)


# The page must not grow with the number of policies.
SUGGESTED = 200
M = TypeVar("M", bound=Model)


def organization_ids() -> frozenset[UUID]:
    """The ids of all organizations of the installation, for its administrator."""
    with every_tenant():
        return frozenset(Organization.objects.values_list("id", flat=True))


def organization_choices(*, ids: Collection[UUID]) -> QuerySet[Organization]:
    return Organization.objects.filter(id__in=ids)


def product_choices(*, organizations: QuerySet[Organization]) -> QuerySet[Product]:
    return Product.objects.filter(organization__in=organizations).select_related("organization")


def policy_suggestions(*, organization_id: UUID | None = None) -> list[str]:
    """Slugs of active policies."""
    rows = policy_list(state="active")
    rows = rows if organization_id is None else rows.filter(organization_id=organization_id)
    return sorted(set(rows.values_list("slug", flat=True)[:SUGGESTED]))


def people_in_scope() -> QuerySet[User]:
    """People with a role in an organization of the current scope: an operator must not learn who works for the
    others."""
    return User.objects.filter(groups__role_group__in=RoleGroup.objects.all()).distinct()


def roles_in_scope() -> QuerySet[RoleGroup]:
    return RoleGroup.objects.select_related("organization").order_by("organization__slug", "role")


def people_with_roles(*, people: QuerySet[User]) -> QuerySet[User]:
    """Each person with their groups in the current scope, and no others."""
    # Without this filter the prefetch would show roles in organizations that the operator does not see.
    shown = Group.objects.filter(role_group__in=RoleGroup.objects.all())
    return people.prefetch_related(Prefetch("groups", queryset=shown)).order_by("username")


def with_names(*, rows: QuerySet[M]) -> QuerySet[M]:
    """For rows with an `actor_ref`: adds `username` where the person's reference still exists."""
    # One query for the page instead of one for each row.
    person = PersonReference.objects.filter(commitment=OuterRef("actor_ref")).values("user__username")
    named: QuerySet[Any] = rows.annotate(username=Subquery(person[:1]))
    return named
