"""Reads contracts, their readiness boards, and how far an organization's first set-up has come."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.contracts.models import Contract, ContractDocument, ReadinessDecision
from governance.contracts.rules.documents import OWNER_GROUPS
from governance.contracts.rules.readiness import APPROVED, CORE_FIELDS, AreaStatus, board
from governance.contracts.rules.starters import REVIEWER
from governance.contracts.states import ContractState
from governance.people.models import ServiceAccount
from governance.tenancy.models import Organization, RoleGroup
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import NotFound


def contract_list(*, slug: str | None = None, state: str | None = None) -> QuerySet[Contract]:
    rows = Contract.objects.all()
    if slug is not None:
        rows = rows.filter(slug=slug)
    if state is not None:
        rows = rows.filter(state=state)
    return rows


def contract_get(*, contract_id: UUID) -> Contract:
    return tenant_get(Contract, contract_id)


def contract_lock(*, actor: Actor, contract_id: UUID) -> Contract:
    """The locked row. NotFound if the actor may not act in its organization."""
    # FOR NO KEY UPDATE (see `tenant_get`): FOR UPDATE would block every insert of an attempt, decision or document
    # that refers to the contract.
    contract = tenant_get(Contract, contract_id, lock=True)
    if not actor.may_act_in(contract.organization_id):
        raise NotFound
    return contract


def contract_documents(*, contract: Contract) -> dict[str, Any]:
    return {row.area: row.document for row in ContractDocument.objects.filter(contract=contract)}


def readiness_board(*, contract: Contract) -> list[AreaStatus]:
    """The ten areas, each with its document, its latest decision and its status."""
    documents = {row.area: row for row in ContractDocument.objects.filter(contract=contract)}
    latest = {
        row.area: row
        # The contract of a carried-over decision is compared for every area: without select_related ten more queries.
        for row in ReadinessDecision.objects.filter(contract=contract)
        .select_related("carried_from__contract")
        .order_by("area", "-id")
        .distinct("area")
    }
    return board(documents=documents, latest=latest, core={name: getattr(contract, name) for name in CORE_FIELDS})


TEN = 10
# Which contract *Getting started* shows: an open one, then the draft that could be opened next.
NEARNESS = {ContractState.OPEN: 0, ContractState.DRAFT: 1, ContractState.SUSPENDED: 2, ContractState.RETIRED: 3}


@dataclass(frozen=True, slots=True)
class SetUp:
    """How far the set-up is. `owners_missing` are groups without an active member; `contract` is the one that is
    nearest to taking attempts."""

    organization: Organization | None
    owners_missing: list[str]
    reviewers: int
    account: ServiceAccount | None
    contract: Contract | None
    approved: int

    @property
    def has_people(self) -> bool:
        return self.organization is not None and not self.owners_missing and self.reviewers > 0

    @property
    def is_open(self) -> bool:
        return self.contract is not None and self.contract.state == ContractState.OPEN

    @property
    def is_ready(self) -> bool:
        return self.is_open or self.approved == TEN


def set_up(*, organization: Organization | None) -> SetUp:
    if organization is None:
        return SetUp(None, list(OWNER_GROUPS), 0, None, None, 0)
    roles = _roles_held(organization_id=organization.id)
    contract = _nearest_contract(organization_id=organization.id)
    approved = sum(row.status == APPROVED for row in readiness_board(contract=contract)) if contract else 0
    accounts = ServiceAccount.objects.filter(organization=organization, status=ServiceAccount.Status.ACTIVE)
    return SetUp(
        organization,
        [group for group in OWNER_GROUPS if not roles.get(f"owner:{group}")],
        roles.get(f"reviewer:{REVIEWER}", 0),
        accounts.order_by("-id").first(),
        contract,
        approved,
    )


def _roles_held(*, organization_id: UUID) -> dict[str, int]:
    """How many active people have each role."""
    rows = RoleGroup.objects.filter(organization_id=organization_id, group__user__is_active=True)
    found: dict[str, int] = {}
    for role in rows.values_list("role", flat=True):
        found[role] = found.get(role, 0) + 1
    return found


def _nearest_contract(*, organization_id: UUID) -> Contract | None:
    """An open contract, otherwise the newest draft."""
    # Limited: the page needs one of them, and an organization may have thousands of versions.
    rows = Contract.objects.filter(organization_id=organization_id).order_by("-id")[:200]
    return min(rows, key=lambda row: NEARNESS[ContractState(row.state)], default=None)


def organizations_newest(*, ids: frozenset[UUID], limit: int = 50) -> list[Organization]:
    return list(Organization.objects.filter(id__in=ids).order_by("-created_at")[:limit])
