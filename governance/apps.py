"""Hands the ledger down to the vocabulary: upward calls go by registered name only."""

from django.apps import AppConfig


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = "Governance"

    def ready(self) -> None:
        from governance.ledger.append import ledger_append
        from governance.ledger.usage import reason_code_usage_count
        from reasoncodes.registry import register_recorder, register_usage_counter

        register_recorder(ledger_append)
        register_usage_counter(reason_code_usage_count)
