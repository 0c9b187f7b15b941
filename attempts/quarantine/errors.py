"""Errors of quarantine cases."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class FindingNeeded(DomainError):
    """A person has to say first what happened.

    Check with the receiver. Then send `finding` (happened or did_not_happen) with a reference to the evidence.
    """

    code = "finding-needed"
    status = 409
    title = "A finding is needed"


class IncidentNeeded(DomainError):
    """This contract requires a linked incident before the case can be resolved.

    Link the incident first, then resolve the case. It stays open until then.
    """

    code = "incident-needed"
    status = 409
    title = "An incident is needed"


class NotYourCase(RuleBroken):
    """This case belongs to another group.

    Operators of the organization, and members of the group that the contract names as escalation owner, act on a case.
    Ask one of them.
    """

    code = "not-your-case"
    status = 403
    title = "Not your case"
    violation = ViolationKind.UNAUTHORIZED_DECISION
