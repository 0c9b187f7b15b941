"""The operator console's pages of this app."""

from governance.admin import beat, ledger, organizations, people, reason_codes, service_accounts

__all__ = ["beat", "ledger", "organizations", "people", "reason_codes", "service_accounts"]
