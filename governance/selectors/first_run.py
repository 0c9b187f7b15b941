"""How far an organization has come on its way to the first governed attempt. Read from the rows; nothing is kept."""

from dataclasses import dataclass
from uuid import UUID

from governance.documents import OWNER_GROUPS
from governance.models import Contract, Organization, RoleGroup, ServiceAccount
from governance.readiness import APPROVED
from governance.selectors.contract import readiness_board
from governance.starters import REVIEWER
from governance.states import ContractState

TEN = 10
NEARNESS = {ContractState.OPEN: 0, ContractState.DRAFT: 1, ContractState.SUSPENDED: 2, ContractState.RETIRED: 3}


@dataclass(frozen=True, slots=True)
class SetUp:
    """`owners_missing` are groups that nobody active is in; `contract` is the one nearest to taking attempts."""

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
    roles = roles_held(organization_id=organization.id)
    contract = nearest_contract(organization_id=organization.id)
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


def roles_held(*, organization_id: UUID) -> dict[str, int]:
    """Role: how many active people have it."""
    rows = RoleGroup.objects.filter(organization_id=organization_id, group__user__is_active=True)
    found: dict[str, int] = {}
    for role in rows.values_list("role", flat=True):
        found[role] = found.get(role, 0) + 1
    return found


def nearest_contract(*, organization_id: UUID) -> Contract | None:
    """An open one, else the newest draft."""
    rows = Contract.objects.filter(organization_id=organization_id).order_by("-id")[:200]
    return min(rows, key=lambda row: NEARNESS[ContractState(row.state)], default=None)


def organizations_newest(*, ids: frozenset[UUID], limit: int = 50) -> list[Organization]:
    return list(Organization.objects.filter(id__in=ids).order_by("-created_at")[:limit])
