"""The operator console's pages of this app."""

from governance.admin import (
    beat,
    contracts,
    ledger,
    organizations,
    people,
    policies,
    reason_codes,
    records,
    service_accounts,
    shutdowns,
    sign_in,
)

__all__ = [
    "beat",
    "contracts",
    "ledger",
    "organizations",
    "people",
    "policies",
    "reason_codes",
    "records",
    "service_accounts",
    "shutdowns",
    "sign_in",
]
