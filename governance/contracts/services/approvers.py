"""How many different people approved the ten areas of a contract, and the refusal to open it if they are too few."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from governance.contracts.configured import readiness_people
from governance.contracts.errors import ReadinessTooFewPeople
from governance.contracts.models import Contract, ContractDocument
from governance.contracts.rules.readiness import APPROVED, AreaStatus
from governance.people.selectors.people import founding_has_ended, people_behind
from governance.people.services.founding import founding_settle
from governance.tenancy.models import RoleGroup
from reasoncodes.base.errors import FieldError


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who approved the areas of a board. `founding`: the organization is being founded, and one person is enough."""

    refs: frozenset[str]
    needed: int
    founding: bool

    @property
    def count(self) -> int:
        return len(self.refs)

    @property
    def enough(self) -> bool:
        return self.count >= self.needed

    @property
    def words(self) -> str:
        said = f"approved by {self.count} {'person' if self.count == 1 else 'people'}, {self.needed} needed"
        return f"{said} while the organization is being founded" if self.founding else said


def readiness_approvers(*, contract: Contract, rows: list[AreaStatus]) -> Approvers:
    """By whom the areas are approved. An approval that was carried over counts for the person who gave it."""
    founding = not founding_has_ended(organization_id=contract.organization_id)
    refs = frozenset(row.decision.decided_by_ref for row in rows if row.status == APPROVED)
    return Approvers(refs, 1 if founding else readiness_people(), founding)


def approvers_require(*, contract: Contract, rows: list[AreaStatus], at: datetime) -> bool:
    """Refuses approvals that come from too few different people. True: fewer were enough, only because the organization
    is being founded."""
    founding_settle(organization=contract.organization, at=at)
    found = readiness_approvers(contract=contract, rows=rows)
    if found.enough:
        return found.founding and found.count < readiness_people()
    said = f"The ten areas are approved by {found.count} {'person' if found.count == 1 else 'people'}"
    problems = [
        FieldError(f"/{area}", f"approved by {who}; {_instead(others)}", rule="too_few_people")
        for area, (who, others) in _others(contract, rows).items()
    ]
    raise ReadinessTooFewPeople(f"{said}; {found.needed} different people are needed.", errors=problems)


def _instead(others: list[str]) -> str:
    return f"{' or '.join(others)} could approve it instead" if others else "nobody else of its group could"


def _others(contract: Contract, rows: list[AreaStatus]) -> dict[str, tuple[str, list[str]]]:
    """For each approved area: who approved it, and the other active members of its group who did not write it."""
    approved = [row for row in rows if row.status == APPROVED]
    names = people_behind(commitments={row.decision.decided_by_ref for row in approved})
    held = RoleGroup.objects.filter(
        organization_id=contract.organization_id,
        role__in={f"owner:{row.owner_group}" for row in approved},
        group__user__is_active=True,
    )
    members: dict[str, dict[UUID, str]] = {}
    for role, id_, username in held.values_list("role", "group__user__id", "group__user__username"):
        members.setdefault(role.removeprefix("owner:"), {})[id_] = username
    authors = dict(ContractDocument.objects.filter(contract=contract).values_list("area", "written_by_id"))
    found = {}
    for row in approved:
        who = names.get(row.decision.decided_by_ref, "erased")
        known = members.get(row.owner_group, {})
        found[row.area] = (who, sorted(name for id_, name in known.items() if name != who and id_ != authors[row.area]))
    return found
