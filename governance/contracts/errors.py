"""Refusals about contracts and their readiness."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class NotAnOwner(RuleBroken):
    """Only a member of the group that owns this area can decide on it.

    The readiness board shows which group owns each area. If you should be in that group, ask an operator for the role.
    """

    code = "not-an-owner"
    status = 403
    title = "Not an owner of this area"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class ReadinessIncomplete(DomainError):
    """This contract cannot be opened: not all ten readiness areas are approved.

    `errors` lists the missing areas and who owns them. Ask each owner to decide on the readiness board, then open the
    contract.
    """

    code = "readiness-incomplete"
    status = 409
    title = "Readiness is incomplete"


class ReadinessTooFewPeople(DomainError):
    """This contract cannot be opened: its ten approvals come from too few different people.

    `errors` lists for each area who approved it and who else could. Let one of the approvals be revoked, and another
    member of the same group approve the area. If a group has no other member, ask an operator to give somebody the
    role. The installation's setting `HOLDPOINT_READINESS_PEOPLE` says how many people are needed.
    """

    code = "readiness-too-few-people"
    status = 409
    title = "Approved by too few people"


class DocumentInvalid(DomainError):
    """A policy document of the contract does not match its schema, or contradicts another document.

    `errors` lists every place that is wrong. Correct them and save again. docs/policy-documents.md describes the fields
    and their safe defaults.
    """

    code = "document-invalid"
    status = 400
    title = "Policy document not valid"
