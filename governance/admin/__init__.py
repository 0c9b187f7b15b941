"""The operator console's pages of this app."""

from governance.admin import (
    beat,
    contracts,
    evidence,
    ledger,
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
    "evidence",
    "ledger",
    "organizations",
    "people",
    "policies",
    "reason_codes",
    "records",
    "service_accounts",
    "shutdowns",
]
