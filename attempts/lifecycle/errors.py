"""Errors of attempts."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class NotEligible(DomainError):
    """This attempt cannot be replayed.

    The contract's retry_and_replay document lists the states that allow a replay. For a quarantined attempt, a person
    has to authorize a retry in its quarantine case.
    """

    code = "not-eligible"
    status = 409
    title = "Not eligible for replay"


class ReplayRoleNeeded(RuleBroken):
    """The contract lets only people with a certain role replay an attempt.

    `requires_role` of its retry_and_replay document names the role, for example a reviewer tier. A person who has it
    sends the replay from a session, with a new `Idempotency-Key`. The new attempt belongs to the service that asked
    first, and that person cannot review it. Programs cannot replay under such a contract. The try has been recorded.
    """

    code = "replay-role-needed"
    status = 403
    title = "A role is needed to replay"
    violation = ViolationKind.UNAUTHORIZED_DECISION
