"""Refusals about people, their roles and sign-in, service accounts and API keys."""

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


class ResponsiblePersonMissing(DomainError):
    """This service account has no responsible person, so it cannot work.

    What a service does counts as done by the person who is responsible for it. Name one on the account's page in the
    console, which a second person confirms, then reinstate the account. The person must be active and have a role in
    the organization.
    """

    code = "responsible-person-missing"
    status = 409
    title = "No responsible person"


class AdministratorProtected(RuleBroken):
    """Only another administrator of the installation may do this to an administrator.

    An operator of one organization cannot end an administrator's access or change how they sign in: administrators look
    after all organizations. Ask another administrator. Holdpoint has recorded that somebody tried.
    """

    code = "administrator-protected"
    status = 403
    title = "Only another administrator may do this"
    violation = ViolationKind.UNAUTHORIZED_DECISION


class SecondFactorNeeded(DomainError):
    """Your role needs a second factor, and you have not set one up yet.

    Sign in, open `/accounts/second-factor/`, and add a passkey or an authenticator app. Until then only that page and
    the sign-out work. Which roles need a second factor is decided by the installation and by each organization's
    sign-in rules.
    """

    code = "second-factor-needed"
    status = 403
    title = "Second factor needed"


class LinkNotValid(DomainError):
    """This link does not work: it was used, withdrawn or replaced by a newer one, or its time is over.

    Look for a newer mail, ask for a new password on the sign-in page, or ask an operator for a new link. If you did not
    use the link yourself, tell an operator at once: whoever uses an invitation becomes you.
    """

    code = "link-not-valid"
    status = 410
    title = "The link does not work"


class TooManyAsked(DomainError):
    """Too many new passwords were asked for from your address.

    Wait a quarter of an hour, then ask again. Look for a mail that has already arrived, also among unwanted mail.
    """

    code = "too-many-asked"
    status = 429
    title = "Asked too often"


class CallerSuspended(DomainError):
    """This service account is suspended, because its requests broke the rules too often.

    The credential itself is valid, and works again when an operator reinstates the account; waiting does not help. The
    violations are on record: find out what the service did wrong first. `suspended_until` says what ends it.
    """

    code = "misuse-suspended"
    status = 403
    title = "Suspended for misuse"
    default_reason_code = "misuse_suspended"
