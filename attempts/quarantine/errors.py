"""Errors of quarantine cases."""

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
