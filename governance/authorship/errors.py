"""Refusals about authorship. Approving one's own work is `OwnWork`, with the other violations."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind


class NobodyResponsible(RuleBroken):
    """This service account has no responsible person, so it cannot write what people approve.

    What a service writes counts as written by the person who is responsible for it. Without such a person, somebody
    could write with the service's key and approve it themselves. Ask an operator to name a responsible person for the
    account, or write in your own session.
    """

    code = "nobody-responsible"
    status = 403
    title = "Nobody is responsible for this service"
    violation = ViolationKind.SECOND_PERSON_MISSING
