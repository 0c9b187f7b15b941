"""Refusals about identity providers, sign-in by one, and SCIM."""

from governance.violations.errors import RuleBroken
from governance.violations.states import ViolationKind
from reasoncodes.base.errors import DomainError


class ProviderSignInRefused(DomainError):
    """Your organization's provider confirmed who you are, but you have no access here.

    Ask an operator of your organization. Either the provider gives you no group that has a role in Holdpoint, or it may
    not create people, or your access was ended.
    """

    code = "provider-sign-in-refused"
    status = 403
    title = "No access through this provider"


class ProviderOverreach(RuleBroken):
    """An identity provider tried to act for a person who is not its own.

    A provider signs in and changes only people whom it created, or who linked their account themselves, and who belong
    to its organization alone. Administrators of the installation never sign in by a provider. Holdpoint has recorded
    this try.
    """

    code = "provider-overreach"
    status = 403
    title = "Somebody that this provider may not sign in"
    violation = ViolationKind.CROSS_TENANT


class ProviderAnswerInvalid(DomainError):
    """The provider's answer does not fit the request that Holdpoint sent.

    It was used before, is too old, has another issuer or is for another browser. Start the sign-in again. If it happens
    again, an operator has to compare the provider's settings with those in Holdpoint.
    """

    code = "provider-answer-invalid"
    status = 403
    title = "The answer of the provider is not valid"


class MappingRefused(DomainError):
    """This mapping gives roles that nobody may have, or roles that one person may not have together.

    `errors` names the places. One value of a claim may not lead to roles with which one person could write and approve,
    or ask and release.
    """

    code = "mapping-refused"
    status = 422
    title = "The mapping is refused"


class EndedByOperator(DomainError):
    """An operator ended this person's access in Holdpoint. The provider cannot give it back.

    Ask an operator of the organization.
    """

    code = "ended-by-operator"
    status = 409
    title = "Access was ended by an operator"


class ProviderRequired(DomainError):
    """You sign in through your organization's own provider, not with a password or passkey.

    Choose "Sign in with your organization" on the sign-in page.
    """

    code = "provider-required"
    status = 403
    title = "Sign in through your organization"
