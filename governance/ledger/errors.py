"""Refusals of this app. Those that break a rule of the record are violations and are recorded as such."""


class LedgerOutsideTransaction(RuntimeError):
    """A ledger entry must commit or roll back together with what it describes."""
