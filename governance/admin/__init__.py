"""The operator console's pages of this app."""

from governance.admin import (
    beat,
    contracts,
    evidence,
    ledger,
    organizations,
    people,
    policies,
    read_audit,
    reason_codes,
    records,
    service_accounts,
    shutdowns,
    witnesses,
)

__all__ = [
    "beat",
    "contracts",
    "evidence",
    "ledger",
    "organizations",
    "people",
    "policies",
    "read_audit",
    "reason_codes",
    "records",
    "service_accounts",
    "shutdowns",
    "witnesses",
]
