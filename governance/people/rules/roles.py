"""Roles of people, the permissions that each role gives on an organization, the scopes of API keys, and the permission
that a person needs where a key needs a scope."""

from enum import StrEnum

from governance.contracts.rules.documents import OWNER_GROUPS

VIEW = "view_organization"
OPERATE = "operate_organization"
REVIEW = "review_organization"
AUDIT = "audit_organization"
DECIDE_READINESS = "decide_readiness"

OPERATOR = "operator"
AUDITOR = "auditor"
OWNER_OF_HOLDS = "owner:global-compliance"
REVIEWER = "reviewer:"
FIRST_TIER = "approvers"
"""The tier that every organization begins with. It adds others of its own."""

PERMISSIONS_OF_ROLE: dict[str, tuple[str, ...]] = {
    OPERATOR: (VIEW, OPERATE, AUDIT),
    AUDITOR: (VIEW, AUDIT),
    f"{REVIEWER}{FIRST_TIER}": (VIEW, REVIEW),
    **{f"owner:{group}": (VIEW, DECIDE_READINESS) for group in OWNER_GROUPS},
}


class ApiScope(StrEnum):
    ORCHESTRATOR_READ = "orchestrator:read"
    ORCHESTRATOR_READ_INSTANCES = "orchestrator:read-instances"
    ORCHESTRATOR_WRITE = "orchestrator:write"
    ORCHESTRATOR_PUBLISH = "orchestrator:publish"
    ORCHESTRATOR_INTERVENE = "orchestrator:intervene"
    ORCHESTRATOR_ADMIN = "orchestrator:admin"
    ATTEMPTS_CREATE = "attempts:create"
    ATTEMPTS_EXECUTE = "attempts:execute"
    REVIEWS_DECIDE = "reviews:decide"
    GOVERNANCE_READ = "governance:read"
    GOVERNANCE_WRITE = "governance:write"
    LEDGER_READ = "ledger:read"


# A key with these scopes only can be issued by one person: it changes nothing.
READING_SCOPES = frozenset(
    {
        ApiScope.ORCHESTRATOR_READ,
        ApiScope.ORCHESTRATOR_READ_INSTANCES,
        ApiScope.GOVERNANCE_READ,
        ApiScope.LEDGER_READ,
    }
)

# What a signed-in person needs on the organization to do what the scope allows a service to do. A scope that is missing
# here is for services only: no role of a person gives it.
PERMISSION_FOR_SCOPE: dict[str, str] = {
    ApiScope.ORCHESTRATOR_READ: VIEW,
    ApiScope.ORCHESTRATOR_READ_INSTANCES: VIEW,
    ApiScope.ORCHESTRATOR_WRITE: OPERATE,
    ApiScope.ORCHESTRATOR_PUBLISH: OPERATE,
    ApiScope.ORCHESTRATOR_INTERVENE: OPERATE,
    ApiScope.REVIEWS_DECIDE: REVIEW,
    ApiScope.GOVERNANCE_READ: VIEW,
    ApiScope.GOVERNANCE_WRITE: OPERATE,
    ApiScope.LEDGER_READ: AUDIT,
}


def permissions_of(role: str) -> tuple[str, ...]:
    """The members of every tier may do the same, each in the reviews of their tier."""
    if role.startswith(REVIEWER):
        return (VIEW, REVIEW)
    return PERMISSIONS_OF_ROLE[role]


def roles_meant(name: str) -> tuple[str, ...]:
    """The roles that a policy document can mean by a bare name: a role, a reviewer tier or an owning group."""
    return name, f"reviewer:{name}", f"owner:{name}"


def tier_of(role: str) -> str:
    """The tier that a reviewer's role is about; empty for every other role."""
    return role.removeprefix(REVIEWER) if role.startswith(REVIEWER) else ""
