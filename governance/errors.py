"""Refusals of this app."""

from reasoncodes.errors import DomainError


class RecordImmutable(DomainError):
    """This row is part of the record. The record is append-only.

    A wrong outcome is followed by a new record, never corrected in place. The attempt to change it is itself on record.
    """

    code = "record-immutable"
    status = 409
    title = "The record cannot be changed"


class LedgerOutsideTransaction(RuntimeError):
    """A ledger entry must commit or roll back together with what it describes."""


class KeyLimitReached(DomainError):
    """This service account already has two live API keys.

    Two are enough to rotate without an interruption. Revoke one first.
    """

    code = "key-limit-reached"
    status = 409
    title = "Too many live keys"
