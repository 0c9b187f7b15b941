"""Tables of this app, one concept per file."""

from governance.models.console import IntakeMinute, SavedFilter
from governance.models.contract import (
    Contract,
    ContractDocument,
    ContractGroupObjectPermission,
    ContractUserObjectPermission,
    ReadinessDecision,
)
from governance.models.decision import EnforcementDecision, Snapshot
from governance.models.ledger_entry import LedgerEntry
from governance.models.ledger_tree import LedgerCheckpoint, LedgerKey, LedgerLeaf, LedgerNode
from governance.models.organization import (
    Organization,
    OrganizationGroupObjectPermission,
    OrganizationUserObjectPermission,
    Product,
    RoleGroup,
)
from governance.models.policy import Policy
from governance.models.region_profile import RegionProfile
from governance.models.service_account import ApiKey, ServiceAccount
from governance.models.shutdown import Note, Shutdown
from governance.models.user import PersonReference, User
from governance.models.violation import GovernanceViolation

__all__ = [
    "ApiKey",
    "Contract",
    "ContractDocument",
    "ContractGroupObjectPermission",
    "ContractUserObjectPermission",
    "EnforcementDecision",
    "GovernanceViolation",
    "IntakeMinute",
    "LedgerCheckpoint",
    "LedgerEntry",
    "LedgerKey",
    "LedgerLeaf",
    "LedgerNode",
    "Note",
    "Organization",
    "OrganizationGroupObjectPermission",
    "OrganizationUserObjectPermission",
    "PersonReference",
    "Policy",
    "Product",
    "ReadinessDecision",
    "RegionProfile",
    "RoleGroup",
    "SavedFilter",
    "ServiceAccount",
    "Shutdown",
    "Snapshot",
    "User",
]
