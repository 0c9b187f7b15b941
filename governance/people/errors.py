"""Refusals about service accounts and API keys."""

from reasoncodes.base.errors import DomainError


class KeyLimitReached(DomainError):
    """This service account already has two live API keys.

    Two keys are enough to rotate without an interruption. Revoke one of them, then issue the new key.
    """

    code = "key-limit-reached"
    status = 409
    title = "Too many live keys"
