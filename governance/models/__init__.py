"""Tables of this app, one concept per file."""

from governance.models.ledger_entry import LedgerEntry
from governance.models.organization import (
    Organization,
    OrganizationGroupObjectPermission,
    OrganizationUserObjectPermission,
    Product,
    RoleGroup,
)
from governance.models.service_account import ApiKey, ServiceAccount
from governance.models.user import PersonReference, User

__all__ = [
    "ApiKey",
    "LedgerEntry",
    "Organization",
    "OrganizationGroupObjectPermission",
    "OrganizationUserObjectPermission",
    "PersonReference",
    "Product",
    "RoleGroup",
    "ServiceAccount",
    "User",
]
