"""Errors of attempts."""

from reasoncodes.base.errors import DomainError


class NotEligible(DomainError):
    """This attempt cannot be replayed.

    The contract's retry_and_replay document lists the states that allow a replay. For a quarantined attempt, a person
    has to authorize a retry in its quarantine case.
    """

    code = "not-eligible"
    status = 409
    title = "Not eligible for replay"
