"""Tables of this app, one concept per file."""

from governance.models.console import IntakeMinute, SavedFilter
from governance.models.contract import (
    Contract,
    ContractDocument,
    ContractGroupObjectPermission,
    ContractUserObjectPermission,
    ReadinessDecision,
)
from governance.models.data_request import DeletionRequest, ExportRequest
from governance.models.decision import EnforcementDecision, Snapshot
from governance.models.erasure import ErasedPayload, ErasureItem, ErasureOrder
from governance.models.evidence import EvidenceBundle
from governance.models.ledger_entry import LedgerEntry
from governance.models.ledger_tree import LedgerCheckpoint, LedgerKey, LedgerLeaf, LedgerNode
from governance.models.legal_hold import ContextReference, LegalHold
from governance.models.organization import (
    Organization,
    OrganizationGroupObjectPermission,
    OrganizationUserObjectPermission,
    Product,
    RoleGroup,
)
from governance.models.policy import Policy
from governance.models.read_access import ReadAccess
from governance.models.region_profile import RegionProfile
from governance.models.service_account import ApiKey, ServiceAccount
from governance.models.shutdown import Note, Shutdown
from governance.models.user import PersonReference, User
from governance.models.violation import GovernanceViolation
from governance.models.witness import LedgerEpoch, LedgerVerification, WitnessReceipt

__all__ = [
    "ApiKey",
    "ContextReference",
    "Contract",
    "ContractDocument",
    "ContractGroupObjectPermission",
    "ContractUserObjectPermission",
    "DeletionRequest",
    "EnforcementDecision",
    "ErasedPayload",
    "ErasureItem",
    "ErasureOrder",
    "EvidenceBundle",
    "ExportRequest",
    "GovernanceViolation",
    "IntakeMinute",
    "LedgerCheckpoint",
    "LedgerEntry",
    "LedgerEpoch",
    "LedgerKey",
    "LedgerLeaf",
    "LedgerNode",
    "LedgerVerification",
    "LegalHold",
    "Note",
    "Organization",
    "OrganizationGroupObjectPermission",
    "OrganizationUserObjectPermission",
    "PersonReference",
    "Policy",
    "Product",
    "ReadAccess",
    "ReadinessDecision",
    "RegionProfile",
    "RoleGroup",
    "SavedFilter",
    "ServiceAccount",
    "Shutdown",
    "Snapshot",
    "User",
    "WitnessReceipt",
]
