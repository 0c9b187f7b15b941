"""Refusals about roles, service accounts and API keys."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class RolesForbidden(RuleBroken):
    """These roles must not be given to one person.

    Together they let one person ask for an action and release it, or write a rule and approve it. Give the role to
    somebody else, or take the other role away first. If there is no other way, two people can record an exception with
    an end date: propose `role.give` with `exception_until`. The role is taken away on that day.
    """

    code = "roles-forbidden"
    status = 403
    title = "Forbidden combination of roles"
    violation = ViolationKind.ROLES_FORBIDDEN


class KeyLimitReached(DomainError):
    """This service account already has two live API keys.

    Two keys are enough to rotate without an interruption. Revoke one of them, then issue the new key.
    """

    code = "key-limit-reached"
    status = 409
    title = "Too many live keys"
