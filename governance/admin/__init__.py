"""The operator console's pages of this app."""

from governance.admin import (
    beat,
    contracts,
    deletions,
    erasures,
    exports,
    ledger,
    legal_holds,
    organizations,
    people,
    policies,
    reason_codes,
    records,
    service_accounts,
    shutdowns,
)

__all__ = [
    "beat",
    "contracts",
    "deletions",
    "erasures",
    "exports",
    "ledger",
    "legal_holds",
    "organizations",
    "people",
    "policies",
    "reason_codes",
    "records",
    "service_accounts",
    "shutdowns",
]
